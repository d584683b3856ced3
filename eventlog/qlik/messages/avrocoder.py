"""Data messages in Avro, put together from the pieces that the columns give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eventlog.core.errors import ExpressionError
from eventlog.core.schema import Column
from eventlog.qlik.change_seq import CHARACTERS
from eventlog.qlik.masks import KeptMasks, pad_bytes
from eventlog.qlik.messages.avrovalues import NULL, SOME, number, prefix_size, some, text, to_avro
from eventlog.qlik.messages.schemas import OPERATIONS
from eventlog.qlik.messages.shape import MessageShape
from eventlog.qlik.readings import reading
from eventlog.qlik.typemap import QlikType
from eventlog.qlik.values import NEVER, Piece, Way

MAGIC: Final = b"atMSG"
_LAST: Final = {None: NULL, True: b"\x02\x01", False: b"\x02\x00"}
_SEQUENCED: Final = {name: number(index) + number(CHARACTERS) for index, name in enumerate(OPERATIONS)}
# A row of a full load was there before the changes, and its changeSequence is empty.
_SEQUENCED["REFRESH"] = number(OPERATIONS.index("REFRESH")) + number(0)


class AvroCoder:
    """Writes the data messages of one table."""

    null: Final = NULL

    def __init__(self, shape: MessageShape) -> None:
        # In the width of the table and with its trailing zeros, unlike a mask in a change table.
        self._masks = KeptMasks(NULL, lambda bits: some(pad_bytes(bits, len(shape.names))))
        settings, table = shape.settings, shape.table
        self._begin = self._external = b""
        if settings.table_names:
            self._begin = prefix_size((table.schema or "").encode()) + prefix_size(table.name.encode())
        if settings.external_schema_id:
            self._external = prefix_size(shape.schema_id.encode())
        self._open: bytes | None = None
        if settings.mode == "metadata":
            self._open = envelope_head("DT", shape.schema_id, None)
        elif settings.mode == "envelope":
            # Without messages of metadata nobody could look the number of a schema up.
            self._open = envelope_head("DT", None, None)

    def way(self, column: Column, kind: QlikType, logical: bool) -> Way:
        """Choose how to make pieces of a column's values."""
        read: Callable[[Any], Any] = reading(column)
        write = to_avro(kind, logical=logical)
        # Most texts are text already, and a reading would only say so.
        if write is text:
            return NEVER, lambda cell: text(cell if type(cell) is str else read(cell))
        return NEVER, lambda cell: write(read(cell))

    def head(self, operation: str, data: list[Piece], before: list[Piece] | None) -> bytes:
        """Write the part before the changeSequence."""
        old = (NULL,) if before is None else (SOME, *before)
        return b"".join((self._begin, *data, *old, _SEQUENCED[operation]))

    def tail(
        self,
        time: str,
        stream: str,
        transaction: str,
        changed: int | None,
        present: int | None,
    ) -> bytes:
        """Write the part after the changeSequence, up to the transaction's counters."""
        masks = self._masks
        return b"".join(
            (
                prefix_size(time.encode()),
                prefix_size(stream.encode()),
                prefix_size(transaction.encode()),
                masks[changed],
                masks[present],
                self._external,
            )
        )

    def counters(self, event_number: int | None, last: bool | None) -> bytes:
        """Write the message's number within its transaction: the end of the message."""
        counter = NULL if event_number is None else SOME + number(event_number)
        # These two are all that differs between the messages of one transaction.
        return counter + _LAST[last]

    def seal(self, head: bytes, tail: bytes, width: int) -> bytes:
        """Write the head of the whole message: an envelope says how long the message in it is."""
        if self._open is None:
            return head
        return b"".join((self._open, number(len(head) + width + len(tail)), head))


def envelope_head(kind: str, schema_id: str | None, schema: str | None) -> bytes:
    """Write an envelope up to the length of the message in it."""
    # Each is a union with null of its own.
    parts = [NULL if content is None else some(content.encode()) for content in (schema_id, schema)]
    return b"".join((MAGIC, prefix_size(kind.encode()), NULL, *parts))


def key_of(pieces: list[Piece], indexes: tuple[int, ...], names: tuple[str, ...]) -> bytes:
    """Write a key as a record of columns that are no unions."""
    for index in indexes:
        if pieces[index] == NULL:
            raise ExpressionError(f"the key column {names[index]} is NULL")
    # Without the branch of the union that each piece begins with.
    return b"".join([pieces[index][1:] for index in indexes])
