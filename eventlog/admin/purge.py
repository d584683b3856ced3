"""Takes old rows out of a log, a stretch at a time, after an archive of them is durable.

An archive is Parquet files that `eventlog convert` reads, there entirely and durable or not at all.
A file's name says which rows it holds: the log, the first and the last record_id, and a checksum of
the rows. Rows that were archived and then not deleted, because the power went, come again in a file
of the same name, which replaces the first, or in one whose numbers overlap it; what two files hold
differently is never lost to one of them.

Law: a row is deleted only after it stands in an archive that a power cut does not undo, if there is
to be one. Each stretch is deleted in a transaction of its own, so that nobody waits long for its
locks.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.admin.rows import Choice, leave_before_deletion
from eventlog.core.durable_files import flush, make_empty, make_folder
from eventlog.core.errors import SinkError
from eventlog.core.model import Status
from eventlog.core.packages import require
from eventlog.sinks.files import file_name
from eventlog.sinks.store.objects import PARTS, Bucket
from eventlog.sql.log import Log, id_list
from eventlog.sql.names import STANDARD, TRANSACTION

COLUMNS: Final = (*STANDARD, "reason", "note", TRANSACTION)
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
_texts = tuple(place for place, name in enumerate(COLUMNS) if name not in NUMBERS)

Row = tuple[Any, ...]
"""A row of the query `old_rows`: the columns of COLUMNS, without the last one where the log does
not tell it.
"""


class Archive:
    """A folder of archives of one log, or objects at a place.

    `told` is what of a row stands in them: all of it, or not what policies hide.
    """

    def __init__(
        self,
        place: Path | Bucket,
        log: str,
        told: Callable[[Row], Row] = lambda row: row,
    ) -> None:
        self._log = log
        self._told = told
        require("An archive", "pyarrow")
        import pyarrow as pa
        import pyarrow.parquet  # loads what is reached as pa.parquet

        self._arrow: Any = pa
        self._objects: Bucket | None = None
        if not isinstance(place, Path):
            self._objects = place
            self._folder = Path(gettempdir())
            # Those of another log at the same place may be at work.
            is_ours = re.compile(rf"{re.escape(PARTS + file_name(log))}-\d+-\d+-\w+\.parquet").fullmatch
            place.abort_uploads([note for note in place.names(PARTS) if is_ours(note)])
            return
        self._folder = place
        try:
            make_folder(self._folder)
            for path in self._folder.glob(".eventlog-*.part"):
                # Left behind by a purge that was killed; another one may be at work on those of
                # today.
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < time.time() - LEFT_BEHIND_SECONDS:
                        path.unlink()
        except OSError as error:
            raise _refused(self._folder, error) from error

    def file(self) -> ArchiveFile:
        """A new file; nothing of it is there before it is finished."""
        return ArchiveFile(self._folder, file_name(self._log), self._told, self._arrow, self._objects)


class ArchiveFile:
    """One file in the making: `write` as often as there are rows, then `finish` or `discard`."""

    def __init__(
        self,
        folder: Path,
        name: str,
        told: Callable[[Row], Row],
        arrow: Any,
        objects: Bucket | None,
    ) -> None:
        self.rows = 0
        self._objects = objects
        self._folder = folder
        self._name = name
        self._told = told
        self._arrow = arrow
        self._temporary = folder / f".eventlog-{os.getpid()}-{next(_numbers)}.part"
        self._nameless: IO[bytes] | None = None
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

    def finish(self) -> str | None:
        """Makes the file durable under its name; None when nothing was written."""
        if self._numbers is None:
            return None
        first, last = self._numbers
        digest = self._digest.hexdigest()[:16]
        # With leading noughts, so that the order of names is that of the numbers.
        target = self._folder / f"{self._name}-{first:019d}-{last:019d}-{digest}.parquet"
        try:
            self._flush()
            self._writer.close()
            if self._objects is not None:
                assert self._nameless is not None
                self._objects.put_file(target.name, self._nameless)
                self._nameless.close()
                return f"{self._objects.place}/{target.name}"
            # The content first, then the name: after a power cut the file is there entirely or not
            # at all.
            flush(self._temporary)
            self._temporary.replace(target)
            flush(self._folder)
        except OSError as error:
            raise _refused(self._folder, error) from error
        return str(target)

    def discard(self) -> None:
        """Forgets what is not finished."""
        if self._writer is not None:
            self._writer.close()
        if self._nameless is not None:
            self._nameless.close()
        self._temporary.unlink(missing_ok=True)

    def _flush(self) -> None:
        """Writes the collected rows as a row group."""
        if not self._group:
            return
        schema = _schema(self._arrow)
        try:
            if self._writer is None:
                self._writer = self._arrow.parquet.ParquetWriter(self._opened(), schema, compression="zstd")
            columns = [list(column) for column in zip(*self._group, strict=True)]
            self._writer.write_table(self._arrow.table(columns, schema=schema))
        except OSError as error:
            raise _refused(self._folder, error) from error
        self._group, self._bytes = [], 0

    def _opened(self) -> Path | IO[bytes]:
        """A new file. One that goes to a store has no name, so that a kill leaves nothing of it."""
        if self._objects is not None:
            self._nameless = TemporaryFile()  # noqa: SIM115  # finish or discard closes it
            return self._nameless
        make_empty(self._temporary)
        return self._temporary


def archived(row: Row) -> Row:
    """A row as an archive keeps it: times in ISO 8601, texts that are text, numbers that are
    numbers.
    """
    values = [*row, None][: len(COLUMNS)]  # a log that tells no transactions has one value less
    values[0] = int(values[0])
    values[-1] = int(values[-1]) if _is_number(values[-1]) else None
    for place in _texts:
        if values[place] is not None:
            values[place] = _text(values[place])
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
    # What SQLite holds as text may be any bytes; they are told as \udc41 and the like, which no
    # reader mistakes.
    return str(value).encode("utf-8", "backslashreplace").decode()


def _is_number(value: object) -> bool:
    try:
        return int(str(value)) == value and -(2**63) <= int(str(value)) < 2**63
    except ValueError:
        return False


def _schema(arrow: Any) -> Any:
    # Arrow's plain strings have no room for more than 2 GB in a column.
    return arrow.schema([(name, arrow.int64() if name in NUMBERS else arrow.large_string()) for name in COLUMNS])


def _refused(folder: Path, error: OSError) -> SinkError:
    why = error.strerror or str(error)
    return SinkError(
        f"The archive {folder} cannot be written: {why}.",
        hint="Correct that, or name another folder; no row was deleted without its copy.",
    )


STRETCH_ROWS: Final = 2000
"""Rows of a stretch, more or less: the size of a transaction."""

FILE_ROWS: Final = 200_000
"""Rows after which an archive gets another file."""

ENDED: Final = f"{Status.SUCCESS}{Status.WARNING}{Status.ERROR}"
"""What is purged unless other letters are asked for: never what waits, nor what stopped the
publisher.
"""


class Purge(Struct, frozen=True, kw_only=True):
    """What is to go: rows that are older than so many seconds, by letter and table."""

    age: float
    letters: str = ENDED
    table: str = ""


class Purged(Struct, frozen=True, kw_only=True):
    """How far a purge is: rows deleted, rows archived, the archive's files."""

    rows: int = 0
    archived: int = 0
    files: tuple[str, ...] = ()


class PurgeStretch(Struct, frozen=True, kw_only=True):
    """A part of the log, in the database's own terms, and the old rows in it."""

    after: Any
    until: Any
    numbers: list[int]


class Group(Struct, frozen=True, kw_only=True):
    """Stretches that are deleted after the same archive file."""

    stretches: tuple[PurgeStretch, ...]
    archived: int = 0
    files: tuple[str, ...] = ()


def purge(log: Log, wanted: Purge, archive: Archive | None = None) -> Iterator[Purged]:
    """Purges and says after each stretch how far it is.

    A repeat goes on where it was broken off.
    """
    parameters = _parameters(log, wanted)
    done = Purged()
    for group in _groups(log, parameters, archive):
        files = (*done.files, *group.files)
        done = replace(done, archived=done.archived + group.archived, files=files)
        for stretch in group.stretches:
            rows = _take_away(log, stretch, parameters, may_wait=Status.NEW in wanted.letters)
            done = replace(done, rows=done.rows + rows)
            yield done
    if not wanted.table:
        with log.transaction() as connection:
            connection.execute(log.query("forget_orphans"), parameters)
    yield done


def count_old(log: Log, wanted: Purge) -> int:
    stretches = _stretches(log, _parameters(log, wanted), "old_numbers")
    return sum(len(stretch.numbers) for stretch, _ in stretches)


def _parameters(log: Log, wanted: Purge) -> dict[str, Any]:
    choice = Choice(letters=wanted.letters, table=wanted.table).parameters()
    with log.transaction() as connection:
        cutoff, settled = connection.execute(log.query("cutoff"), {"age": wanted.age}).one()
    return choice | {"cutoff": str(cutoff), "settled": str(settled)}


def _groups(log: Log, parameters: dict[str, Any], archive: Archive | None) -> Iterator[Group]:
    """Stretches that may be deleted: with an archive once they fill a file of it and that is
    durable.
    """
    if archive is None:
        for stretch, _ in _stretches(log, parameters, "old_numbers"):
            yield Group(stretches=(stretch,))
        return
    file, kept = archive.file(), list[PurgeStretch]()
    try:
        for stretch, rows in _stretches(log, parameters, "old_rows"):
            file.write(rows)
            kept.append(stretch)
            if file.rows >= FILE_ROWS:
                yield _finished(file, kept)
                file, kept = archive.file(), []
        yield _finished(file, kept)
    finally:
        file.discard()


def _finished(file: ArchiveFile, stretches: list[PurgeStretch]) -> Group:
    path = file.finish()
    group = Group(stretches=tuple(stretches), archived=file.rows)
    if path is not None:
        group = replace(group, files=(path,))
    return group


def _stretches(
    log: Log, parameters: dict[str, Any], query: str
) -> Iterator[tuple[PurgeStretch, list[tuple[Any, ...]]]]:
    """The stretches of the log that have old rows, each with what the query tells of them, their
    numbers first.
    """
    place = {"log": log.dialect.qualified(log.names.schema, log.names.table), "many": STRETCH_ROWS}
    written = "transaction_told" if log.names.transaction is not None else ""
    old = log.query(query, stretch="in_stretch", past="in_past", transaction=written)
    with log.transaction() as connection:
        after = connection.execute(log.query("stretch_begin")).scalar_one()
    while True:
        with log.transaction() as connection:
            until = connection.execute(log.query("stretch_end"), place | {"after": after}).scalar()
            if until is None:
                return
            rows = log.rows(connection, old, parameters | {"after": after, "until": until})
        if rows:
            numbers = [int(row[0]) for row in rows]
            yield PurgeStretch(after=after, until=until, numbers=numbers), rows
        after = until


def _take_away(log: Log, stretch: PurgeStretch, parameters: dict[str, Any], *, may_wait: bool) -> int:
    """Deletes the rows and what was recorded about them; how many."""
    bounds = {"after": stretch.after, "until": stretch.until, "ids": id_list(stretch.numbers)}
    with log.transaction() as connection:
        if may_wait:
            # In the same transaction, so that no output gets them and none waits for them.
            leave_before_deletion(connection, log, stretch.numbers)
        # By age and letter as well as by number: those that wait again meanwhile stay.
        delete = log.query("take_away", stretch="in_stretch")
        count = connection.execute(delete, parameters | bounds).rowcount
        connection.execute(log.query("forget_rows"), parameters | bounds)
    return int(count)
