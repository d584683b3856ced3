"""Which waiting rows of a log a conversion takes: all, or those with the numbers that the journal lets it have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

if TYPE_CHECKING:
    from eventlog.convert.settings import LogInput
    from eventlog.core.schema import Catalog
    from eventlog.sources.marks import RowRanges
    from eventlog.sql.log import Log

MOST_RANGES: Final = 16
"""So many runs of numbers are compared with all rows of a batch; among more, each row is looked for."""


class ConvertedRows(Struct, frozen=True):
    """The `numbers` of the waiting rows that are taken, or all of them. `left` counts the others by the reason."""

    numbers: RowRanges | None = None
    left: Mapping[str, int] = {}

    def keep(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the taken rows. Rows not waiting were chosen by their status, and are kept."""
        if self.numbers is None or not len(rows):
            return rows
        waits = pc.fill_null(pc.equal(rows.column("status"), "N"), False)
        return rows.filter(pc.or_(pc.invert(waits), self._among(self.numbers, rows.column("record_id"))))

    def _among(self, numbers: RowRanges, rows: pa.Array) -> pa.Array:
        bounds = pc.min_max(rows).as_py()
        if bounds["min"] is None:
            return pa.array([False] * len(rows), pa.bool_())
        parts = numbers.within(bounds["min"], bounds["max"]).parts
        if len(parts) > MOST_RANGES:
            return pa.array([number is not None and number in numbers for number in rows.to_pylist()], pa.bool_())
        among = pa.array([False] * len(rows), pa.bool_())
        for first, last in parts:
            among = pc.or_(among, pc.and_(pc.greater_equal(rows, first), pc.less_equal(rows, last)))
        return pc.fill_null(among, False)


ALL: Final = ConvertedRows()


def choose_rows(source: LogInput, catalog: Catalog | None) -> ConvertedRows:
    """Read the waiting rows a conversion may take now: none held or behind a held one; none an
    output lacks, if it marks.
    """
    if source.statuses and "N" not in source.statuses:
        return ALL
    with open_log(source) as log:
        if not has_journal(log):
            return ALL
        from eventlog.convert.free_rows import read_free_rows

        return read_free_rows(log, catalog, marks=source.mark)


@contextmanager
def open_log(source: LogInput, seconds: float | None = None) -> Iterator[Log]:
    """Open the log of a conversion; with `seconds`, end sessions idle for longer."""
    from eventlog.sql.connect import connect, limit_sessions
    from eventlog.sql.findlog import log_columns
    from eventlog.sql.log import Log

    engine = connect(source.url)
    if seconds is not None:
        limit_sessions(engine, None, None, seconds)
    try:
        yield Log(engine, log_columns(engine, source.names, source.columns))
    finally:
        engine.dispose()


def has_journal(log: Log) -> bool:
    """Return True if the log has a journal, so its rows can be held."""
    from sqlalchemy import inspect

    from eventlog.sql.access import transaction

    with transaction(log.engine, f"The event log {log.name}") as connection:
        return inspect(connection).has_table(log.names.journal["holds"], schema=log.names.schema)
