"""PostgreSQL's keys: what a text becomes before it meets a column, and how many of them are asked for at once.

The index of a key column is only used when both sides have its type, hence the types here; whatever is not listed is
compared as text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgspec import Struct

from eventlog.core.schema import Column, Made
from eventlog.sql.access import fetched, in_text
from eventlog.sql.keyforms import number, octets, reader, state, text
from eventlog.sql.lookup import UNBOUNDED, Answer, Key, KeyComparison, Question, cast_to_text, lookup_holes, readable
from eventlog.sql.postgresql.at_once import fetched_at_once
from eventlog.sql.postgresql.types import READ_AS_TEXT
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.dialect import Dialect

MANY_KEYS: Final = 100
"""Keys from which on an answer is long; a statement for fewer is prepared, which saves more."""

_integer = re.compile(r"[+-]?[0-9]{1,19}").fullmatch


class PostgresqlKeyForm(Struct, frozen=True, kw_only=True):
    """How keys of one column type are bound: `read` gives None for text that is no such value."""

    bound: str
    read: Callable[[str], Any]
    as_text: bool = False


class ArrayLookup:
    """One array for each key column: the planner knows how many keys come, and no limit is in the way."""

    keeps_lengths: Final = True

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        from sqlalchemy import text as sql_text

        forms = [_form_of(column) for column in question.matched]
        numbers, arrays = readable([form.read for form in forms], keys)
        if not numbers:
            return []
        bound = [f"CAST(:k{place} AS {form.bound}[])" for place, form in enumerate(forms)]
        query = statement(
            dialect,
            "rows_by_key",
            arrays=", ".join(["CAST(:n AS integer[])", *bound]),
            **lookup_holes(dialect, question, self, [form.as_text for form in forms], spell=in_text),
        )
        values = {f"k{place}": _array(array) for place, array in enumerate(arrays)}
        ask = fetched_at_once if len(numbers) >= MANY_KEYS else fetched
        return ask(connection, sql_text(query), {"n": _array(numbers), **values})

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        return cast_to_text(dialect, name, column) if column.category in READ_AS_TEXT else name

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        return f"octet_length({self.selected(dialect, name, column)})" if column.category in UNBOUNDED else None

    def compared(self, dialect: Dialect, column: Column) -> KeyComparison:
        form = _form_of(column)
        return KeyComparison(
            column=cast_to_text(dialect, "{column}", column) if form.as_text else "{column}",
            value=f"CAST({{key}} AS {form.bound})",
            read=form.read,
        )


def _form_of(column: Column) -> PostgresqlKeyForm:
    """Casts and operators of a type that somebody made may be functions of theirs."""
    return postgresql_form("" if column.made is Made.TYPE else column.type)


def _array(values: list[Any]) -> list[Any] | str:
    """Whole numbers as PostgreSQL writes an array of them: its driver takes three times as long to do that."""
    return "{" + ",".join(map(str, values)) + "}" if type(values[0]) is int else values


def _text_without_nul(written: str) -> str | None:
    return None if "\0" in written else text(written)


def _whole(written: str) -> int | None:
    value = int(written) if _integer(written.strip()) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _plain_time(written: str) -> dt.time | None:
    found = dt.time.fromisoformat(written)
    return found if found.tzinfo is None else None


def _plain_moment(written: str) -> dt.datetime | None:
    found = dt.datetime.fromisoformat(written)
    return found if found.tzinfo is None else None


def _moment(written: str) -> dt.datetime:
    """Without a zone a time is in UTC, as our triggers write it."""
    found = dt.datetime.fromisoformat(written)
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


_TEXT: Final = PostgresqlKeyForm(bound="text", read=_text_without_nul)
_AS_TEXT: Final = PostgresqlKeyForm(bound="text", read=_text_without_nul, as_text=True)
_WHOLE: Final = PostgresqlKeyForm(bound="bigint", read=_whole)
_NUMERIC: Final = PostgresqlKeyForm(bound="numeric", read=number)
_TIMESTAMP: Final = PostgresqlKeyForm(bound="timestamp", read=reader(_plain_moment))
_TIMESTAMPTZ: Final = PostgresqlKeyForm(bound="timestamptz", read=reader(_moment))
_TIME: Final = PostgresqlKeyForm(bound="time", read=reader(_plain_time))
_DOUBLE: Final = PostgresqlKeyForm(bound="double precision", read=reader(float))

FORMS: Final = {
    **dict.fromkeys(("smallint", "integer", "bigint", "int", "int2", "int4", "int8"), _WHOLE),
    **dict.fromkeys(("serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"), _WHOLE),
    **dict.fromkeys(("numeric", "decimal"), _NUMERIC),
    **dict.fromkeys(("double precision", "float8"), _DOUBLE),
    **dict.fromkeys(("boolean", "bool"), PostgresqlKeyForm(bound="boolean", read=state)),
    **dict.fromkeys(("varchar", "character varying", "text"), _TEXT),
    **dict.fromkeys(("char", "character", "bpchar"), PostgresqlKeyForm(bound="bpchar", read=_text_without_nul)),
    **dict.fromkeys(("time", "time without time zone"), _TIME),
    **dict.fromkeys(("timestamp", "timestamp without time zone"), _TIMESTAMP),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), _TIMESTAMPTZ),
    "date": PostgresqlKeyForm(bound="date", read=reader(dt.date.fromisoformat)),
    "uuid": PostgresqlKeyForm(bound="uuid", read=reader(UUID)),
    "bytea": PostgresqlKeyForm(bound="bytea", read=octets),
}
_arguments = re.compile(r"\([^)]*\)")


def postgresql_form(sql_type: str) -> PostgresqlKeyForm:
    """How keys of a column of this type are bound on PostgreSQL; types that are not listed are compared as text."""
    name = _arguments.sub("", sql_type.lower()).partition(" collate ")[0]
    return FORMS.get(" ".join(name.split()), _AS_TEXT)
