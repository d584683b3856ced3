"""Values: what a column's value is called in XDS, and its text; or the refusal of one that its
column cannot hold.

Text comes from the log, Python values from reading back; both end in the same text. Numbers with a
fraction are strings in XDS and pass as the database wrote them, for money and locales have forms of
their own.

Fields: the ready pieces of each attribute of a table, and how its values are written.

A change then costs the concatenation of ready pieces and its own values; a million field edits a
second hang on it.

Characters: what XML 1.0 can carry, what must be escaped, and the refusal of what it cannot carry.

The rule: U+0000 to U+0008, U+000B, U+000C, U+000E to U+001F, U+FFFE, U+FFFF and lone surrogates
have no form in XML 1.0, not even an escaped one. They are refused by name and place, because a
replacement would be a silent loss.

Dates and times: from the log's text or the database's value to one of the three time syntaxes.

1: seconds since 1970-01-01 UTC, unsigned 32 bit. 2: `CCYYMMDDHHMMSSNNNNNNNNN`. 3: `yyyy-mm-dd
hh:mm:ss.fffffffff`. A value without a zone counts as UTC. Syntaxes 2 and 3 write a date column as a
date and a time column as a time of day, unless the value says more (Oracle's DATE has a time of
day): then in full, so that nothing is lost.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Literal

from msgspec import Struct

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.model import ABSENT, RowId
from eventlog.core.references import Reference, find_referenced, make_reference
from eventlog.core.schema import Catalog, Table
from eventlog.core.sql_types import Category, truth_of
from eventlog.core.tablekey import quote_value
from eventlog.core.times import in_iso_form

FORBIDDEN = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
# One search tells both: what must be escaped, and what cannot be carried at all.
special = re.compile(f"[&<>\r{FORBIDDEN}]").search
"""Finds a character that cannot stand as it is; nearly every value has none, and is written
untouched.
"""
_forbidden = re.compile(f"[{FORBIDDEN}]").search
_ATTRIBUTE = str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


def escape(text: str) -> str:
    """Escape text for element content. Write a carriage return as a reference: parsers drop a bare one."""
    if special(text) is None:
        return text
    # Before escaping, so that the place in the message is the place in the value. Nothing that is refused is printable.
    if not text.isprintable():
        check(text)
    return write_references(text)


def write_references(text: str) -> str:
    """Escape text that has characters which cannot stand as they are, and none that XML cannot carry."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def attribute(text: str) -> str:
    """Escape text for an attribute's value, where parsers turn a bare tab or newline into a blank."""
    return escape(text).translate(_ATTRIBUTE)


def check(text: str) -> None:
    """Refuses text that XML 1.0 cannot carry."""
    match = _forbidden(text)
    if match is not None:
        number, code = match.start() + 1, ord(match[0])
        raise ExpressionError(
            f"character {number} is U+{code:04X}, which XML 1.0 cannot carry; remove it,"
            " or keep the data in a binary column"
        )


TimeSyntax = Literal[1, 2, 3]
EPOCH = dt.date(1970, 1, 1).toordinal()
DAY_SECONDS = 86_400
_DATE = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
_ZONE = r"(?: ?(?:Z|(?P<sign>[+-])(?P<zone_hours>\d\d)(?::?(?P<zone_minutes>\d\d))?))?"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,12}))?)?" + _ZONE
_DB2_TIME = r"(?P<hour>\d\d)\.(?P<minute>\d\d)\.(?P<second>\d\d)(?:\.(?P<fraction>\d{1,12}))?"
_usual = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?", re.ASCII).fullmatch
_ISO = f"{_DATE}(?:[T ]{_TIME})?"
_FORMS = tuple(re.compile(form, re.ASCII | re.IGNORECASE).fullmatch for form in (_ISO, _TIME, _DB2_TIME))


class Moment(Struct, frozen=True):
    """A day (as an ordinal), a second of it, nanoseconds of that, all UTC; the day or the second
    may be unknown.
    """

    day: int | None
    second: int | None
    nanos: int = 0


def moment(value: object) -> Moment:
    """Reads a database's value, or its text in ISO 8601, in Db2's form or in Sybase's style 109."""
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, dt.datetime):
        # Before dt.date, which a datetime is too.
        nanos = value.microsecond * 1000
        return _utc(value.toordinal(), _second(value.time()), nanos, _offset(value.utcoffset()))
    if isinstance(value, dt.date):
        return Moment(value.toordinal(), None)
    if isinstance(value, dt.time):
        return _utc(None, _second(value), value.microsecond * 1000, _offset(value.utcoffset()))
    raise _unread(value)


def time_text(value: object, category: Category, syntax: TimeSyntax) -> str:
    """Write a value of a date, time or timestamp column in the given syntax."""
    # Nearly all of them: a moment in the form that the commonest syntax has, but for its fraction.
    if syntax == 3 and category is Category.TIMESTAMP and type(value) is str and _usual(value):
        with suppress(ValueError):
            dt.datetime.fromisoformat(value[:19])
            return f"{value[:10]} {value[11:19]}.{value[20:]:0<9}"
    at = moment(value)
    # A time of day needs no day; everything else does.
    missing = at.day is None
    if category is Category.TIME:
        missing = at.second is None
    if missing:
        raise ExpressionError(
            f"{value_shown(value)} is not a {category.value}; write it as yyyy-mm-dd hh:mm:ss.fffffffff"
        )
    if syntax == 1:
        # A time of day counts from the first day, so that its seconds are those of a day.
        day = EPOCH if at.day is None else at.day
        seconds = (day - EPOCH) * DAY_SECONDS + (at.second or 0)
        if not 0 <= seconds < 1 << 32:
            raise ExpressionError(
                f"{value_shown(value)} is outside 1970-01-01 00:00:00 to 2106-02-07 06:28:15 UTC,"
                " all that time-syntax 1 can express; choose time-syntax 2 or 3"
            )
        return str(seconds)
    if at.day is None:
        clock = _clock(at, syntax)
        # Syntax 2 has a fixed length, and no room for a fraction of a second.
        if at.nanos and syntax == 3:
            return f"{clock}.{at.nanos:09d}"
        return clock
    if category is Category.DATE and not at.second and not at.nanos:
        return _calendar(at.day, syntax)
    if syntax == 2:
        return f"{_calendar(at.day, syntax)}{_clock(at, syntax)}{at.nanos:09d}"
    return f"{_calendar(at.day, syntax)} {_clock(at, syntax)}.{at.nanos:09d}"


def _calendar(day: int, syntax: TimeSyntax) -> str:
    date = dt.date.fromordinal(day).isoformat()
    return date.replace("-", "") if syntax == 2 else date


def _clock(at: Moment, syntax: TimeSyntax) -> str:
    minutes, second = divmod(at.second or 0, 60)
    hour, minute = divmod(minutes, 60)
    if syntax == 2:
        return f"{hour:02d}{minute:02d}{second:02d}"
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def _from_text(text: str) -> Moment:
    try:
        trimmed = in_iso_form(text.strip(" "))
        match = next((match for form in _FORMS if (match := form(trimmed)) is not None), None)
        if match is not None:
            # Groups that took no part are left out, so that a default can stand for them.
            groups = {name: digits for name, digits in match.groupdict().items() if digits}
            day = None
            if "year" in groups:
                date = dt.date(int(groups["year"]), int(groups["month"]), int(groups["day"]))
                day = date.toordinal()
            if "hour" not in groups:
                return Moment(day, None)
            second = int(groups.get("second", 0))
            second = _second(dt.time(int(groups["hour"]), int(groups["minute"]), second))
            # Finer than a nanosecond no syntax is.
            nanos = int(groups.get("fraction", "0").ljust(9, "0")[:9])
            hours, minutes = groups.get("zone_hours", 0), groups.get("zone_minutes", 0)
            zone = dt.timedelta(hours=int(hours), minutes=int(minutes))
            if groups.get("sign") == "-":
                zone = -zone
            return _utc(day, second, nanos, _offset(zone))
    # 30 February, 25 o'clock, a zone that leads out of the calendar
    except (ValueError, ExpressionError):
        pass
    raise _unread(text)


def _utc(day: int | None, second: int, nanos: int, offset: int) -> Moment:
    # The zone can lead into the day before or after, which `divmod` tells as -1 or 1.
    carry, second = divmod(second - offset, DAY_SECONDS)
    if day is None:
        return Moment(None, second, nanos)
    if not 1 <= day + carry <= dt.date.max.toordinal():
        raise ExpressionError("the zone leads out of the years 1 to 9999; correct the value")
    return Moment(day + carry, second, nanos)


def _second(time: dt.time) -> int:
    return time.hour * 3600 + time.minute * 60 + time.second


def _offset(zone: dt.timedelta | None) -> int:
    return 0 if zone is None else zone // dt.timedelta(seconds=1)


def _unread(value: object) -> ExpressionError:
    problem = f"{value_shown(value)} is no date or time that can be read"
    return ExpressionError(f"{problem}; write it as yyyy-mm-dd hh:mm:ss.fffffffff")


ValueText = tuple[str, str]
"""The XDS type and the text, not yet escaped. A tuple, because one is made for every value."""
Reading = Callable[[object], ValueText]

MAX_EXPONENT = 200_000
"""More digits than any database holds; writing out a larger exponent would only fill the memory."""
_whole = re.compile(r" *([+-]?\d+)(?:\.0*)? *", re.ASCII).fullmatch
_base64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}").fullmatch
_BREAKS = str.maketrans("", "", "\r\n")


def reading(category: Category | None, syntax: TimeSyntax) -> Reading:
    """Choose how to read values of such a column."""
    if category in (Category.DATE, Category.TIME, Category.TIMESTAMP):
        return partial(_time, category=category, syntax=syntax)
    return _read_undescribed if category is None else _READINGS[category]


def _read_undescribed(value: object) -> ValueText:
    if isinstance(value, bytes | bytearray | memoryview):
        return _octet(value)
    return _string(value)


def _string(value: object) -> ValueText:
    """Write text, numbers and times as the databases themselves write them in text."""
    match value:
        case str():
            return "string", value
        case bool():  # before int, which a bool is too
            return "string", "true" if value else "false"
        case int():
            return "string", _digits(value)
        case Decimal():
            return "string", _decimal(value)
        case float():
            if math.isfinite(value):
                # The shortest digits that give the number again, as databases write them.
                return "string", repr(value).removesuffix(".0")
            return "string", _decimal(Decimal(value))
        case dt.datetime():  # before date, which a datetime is too
            return "string", time_text(value, Category.TIMESTAMP, 3)
        case dt.date():
            return "string", time_text(value, Category.DATE, 3)
        case dt.time():
            return "string", time_text(value, Category.TIME, 3)
    raise _misfit(value, "text")


def _int(value: object) -> ValueText:
    if isinstance(value, str):
        match = _whole(value)
        if match is not None:
            # The digits as they stand: a plus, or leading zeros, are the database's own writing.
            return "int", match[1]
    elif isinstance(value, int):
        # `int` of a truth value, whose text would be a word.
        return "int", _digits(int(value))
    elif isinstance(value, float | Decimal) and _is_whole(value):
        return "int", _decimal(Decimal(value).to_integral_value())
    raise _misfit(value, "a whole number")


def _state(value: object) -> ValueText:
    state = truth_of(value)
    if state is None:
        raise _misfit(value, "a truth value (1, t, true, y, yes or 0, f, false, n, no)")
    return "state", "true" if state else "false"


def _octet(value: object) -> ValueText:
    if isinstance(value, bytes | bytearray | memoryview):
        return "octet", binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, str):
        text = value.translate(_BREAKS) if "\n" in value or "\r" in value else value
        if len(text) % 4 == 0 and _base64(text) is not None:
            return "octet", text
    raise _misfit(value, "binary data in Base64")


def _time(value: object, *, category: Category, syntax: TimeSyntax) -> ValueText:
    text = time_text(value, category, syntax)
    # XDS has a type for seconds since 1970 only.
    if syntax == 1:
        return "time", text
    return "string", text


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python does not write integers of more than 4300 digits
        raise _misfit(value, "a number that a database can hold") from error


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        if value.is_nan():
            return "NaN"
        return "-Infinity" if value.is_signed() else "Infinity"
    if abs(value.adjusted()) > MAX_EXPONENT:
        raise _misfit(value, "a number that a database can hold")
    return format(value, "f")


def _is_whole(value: float | Decimal) -> bool:
    number = Decimal(value)
    # In this order: a whole number of 10^9 digits is never made, only to be compared.
    if not number.is_finite() or abs(number.adjusted()) > MAX_EXPONENT:
        return False
    return number == number.to_integral_value()


def _misfit(value: object, expected: str) -> ExpressionError:
    hint = "correct the value, or the column's type in the schema"
    return ExpressionError(f"{value_shown(value)} is not {expected}; {hint}")


_READINGS: dict[Category, Reading] = {
    Category.STRING: _string,
    Category.NUMBER: _string,
    Category.OCTET: _octet,
    Category.INT: _int,
    Category.STATE: _state,
}


ValueWriter = Callable[[object], str]

Search = Callable[[str], re.Match[str] | None]

always = re.compile("").search
# The second half finds the empty text, which is no number.
not_digits = re.compile(r"[^0-9]|^$").search
_ODD: dict[Category | None, tuple[str, Search]] = {
    None: ("string", special),
    Category.STRING: ("string", special),
    Category.NUMBER: ("string", special),
    Category.INT: ("int", not_digits),
}
"""Which text of the log is not written as it stands; None is a column that nobody described."""


class Settings(Struct, frozen=True, kw_only=True):
    """What the text of an element depends on, besides the change and the catalog."""

    time_syntax: TimeSyntax = 3
    enable_refs: bool = True
    schema_name: str | None = None
    indent: str = ""


class Field(Struct, frozen=True, kw_only=True):
    """The ready pieces of one attribute. A str in which `odd` finds nothing stands as it is after
    `opening`.

    `category` is what its column holds, None where nobody said so; a `reference` names another
    object.
    """

    category: Category | None
    reference: bool
    several: bool
    """It holds the values of a child table's column."""
    odd: Search
    opening: str
    write: ValueWriter
    add: str
    modify: str


class Fields(dict[str, Field]):
    """The fields of a table by attribute name, each made when it is first met."""

    def __init__(
        self,
        table: Table | None,
        catalog: Catalog | None,
        settings: Settings,
        called: Mapping[RowId, str] | None = None,
    ) -> None:
        super().__init__()
        self._table = table
        self._catalog = catalog
        self._settings = settings
        self._called = called or {}

    def calling(self, called: Mapping[RowId, str]) -> Fields:
        """Make the fields of a change that says how the objects are called that its values name."""
        fields = Fields(self._table, self._catalog, self._settings, called)
        # A copy first: other threads add to these.
        fields.update({name: field for name, field in self.copy().items() if not field.reference})
        return fields

    def __missing__(self, name: str) -> Field:
        described = column = category = None
        if self._table is not None:
            described = self._table.loggable.get(name)
        if described is not None:
            column = described.column
            category = column.category
        other: Table | None = None
        if self._settings.enable_refs and column is not None and self._catalog is not None and self._table is not None:
            other = find_referenced(self._catalog, self._table, column)
            # A key of several columns needs more than the one value for its association.
            if other is not None and len(other.key) != 1:
                other = None
        if other is not None and column is not None:
            # The key of the other object, which its table_key writes as the log does, whatever this
            # format's syntax.
            reference = make_reference(other, column)
            write = _reference_writer(reading(category, 3), reference, self._settings.schema_name, self._called)
        else:
            write = _value_writer(reading(category, self._settings.time_syntax))
        kind, odd = _ODD.get(category, ("", always))
        if other is not None:
            # Each value of a reference has an association of its own, and none is ready.
            kind, odd = "", always
        try:
            attribute_name = attribute(name)
        except ExpressionError as error:
            raise ExpressionError(f"the name of attribute {value_shown(name)}: {error}") from error
        indent = self._settings.indent
        made = self[name] = Field(
            category=category,
            reference=other is not None,
            several=described is not None and described.multiple,
            odd=odd,
            opening=f'<value type="{kind}">',
            write=write,
            add=f'\n{indent}  <add-attr attr-name="{attribute_name}">',
            modify=f'\n{indent}  <modify-attr attr-name="{attribute_name}">',
        )
        return made


def association_end(table: str, schema: str | None) -> str:
    """Write the end of an association, behind the key: the table and, if there is one, the schema."""
    return f",table={quote_value(table)}" + (f",schema={quote_value(schema)}" if schema else "")


def values(field: Field, cell: object, name: str) -> list[str]:
    """Write the `<value>` elements of a cell: none for NULL, several for a child table's column."""
    if cell is None or cell is ABSENT:
        return []
    try:
        if isinstance(cell, tuple):
            return [field.write(value) for value in cell if value is not None]
        return [field.write(cell)]
    except ExpressionError as error:
        several = cell if isinstance(cell, tuple) else (cell,)
        # The nearest value is written as text, where the column's own type would refuse it again.
        if any(type(value) is AsText for value in several):
            return [_as_text(field, value) for value in several if value is not None]
        raise ExpressionError(f"attribute {value_shown(name)}: {error}") from error


class AsText(str):
    """Text that is written as it is, although the column's type is another one."""

    __slots__ = ()


def _as_text(field: Field, value: object) -> str:
    if type(value) is AsText:
        return f'<value type="string">{escape(str(value))}</value>'
    return field.write(value)


def _value_writer(read: Reading) -> ValueWriter:
    def write(value: object) -> str:
        kind, text = read(value)
        return f'<value type="{kind}">{escape(text)}</value>'

    return write


def _reference_writer(
    read: Reading, reference: Reference, schema_name: str | None, called: Mapping[RowId, str]
) -> ValueWriter:
    end = association_end(reference.table.name, reference.table.schema or schema_name)

    def write(value: object) -> str:
        _, text = read(value)
        row = reference.row(text)
        association = attribute(f"{called.get(row, row.key)}{end}")
        return f'<value type="dn" association-ref="{association}">{escape(text)}</value>'

    return write
