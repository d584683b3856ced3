"""BLOB operations, told as a change of the row that owns the BLOB. Does no I/O.

Neighbouring operations on one BLOB make one image, at the last of them. Where the piece of an INSERT BLOB is, is not
documented; unless the site says where, such an image has a fault, so that somebody reads the BLOB from the source.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import ABSENT, Absent, Row
from eventlog.sources.linter.operations import Action, Operation
from eventlog.sources.linter.tables import SourceTable

Content = bytes | Absent | None
"""What a BLOB holds; ABSENT where that is not known."""


class BlobRun(Struct, frozen=True, gc=False):
    """Neighbouring operations on one BLOB, and what they are."""

    operations: tuple[Operation, ...]
    actions: tuple[Action, ...]

    @property
    def owner(self) -> tuple[int, int, int]:
        """Which BLOB it is: table, row and column."""
        row = self.operations[0].row
        return row.tabnum_src, row.rowid_src, row.blob[0]

    def joined(self, operation: Operation, action: Action) -> BlobRun:
        return BlobRun((*self.operations, operation), (*self.actions, action))


def blob_rows(run: BlobRun, table: SourceTable, *, pieces: bool) -> tuple[Row, Row]:
    """The row before and after, with the BLOB's content; DataError where that cannot be told. `pieces` are in part 2."""
    for operation in run.operations:
        if operation.fault is not None:
            raise DataError(operation.fault)
    last = run.operations[-1]
    number, kind = last.row.blob
    column = table.blob(number)
    if column is None:
        raise DataError(f"A BLOB of column {number} was changed, and {table.name} is not known to have a BLOB there.")
    if not last.first:
        raise DataError(f"The BLOB {column} was changed, and the row that owns it is not told.")
    content = _content(run, pieces=pieces)
    if content is ABSENT:
        done = ", ".join(dict.fromkeys(run.actions))
        raise DataError(
            f"The BLOB {column} (type {kind}) was changed by {done}, and where its content is, is not known."
        )
    owner = {name: value for name, value in table.row(last.first, last.row.rowid_src).items() if name != column}
    return owner, {**owner, column: content}


def _content(run: BlobRun, *, pieces: bool) -> Content:
    """What the BLOB holds after the operations."""
    held: list[bytes] | Absent | None = ABSENT
    for operation, action in zip(run.operations, run.actions, strict=True):
        if action in (Action.CLEAR_BLOB, Action.DELETE_BLOB):
            held = None
        elif not pieces:
            held = ABSENT
        elif action is Action.CREATE_BLOB:
            held = [operation.second]
        elif held is not ABSENT:
            held = [*(held or ()), operation.second]
    return b"".join(held) if isinstance(held, Sequence) else held
