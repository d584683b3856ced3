"""The layout of a captured table: the columns and types that the text of a TABSCHEM record
describes, checked against its header.

Of a type it is known what it is, how many bytes it takes, and what SQL calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import islice
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DataError, shorten


class ValueForm(StrEnum):
    """How a value is written in the stream."""

    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    INT8 = "int8"
    FLOAT = "float"
    SMALLFLOAT = "smallfloat"
    DECIMAL = "decimal"
    DATE = "date"
    DATETIME = "datetime"
    INTERVAL = "interval"
    BOOLEAN = "boolean"
    CHAR = "char"
    VARCHAR = "varchar"
    LVARCHAR = "lvarchar"
    LOCATOR = "locator"


UNITS: Final = ("year", "month", "day", "hour", "minute", "second", "fraction")
PLACES: Final = {"year": 5, "month": 4, "day": 3, "hour": 2, "minute": 1, "second": 0, "fraction": -1}
"""At which pair of the packed form, counted from the point, a field's last two digits stand."""


class ColumnType(Struct, frozen=True, kw_only=True):
    """A type. `size` is None where each value says its own; `sql` is the name that other databases
    understand.

    `precision` is that of a decimal, or how many digits an interval's first field has; `scale` are
    a decimal's decimals, None if they float; `first`, `last` and `fraction` qualify a datetime or
    an interval.
    """

    form: ValueForm
    size: int | None
    sql: str
    precision: int = 0
    scale: int | None = None
    first: str = ""
    last: str = ""
    fraction: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields from `first` to `last`, inclusive."""
        return UNITS[UNITS.index(self.first) : UNITS.index(self.last) + 1]


# Spellings and widths as gbase-cdc.md 5 lists them; GBase's own names are Oracle's.
_FIXED: Final = {
    "smallint": (ValueForm.SMALLINT, 2, "smallint"),
    **dict.fromkeys(("integer", "int", "serial"), (ValueForm.INTEGER, 4, "integer")),
    **dict.fromkeys(("bigint", "bigserial"), (ValueForm.BIGINT, 8, "bigint")),
    **dict.fromkeys(("int8", "serial8"), (ValueForm.INT8, 10, "bigint")),
    **dict.fromkeys(("float", "double precision"), (ValueForm.FLOAT, 8, "double precision")),
    **dict.fromkeys(("smallfloat", "real"), (ValueForm.SMALLFLOAT, 4, "real")),
    "date": (ValueForm.DATE, 4, "date"),
    "boolean": (ValueForm.BOOLEAN, 2, "boolean"),
    # 4 bytes before the 72 of the locator; the content is elsewhere.
    **dict.fromkeys(("blob", "clob"), (ValueForm.LOCATOR, 76, "blob")),
}
_VARYING: Final = {
    **dict.fromkeys(("varchar", "nvarchar", "varchar2", "nvarchar2"), (ValueForm.VARCHAR, 255)),
    "lvarchar": (ValueForm.LVARCHAR, 2048),
}
_DECIMALS: Final = ("decimal", "dec", "numeric", "money", "number")
# Such as `varchar(20,0)` or `double precision` (gbase-cdc.md 6).
_written = re.compile(r"([a-z0-9_]+(?: precision)?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?").fullmatch
_qualified = re.compile(
    r"(datetime|interval) (year|month|day|hour|minute|second|fraction)\s*(?:\((\d)\))?"
    r" to (year|month|day|hour|minute|second|fraction)\s*(?:\((\d)\))?"
).fullmatch
MOST_CHARACTERS: Final = 32_767


# A table of n columns is described again whenever a session begins.
@lru_cache(maxsize=4096)
def read_type(text: str) -> ColumnType:
    """Reads a type; DataError when it is none that can be captured."""
    folded = " ".join(text.lower().split())
    if match := _qualified(folded):
        return _with_qualifier(*match.groups())
    match = _written(folded)
    if match is None:
        raise DataError(f"{shorten(text)!r} is not the name of a type.")
    name = match[1]
    numbers = [int(number) for number in match.groups()[1:] if number is not None]
    if name in _FIXED:
        form, size, sql = _FIXED[name]
        return ColumnType(form=form, size=size, sql=sql)
    if name in ("char", "character", "nchar"):
        length = numbers[0] if numbers else 1
        if not 1 <= length <= MOST_CHARACTERS:
            raise DataError(f"char({length}) is not a type: it has 1 to {MOST_CHARACTERS} bytes.")
        return ColumnType(form=ValueForm.CHAR, size=length, sql=f"char({length})")
    if name in _VARYING:
        form, longest = _VARYING[name]
        length = numbers[0] if numbers else longest
        return ColumnType(form=form, size=None, sql=f"varchar({length})")
    if name in _DECIMALS:
        return _decimal(name, numbers)
    raise DataError(f"{shorten(text)!r} is not a type that can be captured.")


def _decimal(name: str, numbers: list[int]) -> ColumnType:
    """Return the type: `decimal` floats with 16 digits, `decimal(p)` with p.

    Money always has decimals, two by default.
    """
    precision = numbers[0] if numbers else 16
    scale = 2 if name == "money" else None
    if len(numbers) > 1:
        scale = numbers[1] if numbers[1] != 255 else None  # 255 says that it floats
    if not 1 <= precision <= 32 or (scale or 0) > precision:
        raise DataError(f"{name}({','.join(map(str, numbers))}) is not a type: it has 1 to 32 digits.")
    # The sizes are integer divisions: gbase-cdc.md 5.1.
    if scale is None:
        return ColumnType(form=ValueForm.DECIMAL, size=(precision + 4) // 2, sql="decimal", precision=precision)
    size = (precision + (scale & 1) + 3) // 2
    sql = f"decimal({precision},{scale})"
    return ColumnType(form=ValueForm.DECIMAL, size=size, sql=sql, precision=precision, scale=scale)


def _with_qualifier(
    name: str,
    first: str,
    digits: str | None,
    last: str,
    fraction: str | None,
) -> ColumnType:
    low, high = UNITS.index(last), UNITS.index(first)
    # The digits of a datetime's first field are fixed, but for those of a fraction.
    if low < high or (name == "datetime" and digits and first != "fraction"):
        raise DataError(f"{name} {first} to {last} is not a type.")
    if name == "interval" and (high < 2) != (low < 2):
        raise DataError(f"interval {first} to {last} is not a type: months have no number of days.")
    # Four for a year, else two, unless the type says another number.
    precision = 4 if first == "year" else 2
    if digits and first != "fraction":
        precision = int(digits)
    decimals = 0
    if last == "fraction":
        decimals = int(fraction or digits or 3)
    if not 1 <= precision <= 9 or decimals > 5 or (last == "fraction" and not decimals):
        raise DataError(f"{name} {first} to {last} has a precision that no such type has.")
    # Seconds are the last whole field, so a fraction adds no digits here.
    whole = 0 if first == "fraction" else precision + 2 * (min(low, 5) - high)
    return ColumnType(
        form=ValueForm(name),
        size=1 + (whole + 1) // 2 + (decimals + 1) // 2,
        sql=_sql_of_time(name, first, last, decimals, whole),
        precision=precision,
        first=first,
        last=last,
        fraction=decimals,
    )


def _sql_of_time(name: str, first: str, last: str, decimals: int, digits: int) -> str:
    """Return the SQL type of other databases; varchar if they have none."""
    behind = f"({decimals})" if decimals else ""
    if name == "datetime" and first == "year" and last not in ("year", "month"):
        return "date" if last == "day" else f"timestamp{behind}"
    if name == "datetime" and first == "hour":
        return f"time{behind}"
    # Room for the signs between the fields.
    return f"varchar({digits + decimals + 8})"


# Label, flags, bytes and number of fixed columns, number of varying ones (gbase-cdc.md 2).
_header = Binary(">iIIII").unpack_from
# Quoted names may hold commas and parentheses, so they are one piece.
_pieces = re.compile(r'"(?:[^"]|"")*"|[^,"()]+|.', re.DOTALL).finditer
# A name ends at the first white space, unless it is quoted (gbase-cdc.md 6).
_column = re.compile(r'(?:"((?:[^"]|"")+)"|(\S+))\s+(\S.*)', re.DOTALL).fullmatch
MOST_COLUMNS: Final = 32_767


class CapturedColumn(Struct, frozen=True, kw_only=True):
    """A column by its name and type."""

    name: str
    type: ColumnType
    written: str
    """The type as the stream writes it."""


class CapturedLayout(Struct, frozen=True, kw_only=True, dict=True):
    """What the rows with a label look like: first the columns of fixed length, then those of
    varying length.
    """

    label: int
    columns: tuple[CapturedColumn, ...]

    @cached_property
    def fixed(self) -> tuple[CapturedColumn, ...]:
        return tuple(column for column in self.columns if column.type.size is not None)

    @cached_property
    def varying(self) -> tuple[CapturedColumn, ...]:
        return tuple(column for column in self.columns if column.type.size is None)

    @cached_property
    def fixed_bytes(self) -> int:
        return sum(column.type.size or 0 for column in self.fixed)


def read_layout(data: bytes, header_size: int) -> CapturedLayout:
    """Read the layout in a TABSCHEM record.

    DataError if its text contradicts the numbers in its header.
    """
    label, _, fixed_bytes, nfixed, nvar = _header(data, 16)
    try:
        text = data[header_size:].partition(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"The columns of label {label} are no UTF-8: {error.reason} at byte {error.start}.") from None
    layout = layout_of(label, text)
    for what, stated, actual in (
        ("columns of fixed length", nfixed, len(layout.fixed)),
        ("columns of varying length", nvar, len(layout.varying)),
        ("bytes in columns of fixed length", fixed_bytes, layout.fixed_bytes),
    ):
        if stated != actual:
            raise DataError(f"The columns of label {label} have {actual} {what}, and the header says {stated}.")
    return layout


def layout_of(label: int, text: str) -> CapturedLayout:
    """Parse a layout such as `c1 integer, c2 varchar(20,0)`."""
    columns = tuple(_read_column(label, part) for part in islice(split_columns(text), MOST_COLUMNS))
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise DataError(f"The columns of label {label} have the same name twice.")
    varying = False
    # A row has its fixed columns first (gbase-cdc.md 3), so in another order no row could be read.
    for column in columns:
        if varying and column.type.size is not None:
            raise DataError(f"The column {column.name} of label {label} has a fixed length and comes behind others.")
        varying = varying or column.type.size is None
    return CapturedLayout(label=label, columns=columns)


def split_columns(text: str) -> Iterator[str]:
    """Split at commas outside parentheses and quotes."""
    gathered: list[str] = []
    depth = 0
    for match in _pieces(text):
        piece = match[0]
        depth += (piece == "(") - (piece == ")")
        if piece == "," and depth <= 0:
            yield "".join(gathered)
            gathered = []
        else:
            gathered.append(piece)
    if gathered:
        yield "".join(gathered)


def _read_column(label: int, text: str) -> CapturedColumn:
    match = _column(text.strip())
    if match is None:
        raise DataError(f"The columns of label {label} hold {shorten(text)!r}, which is no name with a type.")
    # In a quoted name a quote is written twice; match[2] is a name without quotes.
    name = match[2] if match[1] is None else match[1].replace('""', '"')
    return CapturedColumn(name=name, type=read_type(match[3]), written=match[3])
