"""Marks the rows of a log with what a conversion made of them, once that is durable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog.convert.parts import OUTCOMES_FILE
from eventlog.convert.settings import LogInput
from eventlog.convert.unmarked import begin_marking, end_marking
from eventlog.core.errors import UsageError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.sql.names import read_log_name

if TYPE_CHECKING:
    from eventlog.sql.log import Log

MARKED_ROWS: Final = 10_000
"""Rows that are marked in one transaction."""


def can_be_marked(source: LogInput) -> None:
    """Refuses, before anything is converted, what could not be marked afterwards."""
    if set(source.statuses) != {Status.NEW.value}:
        raise UsageError("--mark marks rows that wait, so it goes with no other --status than N.")
    with _log(source) as log:
        log.check()


def mark(source: LogInput, folder: Path) -> int:
    """Marks the rows that still wait with the outcomes of the conversion in the folder; says how many there are."""
    from eventlog.sources.log.settlement import settle
    from eventlog.sources.log.source import LogSettings

    marked = 0
    begin_marking(folder)
    with _log(source) as log:
        for batch in _outcomes(folder / OUTCOMES_FILE):
            with log.transaction() as connection:
                settle(connection, log, batch, LogSettings(), {}, waited=True)
            marked += len(batch)
    end_marking(folder)
    return marked


@contextmanager
def _log(source: LogInput) -> Iterator[Log]:
    from eventlog.sql.connect import connect
    from eventlog.sql.log import Log
    from eventlog.sql.reflect import log_columns

    engine = connect(source.url)
    try:
        yield Log(engine, log_columns(engine, read_log_name(source.log), source.columns))
    finally:
        engine.dispose()


def _outcomes(file: Path) -> Iterator[list[Outcome]]:
    from pyarrow import parquet

    with parquet.ParquetFile(file) as found:
        for batch in found.iter_batches(MARKED_ROWS):
            yield [
                Outcome(
                    position=(row["position"],),
                    status=Status(row["status"]),
                    reason=Reason(row["reason"]),
                    note=row["note"],
                )
                for row in batch.to_pylist()
                if row["position"] is not None
            ]
