"""Data messages in JSON: rows by msgspec, headers put together from ready pieces."""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

import msgspec

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.schema import Column
from eventlog.qlik.masks import KeptMasks, pad_hex
from eventlog.qlik.messages.jsonvalues import ready_text, to_json
from eventlog.qlik.messages.schemas import OPERATIONS
from eventlog.qlik.messages.shape import MessageShape
from eventlog.qlik.readings import is_whole_text, reading
from eventlog.qlik.typemap import QlikType
from eventlog.qlik.values import Piece, Way, name_column

_encode: Final = msgspec.json.Encoder().encode
_TRUTH: Final = {None: "null", True: "true", False: "false"}
# Types whose values are written as they are, so that a value of just this class needs no call.
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

    def __init__(self, shape: MessageShape) -> None:
        self._names = shape.names
        self._row = row_of(shape.names)
        self._masks = KeptMasks("null", lambda bits: f'"{pad_hex(bits, len(shape.names))}"')
        settings = shape.settings
        self._open, self._close = b'{"data":', "}}"
        if settings.table_names:
            names = {"schema": shape.table.schema or "", "table": shape.table.name}
            # Without its closing brace, for the message goes on.
            self._open = _encode(names)[:-1] + b',"data":'
        if settings.mode in ("envelope", "metadata"):
            # Without messages of metadata nobody could look the number of a schema up.
            schema_id = None
            if settings.mode == "metadata":
                schema_id = shape.schema_id
            self._open = envelope_head("DT", schema_id, None) + self._open
            self._close = "}}}"
        self._external = ""
        if settings.external_schema_id:
            self._external = f',"externalSchemaId":"{shape.schema_id}"'

    def way(self, column: Column, kind: QlikType, logical: bool) -> Way:
        """Choose how to make pieces of a column's values."""
        read, write = reading(column), to_json(kind)
        plain = _PLAIN.get(kind.name)
        if write is not None:
            ready = ready_text(kind)
            if ready is None:
                return plain, lambda cell: write(read(cell))
            return plain, lambda cell: (ready(cell) if type(cell) is str else None) or write(read(cell))
        if plain is int:
            return plain, _digits(read)
        return plain, read

    def head(self, operation: str, data: list[Piece], before: list[Piece] | None) -> bytes:
        """Write the part before the changeSequence."""
        try:
            row = _encode(self._row(*data))
            if before is None:
                return b"".join((self._open, row, _WITHOUT_BEFORE[operation]))
            former = _encode(self._row(*before))
        # Half a character, which a source with UTF-16 can hold, and UTF-8 cannot.
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
    ) -> bytes:
        """Write the part after the changeSequence, up to the transaction's counters."""
        masks = self._masks
        position = f'"{stream}"' if stream.isalnum() else encode_basestring(stream)
        return (
            f'","timestamp":"{time}","streamPosition":{position},"transactionId":"{transaction}'
            f'","changeMask":{masks[changed]},"columnMask":{masks[present]}{self._external}'
        ).encode()

    def counters(self, event_number: int | None, last: bool | None) -> bytes:
        """Write the message's number within its transaction: the end of the message."""
        count = "null" if event_number is None else event_number
        rest = f'"transactionLastEvent":{_TRUTH[last]}{self._close}'
        return f',"transactionEventCounter":{count},{rest}'.encode()

    def _misfit(self, values: list[Any]) -> ExpressionError:
        unfit = [isinstance(value, str) and not is_whole_text(value) for value in values]
        index = unfit.index(True)
        shown = value_shown(values[index])
        problem = ExpressionError(f"{shown} cannot be written as JSON; correct the value")
        # The values before, if any, follow those after, in the same order of columns.
        return name_column(problem, self._names[index % len(self._names)])


def row_of(names: tuple[str, ...]) -> Callable[..., Any]:
    """Make a constructor of an object from a row's values: a struct, whose names are written beforehand,
    else a dictionary.
    """
    # Names of columns need not be names of Python, so the fields are numbered and renamed.
    fields = {f"c{index}": name for index, name in enumerate(names)}
    try:
        return msgspec.defstruct("Row", list(fields), rename=fields, gc=False)
    except ValueError:  # a name that JSON has to escape
        return lambda *values: dict(zip(names, values, strict=True))


def envelope_head(kind: str, schema_id: str | None, schema: str | None) -> bytes:
    """Write an envelope up to the message in it; one brace closes it."""
    envelope = {
        "magic": "atMSG",
        "type": kind,
        "headers": None,
        "messageSchemaId": schema_id,
        "messageSchema": schema,
    }
    # Without its closing brace: the message stands inside.
    return _encode(envelope)[:-1] + b',"message":'


def _digits(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Reads a whole number that is written as nearly all are, without asking what else it is."""

    def way(cell: Any) -> Any:
        # Fewer than 20 digits, which Python reads without limit, and `isdigit` takes ² too.
        if type(cell) is str and len(cell) < 20 and cell.isascii() and cell.isdigit():
            return int(cell)
        return read(cell)

    return way


_OPERATIONS: Final = {name: f',"headers":{{"operation":"{name}","changeSequence":"'.encode() for name in OPERATIONS}
_WITHOUT_BEFORE: Final = {name: b',"beforeData":null' + rest for name, rest in _OPERATIONS.items()}
