"""PostgreSQL's keys: what a text becomes before it meets a column, and how many of them are asked
for and read at once.

The index of a key column is only used when both sides have its type, hence the types here; whatever
is not listed is compared as text.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace
from sqlalchemy import Connection, text
from sqlalchemy.sql.elements import TextClause

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
from eventlog.databases.postgresql.times import read_date, read_time, read_timestamp, read_timestamptz
from eventlog.databases.postgresql.types import READ_AS_TEXT
from eventlog.sql.access import fetch, in_text
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.homes import find_home
from eventlog.sql.lookup import Answer, Key, KeyComparison, Question, value_text

MANY_KEYS: Final = 100
"""Keys from which on an answer is long; a statement for fewer is prepared, which saves more."""

_NO_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
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
        if question.schema is None:  # a table that somebody has described without it
            question = replace(question, schema=find_home(connection))
        as_text = tuple(form.as_text for form in forms)
        match = tuple(form.match for form in forms)
        query = statement(
            dialect,
            "rows_by_key",
            arrays=", ".join(["CAST(:n AS integer[])", *bound]),
            **lookup_holes(dialect, question, self, as_text, spell=in_text, match=match),
        )
        values = {f"k{index}": _array(array) for index, array in enumerate(arrays)}
        ask = fetch_at_once if len(numbers) >= MANY_KEYS else fetch
        return ask(connection, text(query), {"n": _array(numbers), **values})

    def select_value(self, dialect: Dialect, name: str, column: Column) -> str:
        if column.category is Category.NUMBER and column.made is not Made.TYPE:
            return value_text(dialect, column, name)
        if column.category in READ_AS_TEXT:
            return cast_to_text(dialect, name, column)
        return name

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        if column.category in UNBOUNDED:
            return f"octet_length({self.select_value(dialect, name, column)})"
        return None

    def compare_column(self, dialect: Dialect, column: Column) -> KeyComparison:
        form = _form_of(column)
        compared = "{column}"
        if form.as_text:
            compared = cast_to_text(dialect, "{column}", column)
        return KeyComparison(column=compared, value=f"CAST({{key}} AS {form.bound})", read=form.read)


def _form_of(column: Column) -> PostgresqlKeyForm:
    """Casts and operators of a type that somebody made may be functions of theirs."""
    return postgresql_form("" if column.made is Made.TYPE else column.type)


def _array(values: list[Any]) -> list[Any] | str:
    """Write an array of integers as text: the driver takes three times as long."""
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
    """Read a number of any length; NaN is one, and equals itself."""
    trimmed = written.strip()
    if trimmed in _NO_NUMBERS or (_long_number(trimmed) and any(map(str.isdigit, trimmed))):
        return Decimal(trimmed)
    return number_of(written)


def _real(written: str, form: str) -> float | None:
    """Read a binary fraction of a `struct` format; None if it would overflow or underflow."""
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


_TEXT: Final = PostgresqlKeyForm(bound="text", read=_text_without_nul)
_AS_TEXT: Final = PostgresqlKeyForm(bound="text", read=_text_without_nul, as_text=True)
_WHOLE: Final = PostgresqlKeyForm(bound="bigint", read=_whole)
_NUMERIC: Final = PostgresqlKeyForm(bound="numeric", read=_numeric)
_TIMESTAMP: Final = PostgresqlKeyForm(bound="timestamp", read=reader_of(read_timestamp))
_TIMESTAMPTZ: Final = PostgresqlKeyForm(bound="timestamptz", read=reader_of(read_timestamptz))
_TIME: Final = PostgresqlKeyForm(bound="time", read=reader_of(read_time))
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
    "date": PostgresqlKeyForm(bound="date", read=reader_of(read_date)),
    "uuid": PostgresqlKeyForm(bound="uuid", read=reader_of(UUID)),
    # As the type compares, without its operators, which a schema of somebody's may have.
    "citext": PostgresqlKeyForm(
        bound="text", read=_text_without_nul, as_text=True, match="lower({column}) = lower({key})"
    ),
    "bytea": PostgresqlKeyForm(bound="bytea", read=octets_of),
}
_arguments = re.compile(r"\([^)]*\)")


def postgresql_form(sql_type: str) -> PostgresqlKeyForm:
    """Choose how keys of this type are bound; unlisted types as text."""
    name = _arguments.sub("", sql_type.lower()).partition(" collate ")[0]
    return FORMS.get(" ".join(name.split()), _AS_TEXT)


# psycopg's placeholders, and a percent sign that is one.
_hole = re.compile(r"%\((\w+)\)s|%%")


def fetch_at_once(
    connection: Connection, query: TextClause, parameters: Mapping[str, int | str | list[Any]]
) -> list[tuple[Any, ...]]:
    """Fetch a lone statement's rows with libpq, so that no other thread is held up.

    psycopg returns to Python for each 16 KB; while another thread computes, each return waits for
    the interpreter's lock, as long in sum as reading the rows. On other databases, in transactions
    and with arrays this is `fetch`.
    """
    driver: Any = connection.connection.driver_connection
    plain = all(isinstance(value, int | str) for value in parameters.values())
    # In a transaction the library's answer would pass by the state that the driver keeps of it.
    if not plain or not hasattr(driver, "pgconn") or not driver.autocommit or keeps_any_bytes(driver):
        return fetch(connection, query, parameters)
    # As the driver writes it: the session's encoding is the database's own.
    encoding, values = driver.info.encoding, list[bytes]()

    def number_hole(hole: re.Match[str]) -> str:
        if hole[1] is None:
            return "%"
        values.append(str(parameters[hole[1]]).encode(encoding))
        return f"${len(values)}"

    statement = _hole.sub(number_hole, str(query.compile(connection)))
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
