"""Archives of rows: Parquet files that `eventlog convert` reads, there entirely and durable or not at
all.

A file's name says which rows it holds: the log, the first and the last record_id, and a checksum of
the rows. Rows that were archived and then not deleted, because the power went, come again in a file
of the same name, which replaces the first, or in one whose numbers overlap it; what two files hold
differently is never lost to one of them.
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
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, Final

import msgspec

from eventlog.core.errors import SinkError
from eventlog.core.packages import require
from eventlog.core.schema_file import SCHEMA_KEY
from eventlog.core.who import read_context
from eventlog.durable_files import flush, make_empty, make_folder
from eventlog.sinks.files import file_name
from eventlog.sinks.store.objects import PARTS, Bucket
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION

COLUMNS: Final = (*STANDARD, "reason", "note", TRANSACTION, CONTEXT)
NUMBERS: Final = ("record_id", "event_type", TRANSACTION)
LEFT_BEHIND_SECONDS: Final = 86_400
GROUP_ROWS: Final = 20_000
"""Rows of a row group; readers take a group at a time."""

GROUP_BYTES: Final = 32_000_000
_numbers = count()
# The blank between day and time becomes the T of ISO 8601.
_date = re.compile(r"(\d{4,}-\d\d-\d\d) (?=\d)").match
_kind = COLUMNS.index("event_type")
_time = COLUMNS.index("event_time")
_note = COLUMNS.index("note")
_transaction = COLUMNS.index(TRANSACTION)
_context = COLUMNS.index(CONTEXT)
_texts = tuple(index for index, name in enumerate(COLUMNS) if name not in NUMBERS)

Row = tuple[Any, ...]
"""A row of the query `old_rows`: the columns of COLUMNS."""


class Archive:
    """A folder of archives of one log, or objects at a place.

    `masked` gives what of a row stands in them: all of it, or not what policies hide. `described` is
    a schema file with the definitions that images name, where the log has any.
    """

    def __init__(
        self,
        target: Path | Bucket,
        log: str,
        masked: Callable[[Row], Row] = lambda row: row,
        described: bytes | None = None,
    ) -> None:
        self.log = log
        self.described = described
        self.masked = masked
        require("An archive", "pyarrow")
        import pyarrow as pa
        import pyarrow.parquet  # loads what is reached as pa.parquet

        self.arrow: Any = pa
        self.objects: Bucket | None = None
        if not isinstance(target, Path):
            self.objects = target
            self.folder = Path(gettempdir())
            # Those of another log at the same place may be at work.
            is_ours = re.compile(rf"{re.escape(PARTS + file_name(log))}-\d+-\d+-\w+\.parquet").fullmatch
            target.abort_uploads([note for note in target.names(PARTS) if is_ours(note)])
            return
        self.folder = target
        try:
            make_folder(self.folder)
            for path in self.folder.glob(".eventlog-*.part"):
                # Left behind by a purge that was killed; another one may be at work on those of
                # today.
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < time.time() - LEFT_BEHIND_SECONDS:
                        path.unlink()
        except OSError as error:
            raise self.make_error(error) from error

    def file(self) -> ArchiveFile:
        """Make a new file; nothing of it is there before it is finished."""
        return ArchiveFile(self)

    def make_error(self, error: OSError) -> SinkError:
        why = error.strerror or str(error)
        return SinkError(
            f"The archive {self.folder} cannot be written: {why}.",
            hint="Correct that, or name another folder; no row was deleted without its copy.",
        )


class ArchiveFile:
    """One file in the making: `write` as often as there are rows, then `finish` or `discard`."""

    def __init__(self, archive: Archive) -> None:
        self.rows = 0
        self._archive = archive
        self._temporary = archive.folder / f".eventlog-{os.getpid()}-{next(_numbers)}.part"
        self._nameless: IO[bytes] | None = None
        self._writer: Any = None
        self._digest = hashlib.sha256()
        self._numbers: tuple[int, int] | None = None
        self._group: list[Row] = []
        self._bytes = 0

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            ready = self._archive.masked(archive_row(row))
            encoded = msgspec.json.encode(ready)
            self._digest.update(encoded)
            self._bytes += len(encoded)
            self._group.append(ready)
            self.rows += 1
            first, last = self._numbers or (ready[0], ready[0])
            self._numbers = (min(first, ready[0]), max(last, ready[0]))
            if len(self._group) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._flush()

    def finish(self) -> str | None:
        """Makes the file durable under its name; None when nothing was written."""
        if self._numbers is None:
            return None
        first, last = self._numbers
        digest = self._digest.hexdigest()[:16]
        archive = self._archive
        # With leading noughts, so that the order of names is that of the numbers.
        target = archive.folder / f"{file_name(archive.log)}-{first:019d}-{last:019d}-{digest}.parquet"
        try:
            self._flush()
            self._writer.close()
            if archive.objects is not None:
                assert self._nameless is not None
                archive.objects.put_file(target.name, self._nameless)
                self._nameless.close()
                return f"{archive.objects.address}/{target.name}"
            # The content first, then the name: after a power cut the file is there entirely or not
            # at all.
            flush(self._temporary)
            self._temporary.replace(target)
            flush(archive.folder)
        except OSError as error:
            raise archive.make_error(error) from error
        return str(target)

    def discard(self) -> None:
        """Forget unfinished files."""
        if self._writer is not None:
            self._writer.close()
        if self._nameless is not None:
            self._nameless.close()
        self._temporary.unlink(missing_ok=True)

    def _flush(self) -> None:
        """Writes the collected rows as a row group."""
        if not self._group:
            return
        arrow = self._archive.arrow
        # Arrow's plain strings have no room for more than 2 GB in a column.
        described = self._archive.described
        schema = arrow.schema(
            [(name, arrow.int64() if name in NUMBERS else arrow.large_string()) for name in COLUMNS],
            metadata=None if described is None else {SCHEMA_KEY: described},
        )
        try:
            if self._writer is None:
                self._writer = arrow.parquet.ParquetWriter(self._open(), schema, compression="zstd")
            columns = [list(column) for column in zip(*self._group, strict=True)]
            self._writer.write_table(arrow.table(columns, schema=schema))
        except OSError as error:
            raise self._archive.make_error(error) from error
        self._group, self._bytes = [], 0

    def _open(self) -> Path | IO[bytes]:
        """Open a new file; one for a store has no name, so that a kill leaves nothing."""
        if self._archive.objects is not None:
            self._nameless = TemporaryFile()  # noqa: SIM115  # finish or discard closes it
            return self._nameless
        make_empty(self._temporary)
        return self._temporary


def archive_row(row: Row) -> Row:
    """Convert a row for an archive: times in ISO 8601, text and numbers as such."""
    values = [*row]
    values[0] = int(values[0])
    values[_transaction] = int(values[_transaction]) if _is_number(values[_transaction]) else None
    values[_context] = read_context(values[_context])
    for index in _texts:
        if values[index] is not None:
            values[index] = _text(values[index])
    if values[_time] is not None:
        date = _date(values[_time])
        if date:
            values[_time] = f"{date[1]}T{values[_time][date.end() :]}"
    kind = values[_kind]
    if kind is not None and _is_number(kind):
        values[_kind] = int(kind)
    elif kind is not None:
        # The column has numbers only, and what stood there must not be lost.
        values[_kind] = None
        values[_note] = "; ".join(filter(None, [f"event_type was {_text(kind)!r}", values[_note]]))
    return tuple(values)


def _text(value: object) -> str:
    # What SQLite holds as text may be any bytes; they are written as \udc41 and the like, which no
    # reader mistakes.
    return str(value).encode("utf-8", "backslashreplace").decode()


def _is_number(value: object) -> bool:
    try:
        return int(str(value)) == value and -(2**63) <= int(str(value)) < 2**63
    except ValueError:
        return False
