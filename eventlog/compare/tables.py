"""A side that a database hashes: one of its tables or views, read with SELECT alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, text
from sqlalchemy.sql.elements import TextClause

from eventlog.compare.ranges import Digests, Range, digests
from eventlog.compare.sides import Compared, Hashes, Key, Rows, Totals, batches
from eventlog.compare.texts import (
    BETWEEN,
    HALF_BITS,
    LONG_CHARACTERS,
    NULL,
    are_blanks_equal,
    canonical,
    hash_of,
    kind_of,
    plain_text,
    read_cell,
    reader_of,
    same,
    string_text,
)
from eventlog.core.schema import Column, Made, Table
from eventlog.core.sql_types import EXACT_TYPES, Category, bare_type, category, type_name
from eventlog.qlik.readings import reading_of
from eventlog.qlik.typemap import qlik_type
from eventlog.sql.access import fetch, in_text, moment, transaction
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.lookup import Question, value_text

_length = re.compile(r"(?:char|varchar|character|character varying)\((\d+)\)").fullmatch
SECOND_DIGITS: Final = 9
QUICK_KINDS: Final = frozenset(
    {"int", "number", "float", "state", "date", "timestamp", "zoned", "short", "string"},
)
"""Kinds of values that some database puts into a row's quick hash as they are."""

ASKED_KEYS: Final = 500
"""Rows that are read at once by their keys."""


class Selection(Struct, frozen=True, kw_only=True):
    """What one side's rows are read from: a table, and its columns in the order of those that are
    compared, the key's first.

    `when` is a condition in SQL that the rows meet, in the table's own names. With a `query` they
    are what that gives.
    """

    table: Table
    columns: tuple[Column, ...]
    when: tuple[str, ...] = ()
    query: str | None = None

    def stands(self, dialect: Dialect) -> str:
        """Write the source of its rows, for FROM."""
        if self.query is None:
            return dialect.qualify(self.table.schema, self.table.name)
        return as_table(self.query)


class TableSide:
    """The rows of a table."""

    def __init__(self, engine: Engine, selection: Selection, compared: Compared) -> None:
        self._engine = engine
        self._dialect = dialect_of(engine)
        self._selection = selection
        self._compared = compared
        self._width = len(compared.key)
        self._reads = [reader_of(sql_type) for sql_type in compared.types]
        self._sql = _Statements(self._dialect, selection, compared)

    @property
    def ordered(self) -> bool:
        return self._compared.counted and self._selection.columns[0].category is Category.INT

    @property
    def hashable(self) -> bool:
        """Return True if the database can hash its rows; Oracle hashes no LOB."""
        lobs = [column for column in self._selection.columns if qlik_type(column.type).lob]
        return not (self._dialect.driver.lob_parameters and lobs)

    @property
    def native(self) -> str:
        if not self._sql.native:
            return ""
        return self._dialect.name

    @contextmanager
    def snapshot(self) -> Iterator[TableSnapshot]:
        """Open the table as it is now, for as long as the transaction lasts."""
        what = f"The table {self._selection.table.whole}"
        with moment(self._engine, what) as connection:
            _add_functions(connection, self._dialect)
            yield TableSnapshot(connection, self._sql, self._compared, partial(self._rows_by_key, connection))

    def rows(self, keys: Sequence[Key]) -> Rows:
        """Read the rows with these keys, by the index of the key where there is one."""
        what = f"The table {self._selection.table.whole}"
        with transaction(self._engine, what) as connection:
            _add_functions(connection, self._dialect)
            return self._rows_by_key(connection, keys)

    def _rows_by_key(self, connection: Connection, keys: Sequence[Key]) -> Rows:
        rows: Rows = {}
        # To SQL a NULL equals nothing, so no row has such a key.
        for batch in batches([key for key in keys if None not in key], ASKED_KEYS):
            rows |= self._look_up(connection, batch)
        return rows

    def _look_up(self, connection: Connection, keys: Sequence[Key]) -> Rows:
        columns, width = self._selection.columns, self._width
        question = Question(
            schema=self._selection.table.schema,
            table=self._selection.table.name,
            matched=columns[:width],
            selected=columns,
        )
        types = self._compared.key_types
        texts = [tuple(map(log_text, types, [part or "" for part in key])) for key in keys]
        rows: Rows = {}
        for number, *cells in self._dialect.lookup.ask(connection, self._dialect, question, texts):
            key = keys[number]
            values = [read_cell(read, cell) for read, cell in zip(self._reads, cells, strict=True)]
            # Not strict: behind the key's readers stand those of the other columns.
            asked = [read_cell(read, part) for read, part in zip(self._reads, key, strict=False)]
            # A collation may take 'A' for 'a', which are two objects to those who compare byte by
            # byte.
            if all(map(same, values[:width], asked)):
                rows[key] = tuple(values[width:])
        return rows

    def every(self) -> Iterator[tuple[Any, ...]]:
        """Yield all rows from the driver, the key's values first; in pieces, whatever their number."""
        what = f"The table {self._selection.table.whole}"
        with moment(self._engine, what) as connection:
            _add_functions(connection, self._dialect)
            # Else drivers bring the whole table into memory before the first row.
            streaming = connection.execution_options(stream_results=True, max_row_buffer=1000)
            for cells in streaming.execute(self._sql.whole):
                yield tuple(cells)

    def top(self, column: str) -> Any:
        """Read the highest value of a column."""
        with self.snapshot() as snapshot:
            return snapshot.top(column)

    def since(self, column: str, value: Any) -> list[Key]:
        """Read the keys of rows with at least this value in a column."""
        with self.snapshot() as snapshot:
            return snapshot.since(column, value)


class TableSnapshot:
    """One moment of a table."""

    def __init__(
        self,
        connection: Connection,
        sql: _Statements,
        compared: Compared,
        rows: Callable[[Sequence[Key]], Rows],
    ) -> None:
        self._connection = connection
        self._sql = sql
        self._width = len(compared.key)
        self._floats = [
            (number, reading_of(sql_type))
            for number, sql_type in enumerate(compared.key_types)
            if kind_of(sql_type) == "float"
        ]
        self.rows = rows

    def count(self) -> int:
        return int(self._fetch(self._sql.make_query("compare_count", None), {})[0][0])

    def find_bound(self, after: int | None, rows: int) -> int | None:
        query = self._sql.make_query("compare_bound", Range(after=after, buckets=1))
        answer = self._fetch(query, {"skip": rows - 1} | _bounds(after, None))
        # There are not so many rows, or that one has a NULL there.
        if not answer or answer[0][0] is None:
            return None
        return int(answer[0][0])

    def digests(self, part: Range) -> Digests:
        query = self._sql.make_query("compare_buckets", part)
        return digests(self._fetch(query, _bounds(part.after, part.upto)))

    def totals(self, part: Range) -> Totals:
        """Sum up the whole range as two numbers."""
        query = self._sql.make_query("compare_totals", replace(part, native=self._sql.native), quick=True)
        [(rows, high, low)] = self._fetch(query, _bounds(part.after, part.upto))
        return Totals(rows=int(rows), total=(int(high or 0) << HALF_BITS) + int(low or 0))

    def hashes(self, part: Range, buckets: Sequence[int] | None) -> Hashes:
        hashes: Hashes = {}
        width = self._width
        query = self._sql.make_query("compare_rows", part, buckets)
        for row in self._fetch(query, _bounds(part.after, part.upto)):
            key = self._key(row[:width])
            # A view, or a table whose key nobody enforces, may have it several times.
            count, total = hashes.get(key, (0, 0))
            hashes[key] = (count + 1, total + int(row[width]))
        return hashes

    def top(self, column: str) -> Any:
        return self._fetch(self._sql.of_column("compare_top", column), {})[0][0]

    def since(self, column: str, value: Any) -> list[Key]:
        rows = self._fetch(self._sql.of_column("compare_since", column), {"since": value})
        return [self._key(row) for row in rows]

    def _key(self, cells: Sequence[Any]) -> Key:
        key = [None if cell is None else str(cell) for cell in cells]
        # Each database has its own exponents: 1e-7, 1e-07 and 1e+10 are written as we write them.
        for number, read in self._floats:
            key[number] = plain_text(read_cell(read, cells[number]))
        return tuple(key)

    def _fetch(self, query: TextClause, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return fetch(self._connection, query, parameters)


class _Statements:
    """The SQL of one side."""

    def __init__(self, dialect: Dialect, selection: Selection, compared: Compared) -> None:
        self._dialect = dialect
        table, width = selection.table, len(compared.key)
        row = dialect.quote(table.name)
        names = [f"{row}.{dialect.quote(column.name)}" for column in selection.columns]
        both = list(zip(names, selection.columns, compared.types, strict=True))
        texts = [canonical_sql(dialect, name, column, wanted) for name, column, wanted in both]
        self.native = offers(dialect, "compare_native")
        self._first = names[0]
        self._called = row
        self._key = _join_texts(dialect, texts[:width])
        self._when = selection.when
        self._row = _join_texts(dialect, texts)
        quick = []
        for number, (name, column, sql) in enumerate(zip(names, selection.columns, texts, strict=True), 1):
            quick.append(_quick_sql(dialect, name, column, sql, number))
        self._quick = statement(dialect, "compare_quick", parts=dialect.quick_glue.join(quick))
        self._holes = {
            "table": in_text(selection.stands(dialect)),
            "row": in_text(row),
            "first": in_text(names[0]),
            "keys": in_text(", ".join([_key_sql(dialect, *part) for part in both[:width]])),
        }
        selected = [dialect.lookup.select_value(dialect, name, column) for name, column, _ in both]
        self._values = {
            "keys": ", ".join(selected[:width]),
            "values": ", ".join(selected[width:]) or "NULL",
        }

    @property
    def whole(self) -> TextClause:
        """Asks for every row."""
        holes = self._holes | {hole: in_text(sql) for hole, sql in self._values.items()}
        return text(statement(self._dialect, "compare_whole", **holes, within=self._within(None, None)))

    def of_column(self, query: str, column: str) -> TextClause:
        """Make a query about a column, as the table calls it."""
        name = in_text(f"{self._called}.{self._dialect.quote(column)}")
        holes = self._holes | {"within": self._within(None, None), "column": name}
        return text(statement(self._dialect, query, **holes))

    def make_query(
        self,
        query: str,
        part: Range | None,
        buckets: Sequence[int] | None = None,
        *,
        quick: bool = False,
    ) -> TextClause:
        """Make a query about a range, or about some of its buckets."""
        holes = self._holes | {"within": self._within(part, buckets)}
        if part is not None:
            hashing = "compare_native" if part.native else "compare_hash"
            row_hash = statement(self._dialect, hashing, text=self._row)
            # Not every database has a quicker one.
            if quick and self._quick:
                row_hash = self._quick
            holes["hash"] = in_text(row_hash)
            holes["bucket"] = in_text(self._bucket(part))
        return text(statement(self._dialect, query, **holes))

    def _bucket(self, part: Range) -> str:
        buckets = str(part.buckets)
        if part.counted:
            return statement(self._dialect, "compare_remainder", key=self._first, buckets=buckets)
        return statement(self._dialect, "compare_bucket", text=self._key, buckets=buckets)

    def _within(self, part: Range | None, buckets: Sequence[int] | None) -> str:
        conditions = [f"({condition})" for condition in self._when]
        bounds = []
        if part is not None and part.after is not None:
            bounds.append(f"{in_text(self._first)} > :after")
        if part is not None and part.upto is not None:
            bounds.append(f"{in_text(self._first)} <= :upto")
        # Rows without a number belong to the range without a bound below.
        if part is not None and part.after is None and part.upto is not None:
            bounds = [f"({bounds[0]} OR {in_text(self._first)} IS NULL)"]
        if part is not None and buckets is not None:
            conditions.append(f"{self._bucket(part)} IN ({', '.join(map(str, buckets))})")
        elif part is not None and part.last is not None:
            conditions.append(f"{self._bucket(part)} BETWEEN {part.first} AND {part.last}")
        return " AND ".join([*map(in_text, conditions), *bounds]) or "(1 = 1)"


def canonical_sql(dialect: Dialect, name: str, column: Column, wanted: str) -> str:
    """Write SQL for the canonical text of a column's values as type `wanted`."""
    kind = kind_of(wanted)
    value = name
    if kind == "string":
        value = _comparable_sql(dialect, name, column, wanted)
        # Without the hash of a long text, which costs time for each row.
        if _is_short(dialect, column):
            kind = "short"
    elif kind == "float" and bare_type(column.type) in dialect.type_texts:
        value = value_text(dialect, column, name)
    elif column.category is Category.STRING and not dialect.embedded:
        # Such as a number in a column of texts, which a cast might refuse.
        return string_sql(dialect, name, column)
    return statement(dialect, f"canonical_{kind}", value=value)


def _quick_sql(dialect: Dialect, name: str, column: Column, sql: str, number: int) -> str:
    """Write SQL for a value compared only with the same row at another time.

    It is the canonical text `sql`, or a faster expression that differs for different values.
    `number` is the column's number: it makes equal values of other columns differ.
    """
    kind = "told" if column.made else kind_of(column.type)
    value = name
    if kind == "int" and type_name(column.type) in EXACT_TYPES:
        # Too long for a whole number of the database.
        kind = "number"
    elif kind == "string" and _is_short(dialect, column) and offers(dialect, "quick_short"):
        kind = "short"
    elif kind == "string":
        value = string_sql(dialect, name, column)
    if kind not in QUICK_KINDS or not offers(dialect, f"quick_{kind}"):
        kind, value = "told", sql
    return statement(dialect, f"quick_{kind}", value=value, place=str(number))


def log_text(sql_type: str, text: str) -> str:
    """Convert a canonical text to the form in keys of a log, by which rows are looked up: a time with nine
    digits of a second.
    """
    if category(sql_type) is not Category.TIMESTAMP:
        return text
    whole, _, fraction = text.partition(".")
    # A date without a time of day.
    if " " not in whole:
        whole += " 00:00:00"
    return f"{whole}.{fraction.ljust(SECOND_DIGITS, '0')}"


def _is_short(dialect: Dialect, column: Column) -> bool:
    """Return True if no value of the column can be so long that its hash is used instead."""
    # SQLite takes any text into a VARCHAR(10).
    if not dialect.lookup.keeps_lengths:
        return False
    stated = _length(column.type.lower())
    return stated is not None and int(stated[1]) <= LONG_CHARACTERS


def string_sql(dialect: Dialect, name: str, column: Column) -> str:
    """Write SQL for a value as text; not by CAST for a user-defined type: it could be a function of
    theirs.
    """
    if column.made is Made.TYPE:
        return statement(dialect, "made_type", value=name)
    return value_text(dialect, column, name)


def _comparable_sql(dialect: Dialect, name: str, column: Column, wanted: str) -> str:
    """Write SQL for a value as text, without blanks at its end where they do not count."""
    value = string_sql(dialect, name, column)
    return statement(dialect, "canonical_padded", value=value) if are_blanks_equal(wanted) else value


def _key_sql(dialect: Dialect, name: str, column: Column, wanted: str) -> str:
    """Write SQL for a part of the key by which its row is found again, the same on both sides."""
    kind = kind_of(wanted)
    if kind in ("string", "octet"):
        return _comparable_sql(dialect, name, column, wanted)
    return canonical_sql(dialect, name, column, wanted)


def _join_texts(dialect: Dialect, texts: Sequence[str]) -> str:
    null, between = dialect.literal(NULL), dialect.literal(BETWEEN)
    before, glue, after = dialect.concat
    parts = [part for sql in texts for part in (between, f"COALESCE({sql}, {null})")][1:]
    return f"{before}{glue.join(parts)}{after}"


def _bounds(after: int | None, upto: int | None) -> dict[str, int]:
    bounds = {"after": after, "upto": upto}
    return {name: value for name, value in bounds.items() if value is not None}


def _add_functions(connection: Connection, dialect: Dialect) -> None:
    """Gives the session the functions that its statements call."""
    if dialect.embedded:
        driver: Any = connection.connection.driver_connection
        driver.create_function("eventlog_hash", 1, hash_of, deterministic=True)
        driver.create_function("eventlog_text", 1, _text_function, deterministic=True)
        driver.create_function("eventlog_canonical", 2, _CanonicalFunction(), deterministic=True)


def _text_function(value: Any) -> str | None:
    if value is None:
        return None
    # SQLite may have anything in a column of texts.
    if not isinstance(value, str):
        value = plain_text(value) or ""
    return string_text(value)


class _CanonicalFunction:
    """The canonical text of a value of a type, as a function of SQL."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __call__(self, sql_type: str, value: Any) -> str | None:
        writer = self._known.get(sql_type)
        if writer is None:
            writer = self._known[sql_type] = canonical(sql_type)
        text = writer(value)
        return None if text is None else str(text)


def as_table(query: str) -> str:
    """Wrap a query for FROM."""
    # On lines of its own: its last line may be a comment, and would take the bracket with it.
    return f"(\n{query.strip().removesuffix(';')}\n)"
