"""The operations of one transaction as images. Does no I/O.

Nothing stops the stream: an operation that cannot be read gives an image with a fault, and keeps
its raw parts.

BLOB operations become a change of the row that owns the BLOB: neighbouring ones on one BLOB
make one image, at the last of them. Where the piece of an INSERT BLOB is, is not documented; unless
the site says where, such an image has a fault, so that somebody reads the BLOB from the source.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, shorten
from eventlog.core.model import ABSENT, Absent, Image, Op, Row, Transaction
from eventlog.sources.linter.operations import BLOB_ACTIONS, Action, Operation, operation
from eventlog.sources.linter.rows import QueueRow, address
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.linter.tables import DATA, SourceTable, SourceTables
from eventlog.sources.stream.images import part_image

Content = bytes | Absent | None
"""What a BLOB holds; ABSENT where that is not known."""


class BlobRun(Struct, frozen=True, gc=False):
    """Neighbouring operations on one BLOB, and what they are."""

    operations: tuple[Operation, ...]
    actions: tuple[Action, ...]

    @property
    def owner(self) -> tuple[int, int, int]:
        """Return the BLOB's table, row and column."""
        row = self.operations[0].row
        return row.tabnum_src, row.rowid_src, row.blob[0]

    def join(self, operation: Operation, action: Action) -> BlobRun:
        return BlobRun((*self.operations, operation), (*self.actions, action))


def blob_rows(run: BlobRun, table: SourceTable, *, pieces: bool) -> tuple[Row, Row]:
    """Return the row before and after with the BLOB's content; raise DataError if unknown.

    `pieces`: they are in part 2.
    """
    for done in run.operations:
        if done.fault is not None:
            raise DataError(done.fault)
    last = run.operations[-1]
    number, kind = last.row.blob
    column = table.blob(number)
    if column is None:
        raise DataError(f"A BLOB of column {number} was changed, and {table.name} is not known to have a BLOB there.")
    if not last.first:
        raise DataError(f"The BLOB {column} was changed, and the row that owns it is not known.")
    content = _content(run, pieces=pieces)
    if content is ABSENT:
        actions = ", ".join(dict.fromkeys(run.actions))
        raise DataError(
            f"The BLOB {column} (type {kind}) was changed by {actions}, and where its content is, is not known."
        )
    row = table.row(last.first, last.row.rowid_src)
    owner = {name: value for name, value in row.items() if name != column}
    return owner, {**owner, column: content}


def _content(run: BlobRun, *, pieces: bool) -> Content:
    """Return the BLOB's content after the operations."""
    # Nothing is known of the content until an operation says what it begins with.
    held: list[bytes] | Absent | None = ABSENT
    for done, action in zip(run.operations, run.actions, strict=True):
        if action in (Action.CLEAR_BLOB, Action.DELETE_BLOB):
            held = None
        elif not pieces:
            held = ABSENT
        elif action is Action.CREATE_BLOB:
            held = [done.second]
        elif held is not ABSENT:  # else nobody knows to what the piece is added
            held = [*(held or ()), done.second]
    if isinstance(held, list):
        return b"".join(held)
    return held


OPS: Final = {Action.DELETE: Op.DELETE, Action.INSERT: Op.ADD, Action.UPDATE: Op.MODIFY}
SHOWN_CHARACTERS: Final = 80
"""How many hexadecimal digits of a part a note shows; the image and the queue have all of them."""

_ADD, _MODIFY = Op.ADD, Op.MODIFY


class QueueImages:
    """Makes images of a transaction's rows."""

    def __init__(
        self,
        tables: SourceTables,
        action: Callable[[QueueRow], Action | None],
        utc: Callable[[bytes], dt.datetime],
        settings: ReadingSettings,
    ) -> None:
        self._tables = tables
        self._action = action
        self._utc = utc
        self._pad = settings.pad_data
        self._pieces = settings.blob_pieces == "part2"

    def images(
        self,
        rows: Iterable[QueueRow],
        commit: int,
        transaction: Transaction,
        fault: str | None,
    ) -> Iterator[Image]:
        """Yield the numbered images of the operations in order; a `fault` applies to all of them."""
        number = 0
        blob: BlobRun | None = None
        for group in group_rows(rows):
            done = operation(group, pad=self._pad)
            action = self._action(done.row)
            assert action is not None
            if fault is not None:
                done = replace(done, fault=fault)
            if blob is not None or action in BLOB_ACTIONS:
                # An operation on something else ends the run, whose image comes before its own.
                finished, blob = _blobs(blob, done, action)
                if finished is not None:
                    number += 1
                    yield self._image(finished.operations[-1], finished, _MODIFY, commit, transaction, number)
                if blob is not None:
                    continue
            image = self._image(done, None, OPS[action], commit, transaction, number + 1)
            key = self._tables[done.row.tabnum_src].table.key
            before, after, key_changes = image.before, image.after, False
            if image.op is _MODIFY and image.fault is None and before is not None and after is not None:
                key_changes = [*map(before.get, key)] != [*map(after.get, key)]
            if key_changes:
                for half in part_image(image, key):
                    number += 1
                    yield replace(half, place=number)
            else:
                number += 1
                yield image
        if blob is not None:
            yield self._image(blob.operations[-1], blob, _MODIFY, commit, transaction, number + 1)

    def _image(
        self,
        done: Operation,
        blob: BlobRun | None,
        op: Op,
        commit: int,
        transaction: Transaction,
        number: int,
    ) -> Image:
        """Make the image of an operation on a row, or of the row owning a BLOB.

        An unreadable one gets its raw parts.
        """
        row = done.row
        table = self._tables[row.tabnum_src]
        time: dt.datetime | None = None
        fault: str | None = None
        try:
            if blob is None:
                before, after = self._rows(table, op, done)
            else:
                before, after = blob_rows(blob, table, pieces=self._pieces)
            time = self._utc(row.oper_date)
        except Exception as error:  # noqa: BLE001  a site's codec may raise anything, and the stream goes on
            first, second = done.first.hex(), done.second.hex()
            # Nothing is lost: the image keeps the parts as they came, in the place of the rows that
            # they are.
            old, new = ("", first) if op is _ADD else (first, second)
            before = {DATA: old} if old else None
            after = {DATA: new} if new else None
            raw = shorten(first, SHOWN_CHARACTERS)
            if second:
                raw = f"{raw} | {shorten(second, SHOWN_CHARACTERS)}"
            reason = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}."
            fault = f"{reason} Row {row.rowid_src} of table {row.tabnum_src}, raw: {raw or 'nothing'}."
        return Image(
            position=(commit, row.syslog_addr, 0),
            op=op,
            table=table.name,
            before=before,
            after=after,
            time=time,
            transaction=transaction,
            place=number,
            stream=address(row.syslog_addr),
            fault=fault,
        )

    def _rows(self, table: SourceTable, op: Op, done: Operation) -> tuple[Row | None, Row | None]:
        """Return the row before and after; an empty image is no row."""
        if done.fault is not None:
            raise DataError(done.fault)
        if op is _MODIFY:
            if not done.first or not done.second:
                sizes = f"{len(done.first)} and {len(done.second)} bytes"
                raise DataError(f"UPDATE with parts of {sizes} lacks an image.")
            before, after = _row(table, done.first, done), _row(table, done.second, done)
            if table.blobs:
                # Of a BLOB a record says only that it is NULL; where the new row has one, the
                # former is left out.
                before = {name: value for name, value in before.items() if name in after}
            return before, after
        action = Action.INSERT if op is _ADD else Action.DELETE
        if not done.first:
            raise DataError(f"{action} without an image of its row.")
        if done.second:
            raise DataError(f"{action} with {len(done.second)} bytes in part 2, where nothing can be.")
        row = _row(table, done.first, done)
        if op is _ADD:
            return None, row
        return row, None


def _row(table: SourceTable, record: bytes, done: Operation) -> Row:
    if table.plain:
        return table.codec.decode(record)
    return table.row(record, done.row.rowid_src)


def group_rows(rows: Iterable[QueueRow]) -> Iterator[list[QueueRow]]:
    """Group the rows of each operation by their shared address."""
    group: list[QueueRow] = []
    reached = None
    for row in rows:
        if row.syslog_addr == reached:
            group.append(row)
            continue
        if group:
            yield group
        group, reached = [row], row.syslog_addr
    if group:
        yield group


def _blobs(
    blob: BlobRun | None,
    done: Operation,
    action: Action,
) -> tuple[BlobRun | None, BlobRun | None]:
    """Return the operations on a BLOB completed now, and those that may continue."""
    if action not in BLOB_ACTIONS:
        return blob, None
    begun = BlobRun((done,), (action,))
    if blob is None:
        return None, begun
    if blob.owner == begun.owner:
        return None, blob.join(done, action)
    return blob, begun
