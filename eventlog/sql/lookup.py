"""How each database is asked for many rows at once: one statement, bound keys, answers numbered like the keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import Category, bare_type
from eventlog.sql import keyforms, mysqlkeys
from eventlog.sql.access import fetched, in_text
from eventlog.sql.atonce import fetched_at_once
from eventlog.sql.dialect import Dialect
from eventlog.sql.oracletypes import OracleKeyForm, has_order, oracle_form, oracle_value
from eventlog.sql.queries import statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

Key = tuple[str, ...]
Answer = tuple[Any, ...]
"""The number of the key, then the selected values."""


CHARACTER_BYTES: Final = 4
"""What a character has at most."""

UNBOUNDED: Final = frozenset({Category.STRING, Category.OCTET})
"""What may be long, unless its type says how long it is at most."""

MANY: Final = 100
"""Keys from which on an answer is long; a statement for fewer is prepared, which saves more."""


class Question(Struct, frozen=True, kw_only=True):
    """Which columns of which table, and the columns that hold the keys; all names are the catalog's."""

    schema: str | None
    table: str
    matched: tuple[Column, ...]
    selected: tuple[Column, ...]
    several: bool = False
    """Whether a key may have several rows; they are ordered by their values then, so that they repeat."""
    plain: int | None = None
    """How many bytes a value may have at most; of a row with a longer one the bytes of all its values come, as the last
    column of every answer, and NULL instead of the value."""
    nobody: bool = False
    """No row is asked for: only whether the database would answer at all."""


class Lookup(Protocol):
    """One database's way of looking up keys. With `keeps_lengths` no value is longer than its column's type says."""

    @property
    def keeps_lengths(self) -> bool: ...

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        """The rows that have the keys, in the order of the keys; keys that cannot be values of their columns have none."""

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        """SQL for what is read of a column."""

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        """SQL for how many bytes that has; None where it is never many."""


class ArrayLookup:
    """One array for each key column: the planner knows how many keys come, and no limit is in the way."""

    keeps_lengths: Final = True
    as_text: Final = frozenset({Category.STRING, Category.DATE, Category.TIME, Category.TIMESTAMP})
    """Read as text: PostgreSQL's times reach further than Python's, and its other types are text to a consumer."""

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        from sqlalchemy import text

        forms = [
            keyforms.postgresql_form(column.type if column.made is not Made.TYPE else "") for column in question.matched
        ]
        numbers, arrays = _readable([form.read for form in forms], keys)
        if not numbers:
            return []
        bound = [f"CAST(:k{place} AS {form.bound}[])" for place, form in enumerate(forms)]
        query = statement(
            dialect,
            "rows_by_key",
            arrays=", ".join(["CAST(:n AS integer[])", *bound]),
            **_holes(dialect, question, self, [form.as_text for form in forms], spell=in_text),
        )
        values = {f"k{place}": _array(array) for place, array in enumerate(arrays)}
        ask = fetched_at_once if len(numbers) >= MANY else fetched
        return ask(connection, text(query), {"n": _array(numbers), **values})

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        return _as_text(dialect, name, column) if column.category in self.as_text else name

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        return f"octet_length({self.selected(dialect, name, column)})" if column.category in UNBOUNDED else None


def _array(values: list[Any]) -> list[Any] | str:
    """Whole numbers as PostgreSQL writes an array of them: its driver takes three times as long to do that."""
    return "{" + ",".join(map(str, values)) + "}" if type(values[0]) is int else values


class ListLookup:
    """A list of keys in the statement, each value a parameter, split where the database limits their number."""

    keeps_lengths: Final = False

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        # Without a declared type SQLite compares nothing with text but text.
        as_text = [column.type.strip().lower() in ("", "null") for column in question.matched]
        numbers, columns = _readable([_list_reader(column.category) for column in question.matched], keys)
        width = len(question.matched)
        holes = _holes(dialect, question, self, as_text, spell=str)
        found: list[Answer] = []
        for start, end in _stretches(len(numbers), _parameter_limit(connection) // width):
            places = ", ".join(["?"] * width)
            listed = ", ".join([f"({number}, {places})" for number in numbers[start:end]])
            rows = zip(*(column[start:end] for column in columns), strict=True)
            values = tuple(value for row in rows for value in row)
            found += fetched(connection, statement(dialect, "rows_by_key", keys=listed, **holes), values)
        return found

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        return name

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        return f"length(CAST({name} AS blob))" if column.category in UNBOUNDED else None


class MysqlLookup:
    """The keys as one JSON text, which the server reads as a table whose columns have the types of the key's."""

    keeps_lengths: Final = True
    as_text: Final = frozenset({Category.DATE, Category.TIME, Category.TIMESTAMP})
    """Read as text: a date of MySQL may be zero, and its times are no times of day."""
    long_types: Final = frozenset(
        {"char", "varchar", "text", "mediumtext", "longtext", "json"}
        | {"binary", "varbinary", "blob", "mediumblob", "longblob"}
    )
    at_once: Final = 10_000
    """Keys in a statement, because the server takes none longer than max_allowed_packet."""

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        from sqlalchemy import text

        forms = [mysqlkeys.mysql_form(column.type) for column in question.matched]
        numbers, columns = _readable([form.read for form in forms], keys)
        if not numbers:
            return []
        holes = _holes(dialect, question, self, [False] * len(forms), spell=in_text)
        holes["match"] = " AND ".join([*self._compared(connection, dialect, question, forms), *_nobody(question)])
        values = [f", k{place} {form.bound} PATH '$[{place + 1}]'" for place, form in enumerate(forms)]
        query = text(statement(dialect, "rows_by_key", values="".join(values), **holes))
        rows = list(zip(numbers, *columns, strict=True))
        found: list[Answer] = []
        for start, end in _stretches(len(rows), self.at_once):
            found += fetched(connection, query, {"keys": msgspec.json.encode(rows[start:end]).decode()})
        return found

    def _compared(
        self, connection: Connection, dialect: Dialect, question: Question, forms: Sequence[mysqlkeys.MysqlKeyForm]
    ) -> list[str]:
        names = [column.name for column in question.matched]
        known = self._collations(connection, dialect, question) if any(form.collated for form in forms) else {}
        return [
            mysqlkeys.comparison(form, f"found.{in_text(dialect.quoted(name))}", f"asked.k{place}", known.get(name))
            for place, (name, form) in enumerate(zip(names, forms, strict=True))
        ]

    def _collations(
        self, connection: Connection, dialect: Dialect, question: Question
    ) -> dict[str, mysqlkeys.Collation]:
        from sqlalchemy import text

        where = {"schema": question.schema, "table": question.table}
        rows = fetched(connection, text(statement(dialect, "column_collations")), where)
        return {name: mysqlkeys.Collation(charset=charset, name=collation) for name, charset, collation in rows}

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        if column.category in self.as_text:
            return f"CAST({name} AS CHAR)"
        return mysqlkeys.selected(name, column.type)

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        return f"LENGTH({name})" if bare_type(column.type) in self.long_types else None


class JsonTableLookup:
    """All keys in one JSON document of any length, bound as a LOB; comparisons by the rules of Oracle's types."""

    keeps_lengths: Final = True

    def ask(self, connection: Connection, dialect: Dialect, question: Question, keys: Sequence[Key]) -> list[Answer]:
        from eventlog.sql.longtext import with_long_text

        forms = [oracle_form(column.type) for column in question.matched]
        numbers, columns = _readable([form.read for form in forms], keys)
        if not numbers:
            return []
        holes = _holes(dialect, question, self, [False] * len(forms), spell=in_text)
        query = statement(dialect, "rows_by_key", **holes | self._taken_apart(dialect, question, forms))
        document = _numbers_as_such.encode(list(zip(numbers, *columns, strict=True))).decode()
        return fetched(connection, with_long_text(query, "keys"), {"keys": document})

    def selected(self, dialect: Dialect, name: str, column: Column) -> str:
        return oracle_value(column.type, name)

    def length(self, dialect: Dialect, name: str, column: Column) -> str | None:
        return f"DBMS_LOB.GETLENGTH({name})" if bare_type(column.type) in ("clob", "nclob", "blob") else None

    def _taken_apart(self, dialect: Dialect, question: Question, forms: Sequence[OracleKeyForm]) -> dict[str, str]:
        """The document's columns, how they meet the table's, and an order without what cannot be sorted by."""
        names = [f"k{place} {form.bound} PATH '$[{place + 1}]'" for place, form in enumerate(forms)]
        found = [f"found.{in_text(dialect.quoted(column.name))}" for column in question.matched]
        match = [form.match.format(column=found[place], key=f"asked.k{place}") for place, form in enumerate(forms)]
        ordered = [2 + place for place, column in enumerate(question.selected) if has_order(column.type)]
        return {
            "names": "(" + ", ".join(["n NUMBER PATH '$[0]'", *names]) + ")",
            "match": " AND ".join([*match, *_nobody(question)]),
            "order": ", ".join(map(str, [1, *(ordered if question.several else [])])),
        }


_stated: Final = re.compile(r"(?i)(?:char|varchar|character|character varying|binary|varbinary)\((\d+)\)").fullmatch

_numbers_as_such: Final = msgspec.json.Encoder(decimal_format="number")

LOOKUPS: Final[Mapping[str, Lookup]] = {
    "postgresql": ArrayLookup(),
    "sqlite": ListLookup(),
    "mysql": MysqlLookup(),
    "oracle": JsonTableLookup(),
}


def lookup_of(dialect: Dialect) -> Lookup:
    """The way of this database; ConfigError where there is none yet."""
    found = LOOKUPS.get(dialect.name)
    if found is None:
        raise ConfigError(f"Rows cannot be read back on {dialect.name} yet; use events of the types 1 to 4 there.")
    return found


def _as_text(dialect: Dialect, name: str, column: Column) -> str:
    """A column as text; a cast of a type that somebody made could be a function of theirs."""
    return statement(dialect, "made_type", value=name) if column.made is Made.TYPE else f"CAST({name} AS text)"


def _holes(
    dialect: Dialect,
    question: Question,
    lookup: Lookup,
    as_text: Sequence[bool],
    *,
    spell: Callable[[str], str],
) -> dict[str, str]:
    def name(column: Column) -> str:
        return f"found.{spell(dialect.quoted(column.name))}"

    selected = [lookup.selected(dialect, name(column), column) for column in question.selected]
    sizes = []
    if question.plain is not None:
        lengths = [_length(lookup, dialect, name(column), column, question.plain) for column in question.selected]
        selected = [
            text if length is None else f"CASE WHEN {length} <= {question.plain} THEN {text} END"
            for text, length in zip(selected, lengths, strict=True)
        ]
        sizes = [_size([length for length in lengths if length is not None], question.plain)]
    keys = [
        _as_text(dialect, name(column), column) if cast else name(column)
        for column, cast in zip(question.matched, as_text, strict=True)
    ]
    matched = [f"{key} = asked.k{place}" for place, key in enumerate(keys)]
    ordered = range(1, len(selected) + 2) if question.several else [1]
    return {
        "columns": ", ".join(["asked.n", *selected, *sizes]),
        "names": ", ".join(["n", *(f"k{place}" for place in range(len(keys)))]),
        "table": spell(dialect.qualified(question.schema, question.table)),
        "match": " AND ".join([*matched, *_nobody(question)]),
        "order": ", ".join(map(str, ordered)),
    }


def _nobody(question: Question) -> list[str]:
    """The condition that no row meets, where none is asked for; the others stay, for they may be what is wrong."""
    return ["1 = 0"] if question.nobody else []


def _length(lookup: Lookup, dialect: Dialect, name: str, column: Column, plain: int) -> str | None:
    """SQL for the length of a value; None where its type says that it is never longer than that."""
    length = lookup.length(dialect, name, column)
    stated = _stated(column.type) if lookup.keeps_lengths else None
    if stated is not None and int(stated[1]) * CHARACTER_BYTES <= plain:
        return None
    return length


def _size(lengths: Sequence[str], plain: int) -> str:
    """SQL for the bytes of all values of a row in which one is too long to come with the others."""
    if not lengths:
        return "NULL"
    long = " OR ".join(f"{length} > {plain}" for length in lengths)
    return f"CASE WHEN {long} THEN {' + '.join(f'COALESCE({length}, 0)' for length in lengths)} END"


def _readable(readers: Sequence[Callable[[str], Any]], keys: Sequence[Key]) -> tuple[list[int], list[list[Any]]]:
    """The numbers of the keys that can be values of their columns, and the values, a list for each column."""
    columns = [[read(key[place]) for key in keys] for place, read in enumerate(readers)]
    if not any(None in column for column in columns):
        return list(range(len(keys))), columns
    numbers = [number for number in range(len(keys)) if all(column[number] is not None for column in columns)]
    return numbers, [[column[number] for number in numbers] for column in columns]


def _list_reader(category: Category) -> Callable[[str], Any]:
    return _LIST_READERS.get(category, keyforms.text)


_LIST_READERS: Final = {Category.OCTET: keyforms.octets, Category.STATE: keyforms.state}
"""Everything else is bound as text, which SQLite converts to what the column prefers, as it did when it was stored."""


def _stretches(count: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, size):
        yield start, min(start + size, count)


def _parameter_limit(connection: Connection) -> int:
    """How many parameters a statement may have here; SQLite is built with different limits."""
    import sqlite3

    driver: Any = connection.connection.driver_connection
    return int(driver.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))
