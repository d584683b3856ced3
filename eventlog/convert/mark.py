"""Marks the rows of a log with what a conversion made of them, once that is durable.

Until then files beside the output say whose order it was:

    _UNMARKED   no row is marked yet; nothing is lost when the output is made anew
    _MARKING    some rows may be marked: the output has what a further conversion would not find any more

Both go when all rows are marked, so whoever was interrupted goes on by giving the same order again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from eventlog.convert.commit import MARKING, OUTCOMES_FILE, UNMARKED
from eventlog.convert.settings import Conversion, LogInput
from eventlog.core.durable_files import flush
from eventlog.core.errors import UsageError
from eventlog.core.model import Outcome, Reason, Status

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
    from eventlog.sources.log.source import LogSettings, settle

    marked = 0
    if (folder / UNMARKED).exists():
        (folder / UNMARKED).replace(folder / MARKING)  # from now on rows may be marked
        flush(folder)
    with _log(source) as log:
        for batch in _outcomes(folder / OUTCOMES_FILE):
            with log.transaction() as connection:
                settle(connection, log, batch, LogSettings(), {}, waited=True)
            marked += len(batch)
    (folder / MARKING).unlink(missing_ok=True)
    flush(folder)
    return marked


@contextmanager
def _log(source: LogInput) -> Iterator[Log]:
    from eventlog.sql.connect import connect
    from eventlog.sql.findlog import log_columns
    from eventlog.sql.log import Log

    engine = connect(source.url)
    try:
        yield Log(engine, log_columns(engine, source.names, source.columns))
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


def order_of(conversion: Conversion) -> str | None:
    """What is the same for orders that convert the same waiting rows in the same way; nothing else can be marked."""
    source = conversion.input
    if not isinstance(source, LogInput) or set(source.statuses) != {Status.NEW.value}:
        return None
    from eventlog.sql.connect import read_url, shown_url

    address = shown_url(read_url(source.url))
    told = [replace(source, url=address, mark=False), conversion.options, conversion.format, conversion.part_events]
    return blake2b(msgspec.json.encode(told, enc_hook=str), digest_size=16).hexdigest()


def waits_for_marks(conversion: Conversion) -> bool:
    """Whether the complete output of this very order is there, and rows of it are not marked.

    Who says to overwrite it gets it made anew as long as nothing is lost by that.
    """
    names = (MARKING,) if conversion.overwrite else (UNMARKED, MARKING)
    found = [conversion.destination / name for name in names]
    return any(file.is_file() and file.read_text().strip() == order_of(conversion) for file in found)
