"""Data messages in JSON: rows by msgspec, headers put together from ready pieces."""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

import msgspec

from eventlog.errors import ExpressionError
from eventlog.qlik.masks import padded_hex
from eventlog.qlik.messages.jsonvalues import to_json
from eventlog.qlik.messages.schemas import OPERATIONS
from eventlog.qlik.messages.shape import Shape
from eventlog.qlik.messages.telling import NEVER, Piece, Way
from eventlog.qlik.messages.typemap import MessageType
from eventlog.qlik.readings import reading, shown
from eventlog.qlik.values import named
from eventlog.schema import Column

_encode: Final = msgspec.json.Encoder().encode
_TRUTH: Final = {None: "null", True: "true", False: "false"}
_PLAIN: Final = {
    "STRING": str,
    "CLOB": str,
    "NCLOB": str,
    "INT1": int,
    "INT2": int,
    "INT4": int,
    "INT8": int,
    "BOOLEAN": bool,
}


class JsonCoder:
    """Writes the data messages of one table."""

    null: Final = None

    def __init__(self, shape: Shape) -> None:
        self._names = shape.names
        self._masks = _Masks(len(shape.names))
        enveloped = shape.settings.mode in ("envelope", "metadata")
        self._open = (envelope_head("DT", _id(shape), None) if enveloped else b"") + b'{"data":'
        self._external = f',"externalSchemaId":"{shape.schema_id}"' if shape.settings.external_schema_id else ""
        self._close = "}}}" if enveloped else "}}"

    def way(self, column: Column, kind: MessageType, logical: bool) -> Way:
        """How pieces are made of a column's values."""
        read, write = reading(column), to_json(kind)
        plain = _PLAIN.get(kind.name, NEVER)
        if write is not None:
            return plain, _both(read, write)
        return plain, _digits(read) if plain is int else read

    def head(self, operation: str, data: list[Piece], before: list[Piece] | None) -> bytes:
        """What stands before the changeSequence."""
        names = self._names
        try:
            row = _encode(dict(zip(names, data)))  # noqa: B905 - rows are made as long as names, for every change
            former = b"null" if before is None else _encode(dict(zip(names, before)))  # noqa: B905 - as above
        except UnicodeEncodeError:
            raise self._misfit([*data, *(before or ())]) from None
        return b"".join((self._open, row, b',"beforeData":', former, _OPERATIONS[operation]))

    def tail(
        self,
        time: str,
        stream: str,
        transaction: str,
        changed: int | None,
        present: int | None,
        counter: int | None,
        last: bool | None,
    ) -> bytes:
        """What stands after the changeSequence."""
        masks = self._masks
        return (
            f'","timestamp":"{time}","streamPosition":{encode_basestring(stream)},"transactionId":"{transaction}'
            f'","changeMask":{masks[changed]},"columnMask":{masks[present]}{self._external}'
            f',"transactionEventCounter":{"null" if counter is None else counter}'
            f',"transactionLastEvent":{_TRUTH[last]}{self._close}'
        ).encode()

    def sealed(self, head: bytes, tail: bytes, width: int) -> bytes:
        """The head of the whole message: JSON says no length."""
        return head

    def _misfit(self, values: list[Any]) -> ExpressionError:
        for place, value in enumerate(values):
            try:
                _encode(value)
            except UnicodeEncodeError:
                problem = ExpressionError(f"{shown(value)} cannot be written as JSON; correct the value")
                return named(problem, self._names[place % len(self._names)])
        return ExpressionError("the name of a column cannot be written as JSON; rename it")


def envelope_head(kind: str, schema_id: str | None, schema: str | None) -> bytes:
    """An envelope up to the message in it; one brace closes it."""
    fields = {"magic": "atMSG", "type": kind, "headers": None, "messageSchemaId": schema_id, "messageSchema": schema}
    return _encode(fields)[:-1] + b',"message":'


def _id(shape: Shape) -> str | None:
    return shape.schema_id if shape.settings.mode == "metadata" else None


def _both(read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda cell: write(read(cell))


def _digits(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Reads a whole number that is written as nearly all are, without asking what else it could be."""

    def way(cell: Any) -> Any:
        short = type(cell) is str and len(cell) < 20 and cell.isascii() and cell.isdigit()
        return int(cell) if short else read(cell)

    return way


_OPERATIONS: Final = {name: f',"headers":{{"operation":"{name}","changeSequence":"'.encode() for name in OPERATIONS}


class _Masks(dict[int | None, str]):
    """Masks as JSON, each made once: a table's changes have few different ones."""

    def __init__(self, columns: int) -> None:
        super().__init__({None: "null"})
        self._columns = columns

    def __missing__(self, bits: int | None) -> str:
        assert bits is not None
        made = f'"{padded_hex(bits, self._columns)}"'
        if len(self) < 4096:
            self[bits] = made
        return made
