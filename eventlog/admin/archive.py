"""Archives of log rows: Parquet files that `eventlog convert` reads, there entirely and durable or not at all.

A file's name says which rows it holds: the log, the first and the last record_id, and a checksum of the rows. Rows that
were archived and then not deleted, because the power went, come again in a file of the same name, which replaces the
first, or in one whose numbers overlap it; what two files hold differently is never lost to one of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from eventlog.core.durable_files import flush, make_empty, make_folder
from eventlog.core.errors import SinkError
from eventlog.core.packages import require
from eventlog.sinks.files import file_name
from eventlog.sql.names import STANDARD, TRANSACTION

COLUMNS: Final = (*STANDARD, "reason", "note", TRANSACTION)
NUMBERS: Final = ("record_id", "event_type", TRANSACTION)
LEFT_BEHIND_SECONDS: Final = 86_400
GROUP_ROWS: Final = 20_000
"""Rows of a row group; readers take a group at a time."""

GROUP_BYTES: Final = 32_000_000
_numbers = count()
_date = re.compile(r"(\d{4,}-\d\d-\d\d) (?=\d)").match
_kind = COLUMNS.index("event_type")
_time = COLUMNS.index("event_time")
_note = COLUMNS.index("note")
_texts = tuple(place for place, name in enumerate(COLUMNS) if name not in NUMBERS)

Row = tuple[Any, ...]
"""A row of the query `old_rows`: the columns of COLUMNS, without the last one where the log does not tell it."""


class Archive:
    """A folder of archives of one log. `told` is what of a row stands in them: all of it, or not what policies hide."""

    def __init__(self, folder: Path, log: str, told: Callable[[Row], Row] = lambda row: row) -> None:
        self._folder = folder
        self._log = log
        self._told = told
        self._arrow = _pyarrow()
        try:
            make_folder(folder)
            _remove_leftovers(folder)
        except OSError as error:
            raise _refused(folder, error) from error

    def file(self) -> ArchiveFile:
        """A new file; nothing of it is there before it is finished."""
        return ArchiveFile(self._folder, file_name(self._log), self._told, self._arrow)


def _remove_leftovers(folder: Path) -> None:
    """Removes hidden files that nobody has written to for a day: another purge may be at work on those of today."""
    for path in folder.glob(".eventlog-*.part"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - LEFT_BEHIND_SECONDS:
                path.unlink()


class ArchiveFile:
    """One file in the making: `write` as often as there are rows, then `finish` or `discard`."""

    def __init__(self, folder: Path, name: str, told: Callable[[Row], Row], arrow: Any) -> None:
        self.rows = 0
        self._folder = folder
        self._name = name
        self._told = told
        self._arrow = arrow
        self._temporary = folder / f".eventlog-{os.getpid()}-{next(_numbers)}.part"
        self._writer: Any = None
        self._digest = hashlib.sha256()
        self._numbers: tuple[int, int] | None = None
        self._group: list[Row] = []
        self._bytes = 0

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            ready = self._told(archived(row))
            encoded = msgspec.json.encode(ready)
            self._digest.update(encoded)
            self._bytes += len(encoded)
            self._group.append(ready)
            self.rows += 1
            first, last = self._numbers or (ready[0], ready[0])
            self._numbers = (min(first, ready[0]), max(last, ready[0]))
            if len(self._group) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._flush()

    def finish(self) -> Path | None:
        """Makes the file durable under its name; None when nothing was written."""
        if self._numbers is None:
            return None
        first, last = self._numbers
        target = self._folder / f"{self._name}-{first:019d}-{last:019d}-{self._digest.hexdigest()[:16]}.parquet"
        try:
            self._flush()
            self._writer.close()
            flush(self._temporary)
            self._temporary.replace(target)
            flush(self._folder)
        except OSError as error:
            raise _refused(self._folder, error) from error
        return target

    def discard(self) -> None:
        """Forgets what is not finished."""
        if self._writer is not None:
            self._writer.close()
        self._temporary.unlink(missing_ok=True)

    def _flush(self) -> None:
        """Writes the collected rows as a row group."""
        if not self._group:
            return
        schema = _schema(self._arrow)
        try:
            if self._writer is None:
                make_empty(self._temporary)
                self._writer = self._arrow.parquet.ParquetWriter(self._temporary, schema, compression="zstd")
            columns = [list(column) for column in zip(*self._group, strict=True)]
            self._writer.write_table(self._arrow.table(columns, schema=schema))
        except OSError as error:
            raise _refused(self._folder, error) from error
        self._group, self._bytes = [], 0


def archived(row: Row) -> Row:
    """A row as an archive keeps it: times in ISO 8601, texts that are text; an event_type that is no number goes into the note."""
    values = [*row, None][: len(COLUMNS)]
    values[0] = int(values[0])
    values[-1] = int(values[-1]) if _is_number(values[-1]) else None
    for place in _texts:
        values[place] = None if values[place] is None else _text(values[place])
    if values[_time] is not None:
        values[_time] = _date_t(values[_time])
    if values[_kind] is not None and not _is_number(values[_kind]):
        values[_note] = "; ".join(filter(None, [f"event_type was {_text(values[_kind])!r}", values[_note]]))
        values[_kind] = None
    elif values[_kind] is not None:
        values[_kind] = int(values[_kind])
    return tuple(values)


def _date_t(text: str) -> str:
    match = _date(text)
    return f"{match[1]}T{text[match.end() :]}" if match else text


def _text(value: object) -> str:
    """What SQLite holds as text may be any bytes; they are told as \\udc41 and the like, which no reader mistakes."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _is_number(value: object) -> bool:
    try:
        return int(str(value)) == value and -(2**63) <= int(str(value)) < 2**63
    except ValueError:
        return False


def _schema(arrow: Any) -> Any:
    return arrow.schema([(name, arrow.int64() if name in NUMBERS else arrow.large_string()) for name in COLUMNS])


def _refused(folder: Path, error: OSError) -> SinkError:
    said = error.strerror or str(error)
    return SinkError(
        f"The archive {folder} cannot be written: {said}.",
        hint="Mend that, or name another folder; no row was deleted without its copy.",
    )


def _pyarrow() -> Any:
    require("An archive", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet  # loads what is reached as pa.parquet

    return pa
