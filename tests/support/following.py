"""A publisher that follows tables, without its clock: it looks whenever a test says so, and what it says is kept."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import structlog
from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.vitals import PublisherHealth
from eventlog.delivery.output import Output
from eventlog.sinks.stdout import StdoutSink
from eventlog.xds.write import XdsFormat


class Site:
    """A publisher that looks at its tables in every round, and what it said."""

    def __init__(self, engine: Engine, *, follow: bool) -> None:
        self.said: list[dict[str, Any]] = []
        self.vitals = PublisherHealth()
        journal = structlog.wrap_logger(
            None, processors=[self._keep], wrapper_class=structlog.stdlib.BoundLogger, cache_logger_on_first_use=False
        )
        settings = PublisherConfig(follow=follow, polling_interval=1, wake_up=False)
        config = Config(source=SourceConfig(url=str(engine.url), user="nobody"), publisher=settings)
        output = Output(format=XdsFormat(), sink=StdoutSink(), name="stdout")
        self.publisher = Publisher(config, engine=engine, outputs=[output], journal=journal, vitals=self.vitals)

    def _keep(self, _logger: object, level: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        self.said.append({"level": level, **event})
        raise structlog.DropEvent

    def poll(self) -> list[dict[str, Any]]:
        """One cycle that looks, and what was said of tables in it."""
        self.said.clear()
        self.publisher.post._next_look = 0.0  # the test does not wait for the clock
        self.publisher.run_once()
        return [one for one in self.said if "table" in one]
