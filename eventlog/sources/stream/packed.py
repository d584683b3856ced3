"""Images as texts, for the rows of a log: every value comes back as what it was.

A row is its values, as JSON has them, and a letter for each that says what it is. Its names are
left out where they are those of its table.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Image, Op, Position, Row, Transaction

Names = tuple[str, ...]
"""The names of a table's columns, in their order."""

PLAIN: Final = "-"
"""The letter of what JSON has as it is."""

SEVERAL: Final = "m"
"""The letter of several values, which have letters of their own."""

SHAPES_ROWS: Final = 10_000
"""Of rows of so many shapes the letters are kept."""


class PackedRow(Struct, frozen=True, array_like=True, gc=False):
    """Letters and values of one row. `names` are None where they are those of its table."""

    letters: str
    values: list[Any]
    names: list[str] | None = None


class PackedImage(Struct, frozen=True, array_like=True, gc=False):
    """An image as a row of the log has it, without its table, which has a column of its own."""

    catalog: int
    position: Position
    op: Op
    before: PackedRow | None
    after: PackedRow | None
    time: dt.datetime | None
    perpetrator: str | None
    transaction: tuple[int, dt.datetime | None, int | None] | None
    place: int | None
    last: bool
    stream: str | None
    fault: str | None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(PackedImage)


def packed(image: Image, catalog: int, names: Names) -> str:
    """The image, described by the catalog with that number, whose table has columns of these names."""
    transaction = image.transaction
    packed_transaction = None
    if transaction is not None:
        packed_transaction = transaction.id, transaction.time, transaction.end
    before, after = image.before, image.after
    # In the order of the fields of PackedImage: to make one costs as much as all the rest.
    written = [
        catalog,
        image.position,
        image.op,
        None if before is None else _written(before, names),
        None if after is None else _written(after, names),
        image.time,
        image.perpetrator,
        packed_transaction,
        image.place,
        image.last,
        image.stream,
        image.fault,
    ]
    try:
        return _encoder.encode(written).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which neither JSON nor a database keeps
        # Where `before` and `after` stand in the list.
        written[3:5] = [None if row is None else _written_with_care(row, names) for row in (before, after)]
        return _encoder.encode(written).decode()


def unpacked(text: str, table: str, names_of: Callable[[int], Names], where: str) -> tuple[Image, int]:
    """The image, and the number of its catalog; DataError where somebody else has written the row.

    `names_of` knows the columns of the table as a catalog has them.
    """
    try:
        read = _decoder.decode(text)
        fields = read.transaction
        transaction = None
        if fields is not None:
            transaction = Transaction(id=fields[0], time=fields[1], end=fields[2])
        names = names_of(read.catalog)
        image = Image(
            position=read.position,
            op=read.op,
            table=table,
            before=_read(read.before, names),
            after=_read(read.after, names),
            time=read.time,
            perpetrator=read.perpetrator,
            transaction=transaction,
            place=read.place,
            last=read.last,
            stream=read.stream,
            fault=read.fault,
        )
    except (msgspec.DecodeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
        hint = "Restore the publisher's log from a backup."
        raise DataError(f"{where} holds no image of a stream: {error}.", hint=hint) from error
    return image, read.catalog


class _Shape(Struct, frozen=True):
    """How rows are written whose values have these types."""

    letters: str
    doubtful: tuple[int, ...]
    """Where values stand of which the type alone does not say whether JSON has them."""


_shapes: dict[tuple[type, ...], _Shape] = {}


def _shape_of(types: tuple[type, ...]) -> _Shape:
    if len(_shapes) >= SHAPES_ROWS:
        _shapes.clear()
    letters = "".join([_LETTERS[kind] for kind in types])
    doubtful = tuple([index for index, kind in enumerate(types) if kind in _DOUBTFUL])
    shape = _shapes[types] = _Shape(letters.rstrip(PLAIN), doubtful)
    return shape


def _written(row: Row, names: Names) -> tuple[object, ...]:
    """A row as JSON has it, in the order of the fields of PackedRow."""
    values = list(row.values())
    types = tuple(map(type, values))
    shape = _shapes.get(types) or _shape_of(types)
    for index in shape.doubtful:
        if not _DOUBTFUL[types[index]](values[index]):
            return _written_with_care(row, names)
    if tuple(row) == names:
        return shape.letters, values
    return shape.letters, values, list(row)


def _written_with_care(row: Row, names: Names) -> tuple[object, ...]:
    """The same, each value by itself."""
    letters, values = _each(row.values())
    if tuple(row) == names:
        return letters, values
    return letters, values, list(row)


def _each(several: Iterable[Any]) -> tuple[str, list[Any]]:
    letters_and_values = [_with_care(value) for value in several]
    letters = "".join([letter for letter, _ in letters_and_values])
    return letters, [written for _, written in letters_and_values]


def _with_care(value: Any) -> tuple[str, Any]:
    kind = type(value)
    if kind is tuple:
        return SEVERAL, _each(value)
    if kind is str and not _is_text(value):
        return "u", value.encode("utf-8", "surrogatepass").hex()
    if kind is float and not math.isfinite(value):
        return "f", repr(value)
    if kind is dt.datetime or kind is dt.time:
        return _LETTERS[kind], value.isoformat()
    return _LETTERS[kind], value


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_LETTERS: Final[Mapping[type, str]] = {
    type(None): PLAIN,
    bool: PLAIN,
    int: PLAIN,
    str: PLAIN,
    float: PLAIN,
    # As texts: a number in JSON comes back as a float.
    Decimal: "d",
    dt.datetime: "t",
    dt.date: "D",
    dt.time: "T",
    bytes: "b",
    tuple: SEVERAL,
}

_DOUBTFUL: Final[Mapping[type, Callable[[Any], bool]]] = {
    # JSON has no NaN and no infinity.
    float: math.isfinite,
    # What a place is ahead of UTC may have seconds, which are cut in JSON.
    dt.datetime: lambda value: value.tzinfo is None,
    dt.time: lambda value: value.tzinfo is None,
    tuple: lambda _: False,
}
"""Whether JSON has a value as it is, of types that do not say it."""

_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "f": float,
    "d": Decimal,
    "t": dt.datetime.fromisoformat,
    "D": dt.date.fromisoformat,
    "T": dt.time.fromisoformat,
    "b": binascii.a2b_base64,
    "u": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
    SEVERAL: lambda several: tuple(_values(*several)),
}


def _read(row: PackedRow | None, names: Names) -> Row | None:
    if row is None:
        return None
    own = names if row.names is None else row.names
    return dict(zip(own, _values(row.letters, row.values), strict=True))


def _values(letters: str, values: list[Any]) -> list[Any]:
    for index, letter in enumerate(letters):
        if letter != PLAIN:
            values[index] = _KINDS[letter](values[index])
    return values
