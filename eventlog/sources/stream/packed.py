"""Images as texts, for the rows of a log: every value comes back as what it was.

What JSON has is written as it is, everything else as a list of what it is and a text.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Image, Op, Position, Row, Transaction

PLAIN: Final = frozenset({type(None), bool, int, str})
"""Types of values that JSON has as they are."""


class PackedImage(Struct, frozen=True, array_like=True, gc=False):
    """An image as a row of the log has it, without its table, which has a column of its own."""

    catalog: int
    position: Position
    op: Op
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    time: dt.datetime | None
    perpetrator: str | None
    transaction: tuple[int, dt.datetime | None, int | None] | None
    place: int | None
    last: bool
    stream: str | None
    fault: str | None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(PackedImage)


def packed(image: Image, catalog: int) -> str:
    """The image, described by the catalog with that number."""
    transaction = image.transaction
    told = None
    if transaction is not None:
        told = transaction.id, transaction.time, transaction.end
    # In the order of the fields of PackedImage: to make one costs as much as all the rest.
    written = [
        catalog,
        image.position,
        image.op,
        _written(image.before),
        _written(image.after),
        image.time,
        image.perpetrator,
        told,
        image.place,
        image.last,
        image.stream,
        image.fault,
    ]
    try:
        return _encoder.encode(written).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which neither JSON nor a database keeps
        # Where `before` and `after` stand in the list.
        written[3:5] = [_with_surrogates(image.before), _with_surrogates(image.after)]
        return _encoder.encode(written).decode()


def unpacked(text: str, table: str, where: str) -> tuple[Image, int]:
    """The image, and the number of its catalog; DataError where somebody else has written the row."""
    try:
        read = _decoder.decode(text)
        told = read.transaction
        transaction = None
        if told is not None:
            transaction = Transaction(id=told[0], time=told[1], end=told[2])
        image = Image(
            position=read.position,
            op=read.op,
            table=table,
            before=_read(read.before),
            after=_read(read.after),
            time=read.time,
            perpetrator=read.perpetrator,
            transaction=transaction,
            place=read.place,
            last=read.last,
            stream=read.stream,
            fault=read.fault,
        )
    except (msgspec.DecodeError, ValueError, KeyError, ArithmeticError) as error:
        hint = "Restore the publisher's log from a backup."
        raise DataError(f"{where} holds no image of a stream: {error}.", hint=hint) from error
    return image, read.catalog


def _written(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: value if type(value) in PLAIN else _WAYS[type(value)](value) for name, value in row.items()}


def _with_surrogates(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: _in_hex(value) for name, value in row.items()}


def _in_hex(value: Any) -> Any:
    if type(value) is str:
        return ["u", value.encode("utf-8", "surrogatepass").hex()]
    if type(value) is tuple:
        return ["m", *map(_in_hex, value)]
    return value if type(value) in PLAIN else _WAYS[type(value)](value)


def _float(value: float) -> Any:
    # JSON has no NaN and no infinity.
    return value if math.isfinite(value) else ["f", repr(value)]


def _several(values: tuple[Any, ...]) -> list[Any]:
    return ["m", *[value if type(value) in PLAIN else _WAYS[type(value)](value) for value in values]]


_WAYS: Final[Mapping[type, Callable[[Any], Any]]] = {
    float: _float,
    # As a text: a number in JSON comes back as a float.
    Decimal: lambda value: ["d", str(value)],
    dt.datetime: lambda value: ["t", value.isoformat()],
    dt.date: lambda value: ["D", value.isoformat()],
    dt.time: lambda value: ["T", value.isoformat()],
    bytes: lambda value: ["b", binascii.b2a_base64(value, newline=False).decode()],
    tuple: _several,
}


_KINDS: Final[Mapping[str, Callable[[str], Any]]] = {
    "f": float,
    "d": Decimal,
    "t": dt.datetime.fromisoformat,
    "D": dt.date.fromisoformat,
    "T": dt.time.fromisoformat,
    "b": binascii.a2b_base64,
    "u": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
}


def _read(row: dict[str, Any] | None) -> Row | None:
    if row is None:
        return None
    for name, value in row.items():
        if type(value) is list:
            # Only the value changes: a new name would break the loop.
            row[name] = _value(value)
    return row


def _value(value: Any) -> Any:
    if type(value) is not list:
        return value
    if value[0] == "m":
        return tuple(map(_value, value[1:]))
    kind, text = value
    return _KINDS[kind](text)
