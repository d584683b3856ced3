"""From a change, or a row of the full load, to the message of it.

The changeSequence is put in afterwards.

Numbers are given out in one place and one order, messages are written wherever there is a
processor: so what is written leaves a gap of 35 digits, at an offset that is known.

The headers of data messages are made once for many: times and transactions as messages write them.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, Literal

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Op, Position, RowId, Transaction, format_position
from eventlog.core.schema import Catalog
from eventlog.core.tablekey import parse
from eventlog.qlik.change_seq import CHARACTERS, utc
from eventlog.qlik.messages.avrocoder import AvroCoder, key_of
from eventlog.qlik.messages.document import Header, Message
from eventlog.qlik.messages.jsoncoder import JsonCoder
from eventlog.qlik.messages.metadata import structure_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import MessageShape, shape_of
from eventlog.qlik.nearest import ColumnSayer
from eventlog.qlik.values import Piece, RowBuilder

_ID_BITS: Final = (1 << 128) - 1


class Moments:
    """Remembers the last time and the last transaction, which neighbours mostly share."""

    __slots__ = ("_text", "_transaction", "_transaction_text", "_when")

    def __init__(self) -> None:
        self._when: object = None
        self._text = ""
        self._transaction: Transaction | None = None
        self._transaction_text = ""

    def of(self, change: Change) -> tuple[str, str]:
        """Write the timestamp and the transactionId of a change."""
        when, transaction = change.time, change.transaction
        if transaction is not self._transaction:
            self._transaction = transaction
            self._transaction_text = ""
            if transaction is not None:
                self._transaction_text = transaction_id(transaction)
        if when is None and transaction is not None:
            when = transaction.time
        # `is` first, for neighbours share the object and comparing times takes longer.
        if when is not self._when and when != self._when:
            self._when = when
            self._text = timestamp(when)
        return self._text, self._transaction_text


def timestamp(when: dt.datetime | str | None) -> str:
    """Write a time in UTC to the millisecond, without a zone; empty for an unreadable one."""
    at = utc(when)
    if at is None:
        return ""
    return at.isoformat("T", "milliseconds")


def transaction_id(transaction: Transaction) -> str:
    """Write a transaction's number as 32 hex digits, the most significant first."""
    return f"{transaction.id & _ID_BITS:032X}"


HALF: Final = "the key or the position holds half a character, which UTF-8 cannot carry"
Pieces = tuple[bytes | None, bytes, bytes | None]
"""A message's key, and its value before and after the changeSequence.

A tuple, because one is made for every change.

A row of a full load has no changeSequence: the value is whole, and nothing stands after it. That of
a change of a known transaction is open at both ends: which one of the transaction's it is, is known
later (`TableRenderer.close`).
"""


class Renderer:
    """Writes messages of any table of a catalog."""

    def __init__(self, settings: MessageSettings, catalog: Catalog | None, *, free: bool = False) -> None:
        self._settings = settings
        self._free = free
        self._catalog = catalog
        self._tables: dict[tuple[str | None, str], TableRenderer | ExpressionError] = {}

    def of_table(self, row: RowId) -> TableRenderer:
        """Find the renderer of an object's table; raise ExpressionError where there can be none."""
        renderer = self._tables.get((row.schema, row.table))
        if renderer is None:
            renderer = self._tables[row.schema, row.table] = self._make(row)
        if isinstance(renderer, ExpressionError):
            raise renderer
        return renderer

    def _make(self, row: RowId) -> TableRenderer | ExpressionError:
        table = None
        if self._catalog is not None:
            table = self._catalog.class_named(row.schema, row.table)
        if table is None:
            return ExpressionError(
                f"the columns of {row.table} are not known; messages need a schema that describes it"
            )
        # Why there is none is kept as well, so that it is not found out anew for every change.
        try:
            return TableRenderer(shape_of(table, self._settings, free=self._free))
        except ExpressionError as error:
            return error


class TableRenderer:
    """Writes messages of one table."""

    def __init__(self, shape: MessageShape) -> None:
        self.shape = shape
        settings, values = shape.settings, shape.values
        self.structure = None
        if settings.mode == "metadata":
            self.structure = structure_of(shape)
        self._coder: AvroCoder | JsonCoder
        self._sealed = None
        if settings.encoding == "avro":
            self._coder = AvroCoder(shape)
            self._sealed = self._coder.seal
        else:
            self._coder = JsonCoder(shape)
        columns = zip(values.columns, shape.types, strict=True)
        ways = [self._coder.way(column, kind, settings.logical_types) for column, kind in columns]
        self._builder = RowBuilder(values, ways, self._coder.null)
        self.sayer = ColumnSayer(values.columns, [way for _, way in ways])
        self._moments = Moments()
        self._topic, self._refs = shape.topic, (shape.value_ref, shape.key_ref)
        self._bare = self.structure is None and shape.value_ref is None and shape.key_ref is None
        self._visible = ~shape.lobs
        self._beside_key = ~values.key_bits
        self._key_way: Literal["row", "table", "none", "avro"] = settings.key
        # A table without a key has rows that no key could tell apart.
        if settings.key == "row" and not shape.table.key:
            self._key_way = "table"
        elif settings.key == "row" and settings.avro_key:
            self._key_way = "avro"

    def pieces(self, change: Change, stream: str | None = None) -> Pieces | None:
        """Write the message of a change; None where it has nothing of the table's own columns.

        `stream` is how its position in the source is written, where the caller knows it already.
        """
        if change.refresh:
            return self._render_loaded(change)
        op = Op.ADD if change.created else change.op
        if op is Op.MODIFY:
            former, after, changed, known_before, known_after, key_value = self._builder.read_modified(change)
            known = known_before | known_after
            if not change.whole and change.edits and not known & self._beside_key:
                return None  # only child tables changed
            name, before = "UPDATE", None
            if change.whole or known_before & self._beside_key:  # else only its key is known
                before = former
            present = known_after
        elif op is Op.TRUNCATE:
            raise ExpressionError(
                "messages have no operation that empties a table; say it to its consumers in another way"
            )
        else:
            _, after, changed, _, present, key_value = self._builder.row(change, new=op is Op.ADD)
            name, before = "INSERT", None
            if op is Op.DELETE:
                name, changed = "DELETE", self.shape.values.key_bits or present
        coder = self._coder
        time, transaction = self._moments.of(change)
        stream = change.stream or stream or format_position(change.positions[-1])
        try:
            head = coder.head(name, after, before)
            tail = coder.tail(time, stream, transaction, changed & self._visible, present)
            if change.transaction is None:
                head, tail = self.close(head, tail, None, None)
            # `_key`, in line for the usual key: this is done for every change.
            if self._key_way == "row" and key_value is not None:
                key: bytes | None = key_value.encode()
            else:
                key = self._key(change.row.key, after, key_value)
            return key, head, tail
        except UnicodeEncodeError:
            raise ExpressionError(HALF) from None

    def close(
        self,
        head: bytes,
        tail: bytes,
        event_number: int | None,
        last: bool | None,
    ) -> tuple[bytes, bytes]:
        """Complete a message with its number within its transaction, or without one."""
        tail += self._coder.counters(event_number, last)
        if self._sealed is not None:
            # An envelope of Avro says first how long the message in it is, so it waits for the end.
            head = self._sealed(head, tail, CHARACTERS)
        return head, tail

    def message(
        self,
        key: bytes | None,
        value: bytes,
        positions: tuple[Position, ...] = (),
        route: str = "",
        headers: tuple[Header, ...] = (),
    ) -> Message:
        """Make a message of its table, for the topic of a route if there is one."""
        topic = route or self._topic
        if self._bare:
            return Message(topic=topic, key=key, value=value, positions=positions, headers=headers)
        value_schema, key_schema = self._refs
        return Message(
            topic=topic,
            key=key,
            value=value,
            positions=positions,
            headers=headers,
            value_schema=value_schema,
            key_schema=key_schema,
            structure=self.structure,
        )

    def _render_loaded(self, change: Change) -> Pieces:
        """Write the message of a row that a full load read back."""
        coder = self._coder
        _, row, _, _, _, key_value = self._builder.row(change, new=True)
        try:
            key = self._key(change.row.key, row, key_value)
        except UnicodeEncodeError:
            raise ExpressionError(HALF) from None
        # A row of a full load has no time, no position in a log and no transaction.
        head = coder.head("REFRESH", row, None)
        tail = coder.tail("", "", "", None, None) + coder.counters(None, None)
        if self._sealed is not None:
            head = self._sealed(head, tail, 0)
        return key, head + tail, None

    def _key(self, key: str, row: list[Piece], key_value: str | None) -> bytes | None:
        """Write the message's key; `key_value` is the value of a key of one column."""
        match self._key_way:
            case "row":
                if key_value is None:
                    key_value = self._join_key(key)
                return key_value.encode()
            case "avro":
                return key_of(row, self.shape.values.key, self.shape.names)
            case "table":
                return self.shape.title.encode()
        return None

    def _join_key(self, key: str) -> str:
        separator = self.shape.settings.key_separator
        if not separator:
            return key
        return separator.join([value for _, value in parse(key).parts])
