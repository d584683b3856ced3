"""The publisher: one batch after the other, until nothing is left or until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from eventlog.assembly import outputs_of, pipeline_of
from eventlog.config import Config, load
from eventlog.errors import ConfigError
from eventlog.pipeline import Output, Pipeline, Report
from eventlog.sql.connect import connect
from eventlog.sql.names import read_log_name
from eventlog.sql.reflect import log_columns

if TYPE_CHECKING:
    from sqlalchemy import Engine


class Publisher:
    """Publishes one log. What it opens it closes, and a batch that it began it finishes."""

    def __init__(self, config: Config, *, engine: Engine | None = None, outputs: list[Output] | None = None) -> None:
        self.config = config
        self.engine = connect(_url(config)) if engine is None else engine
        self._names = log_columns(self.engine, read_log_name(config.source.log), config.source.columns)
        self._outputs = outputs_of(config) if outputs is None else outputs
        self._pipeline: Pipeline | None = None
        self._stop = Flag()

    @classmethod
    def from_config(cls, path: str | Path) -> Self:
        """The publisher that a configuration file, and the environment, describe."""
        return cls(load(Path(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives back connections and files."""
        for output in self._outputs:
            output.sink.close()
        self.engine.dispose()

    def stop(self) -> None:
        """Asks for the end; the batch in hand is finished first."""
        self._stop.set()

    def run_once(self) -> Report:
        """Publishes one batch. Rows that cannot be read make it look at the tables again before they are given up."""
        report = self._round()
        if report.stale:
            self._pipeline = None
            report = self._round()
        return report

    def _round(self) -> Report:
        pipeline = self._pipeline or pipeline_of(self.engine, self._names, self.config, self._outputs)
        report = pipeline.go_round()
        self._pipeline = replace(pipeline, fresh=False)
        return report

    def rounds(self, *, until_empty: bool = False) -> Iterator[Report]:
        """Batch after batch, with the polling interval between them when nothing was waiting."""
        while not self._stop.is_set():
            report = self.run_once()
            yield report
            if report.fatal or (until_empty and not report.settled):
                return
            if not report.settled:
                self._stop.wait(self.config.publisher.polling_interval)

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT ask for the end instead of breaking off."""
        earlier = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)


def _url(config: Config) -> str:
    if not config.source.url:
        raise ConfigError("source.url is missing; it names the database.")
    return config.source.url
