"""PostgreSQL's keys: what a text becomes before it meets a column, and how many of them are asked
for and read at once.

The index of a key column is only used when both sides have its type, hence the types here; whatever
is not listed is compared as text.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.sql.elements import TextClause

from eventlog.core.rules.times import read_clock, read_moment
from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import Category
from eventlog.databases.lookups import (
    UNBOUNDED,
    KeyForm,
    cast_to_text,
    lookup_holes,
    number_of,
    octets_of,
    readable,
    reader_of,
    text_of,
    truth_of,
)
from eventlog.databases.postgresql.any_bytes import keeps_any_bytes
from eventlog.databases.postgresql.types import READ_AS_TEXT
from eventlog.sql.access import fetched, in_text
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.lookup import Answer, Key, KeyComparison, Question, value_text

MANY_KEYS: Final = 100
"""Keys from which on an answer is long; a statement for fewer is prepared, which saves more."""

LAST_YEARS: Final = {"date": 5_874_897, "timestamp": 294_276}
FIRST_DAY: Final = (-4712, 11, 24)
"""What PostgreSQL's dates and times reach; the years before Christ are counted from 0 down."""

_NO_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_ENDLESS: Final = frozenset({"infinity", "-infinity"})
# PostgreSQL has years that Python has not: beyond 9999, and before Christ.
_far_moment = re.compile(r"(\d{4,7})-(\d\d)-(\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?))?( BC)?", re.ASCII).fullmatch
# PostgreSQL takes 24:00 for the end of a day.
_midnight = re.compile(r"24:00(?::00(?:\.0{1,9})?)?", re.ASCII).fullmatch
# NUMERIC has up to 131,072 digits before the point, and 16,383 behind it.
_long_number = re.compile(r"-?[0-9]{0,131072}(?:\.[0-9]{0,16383})?").fullmatch
# BIGINT has up to 19 digits.
_integer = re.compile(r"[+-]?[0-9]{1,19}").fullmatch


class PostgresqlKeyForm(KeyForm, frozen=True, kw_only=True):
    """With `as_text` the column is compared as a text."""

    as_text: bool = False


class ArrayLookup:
    """One array for each key column: the planner knows how many keys come, and no limit is in the
    way.
    """

    keeps_lengths: Final = True

    def ask(
        self,
        connection: Connection,
        dialect: Dialect,
        question: Question,
        keys: Sequence[Key],
    ) -> list[Answer]:
        forms = [_form_of(column) for column in question.matched]
        numbers, arrays = readable([form.read for form in forms], keys)
        if not numbers:
            return []
        bound = [f"CAST(:k{index} AS {form.bound}[])" for index, form in enumerate(forms)]
        as_text = tuple(form.as_text for form in forms)
        query = statement(
            dialect,
            "rows_by_key",
            arrays=", ".join(["CAST(:n AS integer[])", *bound]),
            **lookup_holes(dialect, question, self, as_text, spell=in_text),
        )
        values = {f"k{index}": _array(array) for index, array in enumerate(arrays)}
        ask = fetched_at_once if len(numbers) >= MANY_KEYS else fetched
        return ask(connection, text(query), {"n": _array(numbers), **values})

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        if column.category is Category.NUMBER and column.made is not Made.TYPE:
            return value_text(dialect, column, name)
        if column.category in READ_AS_TEXT:
            return cast_to_text(dialect, name, column)
        return name

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        if column.category in UNBOUNDED:
            return f"octet_length({self.selected(dialect, name, column)})"
        return None

    def compared(self, dialect: Dialect, column: Column) -> KeyComparison:
        form = _form_of(column)
        compared = "{column}"
        if form.as_text:
            compared = cast_to_text(dialect, "{column}", column)
        return KeyComparison(column=compared, value=f"CAST({{key}} AS {form.bound})", read=form.read)


def _form_of(column: Column) -> PostgresqlKeyForm:
    """Casts and operators of a type that somebody made may be functions of theirs."""
    return postgresql_form("" if column.made is Made.TYPE else column.type)


def _array(values: list[Any]) -> list[Any] | str:
    """Whole numbers as PostgreSQL writes an array of them: its driver takes three times as long to
    do that.
    """
    if type(values[0]) is int:
        return "{" + ",".join(map(str, values)) + "}"
    return values


def _text_without_nul(written: str) -> str | None:
    if "\0" in written:  # which the server takes in no text
        return None
    return text_of(written)


def _whole(written: str) -> int | None:
    trimmed = written.strip()
    if not _integer(trimmed):
        return None
    value = int(trimmed)
    return value if -(2**63) <= value < 2**63 else None


def _numeric(written: str) -> Decimal | None:
    """A number of any length that a column can hold; NaN is one, and equal to itself."""
    trimmed = written.strip()
    if trimmed in _NO_NUMBERS or (_long_number(trimmed) and any(map(str.isdigit, trimmed))):
        return Decimal(trimmed)
    return number_of(written)


def _real(written: str, form: str) -> float | None:
    """A binary fraction with as many bytes as a form of `struct` has; no text becomes infinite that
    does not say so, and none becomes nought by too few bytes.
    """
    if "_" in written:  # which Python takes between digits
        return None
    value = float(written)
    if written in _NO_NUMBERS:
        return value
    try:
        (kept,) = struct.unpack(form, struct.pack(form, value))
    except OverflowError:
        return None
    return value if math.isfinite(kept) and bool(kept) == bool(value) else None


def _time(written: str) -> str | None:
    # Python has no hour 24, which is a time of its own here.
    if _midnight(written):
        return "24:00:00"
    clock = read_clock(written)
    return clock.isoformat() if clock.tzinfo is None else None


def _day(written: str) -> str | None:
    try:
        return dt.date.fromisoformat(written).isoformat()
    except ValueError:
        return _far(written, LAST_YEARS["date"])


def _plain_moment(written: str) -> str | None:
    try:
        moment = read_moment(written)
    except ValueError:
        return _far(written, LAST_YEARS["timestamp"])
    return moment.isoformat(" ") if moment.tzinfo is None else None


def _moment(written: str) -> str | None:
    """Without a zone a time is in UTC, as our triggers write it."""
    try:
        moment = read_moment(written)
    except ValueError:
        return _far(written, LAST_YEARS["timestamp"], "+00")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.isoformat(" ")


def _far(written: str, last: int, zone: str = "") -> str | None:
    """A time beyond the years of Python, as PostgreSQL reads it; its calendar repeats itself every
    400 years.
    """
    if written in _ENDLESS:
        return written
    match = _far_moment(written)
    if match is None:
        return None
    year, month, day, clock, before_christ = match.groups()
    # 1 BC is the year 0.
    number = 1 - int(year) if before_christ else int(year)
    dt.date(number % 400 + 2000, int(month), int(day))  # ValueError where there is no such day
    read_clock(clock or "00:00")
    # Nobody writes a year 0: before the year 1 comes 1 BC.
    if int(year) == 0 or not FIRST_DAY <= (number, int(month), int(day)) <= (last, 12, 31):
        return None
    date = f"{year}-{month}-{day}"
    if clock or zone:
        date = f"{date} {clock or '00:00:00'}{zone}"
    return f"{date}{before_christ or ''}"


_TEXT: Final = PostgresqlKeyForm(bound="text", read=_text_without_nul)
_AS_TEXT: Final = PostgresqlKeyForm(bound="text", read=_text_without_nul, as_text=True)
_WHOLE: Final = PostgresqlKeyForm(bound="bigint", read=_whole)
_NUMERIC: Final = PostgresqlKeyForm(bound="numeric", read=_numeric)
_TIMESTAMP: Final = PostgresqlKeyForm(bound="timestamp", read=reader_of(_plain_moment))
_TIMESTAMPTZ: Final = PostgresqlKeyForm(bound="timestamptz", read=reader_of(_moment))
_TIME: Final = PostgresqlKeyForm(bound="time", read=reader_of(_time))
_DOUBLE: Final = PostgresqlKeyForm(bound="double precision", read=reader_of(partial(_real, form="<d")))
_REAL: Final = PostgresqlKeyForm(bound="real", read=reader_of(partial(_real, form="<f")))

FORMS: Final = {
    **dict.fromkeys(("smallint", "integer", "bigint", "int", "int2", "int4", "int8"), _WHOLE),
    **dict.fromkeys(("serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"), _WHOLE),
    **dict.fromkeys(("numeric", "decimal"), _NUMERIC),
    **dict.fromkeys(("double precision", "float8"), _DOUBLE),
    **dict.fromkeys(("real", "float4"), _REAL),
    "money": PostgresqlKeyForm(bound="money", read=number_of),
    **dict.fromkeys(("boolean", "bool"), PostgresqlKeyForm(bound="boolean", read=truth_of)),
    **dict.fromkeys(("varchar", "character varying", "text"), _TEXT),
    **dict.fromkeys(("char", "character", "bpchar"), PostgresqlKeyForm(bound="bpchar", read=_text_without_nul)),
    **dict.fromkeys(("time", "time without time zone"), _TIME),
    **dict.fromkeys(("timestamp", "timestamp without time zone"), _TIMESTAMP),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), _TIMESTAMPTZ),
    "date": PostgresqlKeyForm(bound="date", read=reader_of(_day)),
    "uuid": PostgresqlKeyForm(bound="uuid", read=reader_of(UUID)),
    "bytea": PostgresqlKeyForm(bound="bytea", read=octets_of),
}
_arguments = re.compile(r"\([^)]*\)")


def postgresql_form(sql_type: str) -> PostgresqlKeyForm:
    """How keys of a column of this type are bound on PostgreSQL; types that are not listed are
    compared as text.
    """
    name = _arguments.sub("", sql_type.lower()).partition(" collate ")[0]
    return FORMS.get(" ".join(name.split()), _AS_TEXT)


# psycopg's placeholders, and a percent sign that is one.
_hole = re.compile(r"%\((\w+)\)s|%%")


def fetched_at_once(
    connection: Connection, query: TextClause, parameters: Mapping[str, int | str | list[Any]]
) -> list[tuple[Any, ...]]:
    """What a lone statement finds, read by the library itself: it holds up no other thread
    meanwhile.

    psycopg comes back to Python for every 16 KB that have arrived; where another thread computes,
    each time costs a change of the interpreter's lock, which together is as much as reading the
    rows. With another database, in a transaction or with arrays it is as `fetched` does it.
    """
    driver: Any = connection.connection.driver_connection
    plain = all(isinstance(value, int | str) for value in parameters.values())
    # In a transaction the library's answer would pass by the state that the driver keeps of it.
    if not plain or not hasattr(driver, "pgconn") or not driver.autocommit or keeps_any_bytes(driver):
        return fetched(connection, query, parameters)
    # As the driver writes it: the session's encoding is the database's own.
    encoding, values = driver.info.encoding, list[bytes]()

    def numbered(hole: re.Match[str]) -> str:
        if hole[1] is None:
            return "%"
        values.append(str(parameters[hole[1]]).encode(encoding))
        return f"${len(values)}"

    statement = _hole.sub(numbered, str(query.compile(connection)))
    return _rows(driver, driver.pgconn.exec_params(statement.encode(encoding), values))


def _rows(driver: Any, result: Any) -> list[tuple[Any, ...]]:
    from psycopg import OperationalError, errors, pq
    from psycopg.adapt import Transformer

    if result.status != pq.ExecStatus.TUPLES_OK:
        # The library says it: the connection is gone.
        if result.error_field(pq.DiagnosticField.SQLSTATE) is None:
            raise OperationalError(result.get_error_message())
        raise errors.error_from_result(result)
    reading = Transformer(driver)
    reading.set_pgresult(result)
    rows: list[tuple[Any, ...]] = reading.load_rows(0, result.ntuples, tuple)
    return rows
