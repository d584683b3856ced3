"""A publisher that follows tables, without its clock: it looks whenever a test says so, and what it says is kept."""

from __future__ import annotations

import random
from collections.abc import MutableMapping
from typing import Any

import structlog
from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.sinks.stdout import StdoutSink
from eventlog.xds.write import XdsFormat
from tests.support.logged import run

TYPES = ("VARCHAR(40)", "VARCHAR(80)", "TEXT")


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
        """Run one cycle including a look at tables; return its log events about tables."""
        self.said.clear()
        self.publisher.post._next_look = 0.0  # the test does not wait for the clock
        self.publisher.run_once()
        return [one for one in self.said if "table" in one]


class ChangingTable:
    """A table whose columns change at random; `secret` is never to be captured."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.random = random.Random(seed)
        self.columns = ["a0", "a1", "a2"]
        self.number = 3
        columns = ", ".join(f"{name} VARCHAR(40)" for name in (*self.columns, "secret"))
        run(engine, f"CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, {columns})")
        run(engine, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO usr (idu) VALUES (2)")

    def change(self) -> dict[str, list[str]]:
        """Runs one ALTER TABLE, and tells what the journal is to say of it."""
        kinds = ["add", "rename", "retype", *(["drop"] if len(self.columns) > 1 else [])]
        kind, name = self.random.choice(kinds), self.random.choice(self.columns)
        if kind == "add":
            run(self.engine, f"ALTER TABLE usr ADD COLUMN {self._new()} VARCHAR(40)")
            return {"added": self.columns[-1:]}
        if kind == "drop":
            self.columns.remove(name)
            run(self.engine, f"ALTER TABLE usr DROP COLUMN {name}")
            return {"gone": [name]}
        if kind == "rename":
            self.columns.remove(name)
            run(self.engine, f"ALTER TABLE usr RENAME COLUMN {name} TO {self._new()}")
            return {"added": self.columns[-1:], "gone": [name]}
        how = "ALTER COLUMN {} TYPE {}" if self.engine.dialect.name == "postgresql" else "MODIFY COLUMN {} {}"
        run(self.engine, f"ALTER TABLE usr {how.format(name, self.random.choice(TYPES))}")
        return {"retyped": [name]}

    def _new(self) -> str:
        self.columns.append(f"a{self.number}")
        self.number += 1
        return self.columns[-1]
