"""Reads rows back: what stands in the tables now, one statement for all keys of a table and one for
each child table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Final

from msgspec import Struct, field, json
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, text

from eventlog.core.errors import ChangedError, KeySyntaxError, shorten
from eventlog.core.model import Cell, ReadBack, Reason, RowId, Unreadable
from eventlog.core.schema import Attribute, Catalog, Child, Column, Table
from eventlog.core.tablekey import parse, simple
from eventlog.sql.access import (
    driver_errors,
    fetch,
    hint_of,
    may_pass,
    table_fault,
    transaction,
    words_of,
)
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.homes import find_home
from eventlog.sql.lookup import Answer, Key, Question

Wanted = Mapping[RowId, frozenset[str]]
_Rows = dict[RowId, dict[str, Cell]]

SHORT_BYTES: Final = 1024
"""What the values of an object may have to come at once, however many objects are asked for."""

NAMED_COLUMNS: Final = 3
"""Columns that cannot be read of which the database's message is shown."""

NO_ROOM: Final = "what was read back with it has filled the batch."
REMEDIES: Final = {
    Reason.NO_RIGHT: "`eventlog rights --publisher ROLE` gives what a publisher needs; then the rows are published.",
    Reason.UNCONFIRMED: "`eventlog track` confirms it; then the rows are published.",
    Reason.LOCKED: "When the transaction that holds the lock has ended, the rows are published."
    " Where nobody holds one, raise publisher.read_back_timeout.",
    Reason.DAMAGED: "Repair the table, or restore it from a backup; then the rows are published.",
}
"""What somebody does where a table cannot be read."""
SAID: Final = {
    Reason.NO_RIGHT: "may not be read back",
    Reason.UNCONFIRMED: "is not known to be the table that was tracked",
    Reason.LOCKED: "is locked, or does not answer in time",
    Reason.DAMAGED: "cannot be read",
}
"""What is wrong with it."""


TableName = tuple[str | None, str]
"""A schema, where there is one, and a table."""
ColumnStamps = Mapping[TableName, str]
"""What changes with the columns of each table."""


def column_stamps(engine: Engine, catalog: Catalog) -> ColumnStamps:
    """Read the stamps of a catalog's tables as they are now; none where they are not cheap."""
    names = [name for table in catalog for name in _names_of(table)]
    if not names or not offers(dialect_of(engine), "column_stamps"):
        return {}
    with transaction(engine, "What the changes ask for", lone=True) as connection:
        return _stamps_now(connection, names)


def _stamps_now(connection: Connection, names: Sequence[TableName]) -> ColumnStamps:
    query = text(statement(dialect_of(connection), "column_stamps"))
    home = find_home(connection)
    places = [(schema or home, table) for schema, table in names]
    stamps = fetch(connection, query, {"tables": json.encode(places).decode()})
    return {names[number - 1]: stamp for number, stamp in stamps}


def _names_of(table: Table) -> list[TableName]:
    return [(table.schema, name) for name in (table.name, *(child.name for child in table.children))]


class AskedObjects(Struct, frozen=True, kw_only=True):
    """The objects of one table that are asked for, their keys in that order, and its columns.

    `by_former_key` says that rows were known by these columns, and are not now.
    """

    table: Table
    columns: tuple[Column, ...]
    rows: list[RowId]
    keys: list[Key]
    by_former_key: bool = False


class Room(Struct, frozen=True, kw_only=True):
    """How many bytes an answer may have, unless one object has more, and how many an object may."""

    share: int
    value_limit: int


class _Part(Struct, kw_only=True):
    """What was read of a table: rows, and the bytes of those that had a value too long to come."""

    rows: dict[RowId, dict[str, Cell] | Unreadable] = field(default_factory=dict)
    large: dict[RowId, int] = field(default_factory=dict)


class SqlRowReader:
    """Answers read-backs from the tables of a catalog.

    A key that is no value of its column's type finds nothing. Without `room` everything is read.
    With it, of what has long values the lengths come first. With the `stamps` that tables had when
    the catalog was made, a table that has other columns by now is a ChangedError. What is locked or
    damaged is Unreadable where rows `may_wait`, and else a SourceError.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        room: Room | None = None,
        stamps: ColumnStamps | None = None,
        *,
        may_wait: bool = False,
    ) -> None:
        self._engine = engine
        self._may_wait = may_wait
        self._stamps = stamps or {}
        self._catalog = catalog
        self._dialect = dialect_of(engine)
        self._tables = {(table.schema, table.name): table for table in catalog}
        self._former_keys = {} if catalog.former is None else catalog.former.former_keys
        # The same keys come with each batch.
        self._columns_of = lru_cache(maxsize=1000)(self._key_columns)
        self._room = room

    def rows(self, wanted: Wanted) -> Mapping[RowId, ReadBack]:
        """Read the wanted attributes of existing objects, or why one cannot be read."""
        rows: dict[RowId, ReadBack] = {}
        large: dict[RowId, int] = {}
        asked = self._by_table(wanted)
        # Keys that cannot be read, or of tables that nobody describes, are asked of no database.
        if not asked:
            return rows
        plain: int | None = None
        if self._room is not None:
            # So long values of all objects have room, and come at once. A power of two, so that
            # statements repeat.
            plain = 1 << max(SHORT_BYTES, self._room.share // len(wanted)).bit_length() - 1
        what, dialect = "What the changes ask for", self._dialect
        with transaction(self._engine, what, lone=True, dialect=dialect) as connection:
            # Statements are transactions of their own, or go on after an error: a table that cannot be
            # read keeps no other from being read.
            for group in asked:
                part = self._careful(connection, group, wanted, plain)
                rows |= part.rows
                large |= part.large
            if large:
                rows |= self._with_room(connection, asked, wanted, large)
            # Asked after reading, so that no change of a table is missed.
            if self._stamps:
                self._refuse_changed(connection, asked)
        return rows

    def _refuse_changed(self, connection: Connection, asked: Iterable[AskedObjects]) -> None:
        """Raise ChangedError if rows were read without columns added meanwhile."""
        names = {name for group in asked for name in _names_of(group.table)}
        known = [name for name in names if name in self._stamps]
        if not known:
            return
        now = _stamps_now(connection, known)
        for name in known:
            if now.get(name) != self._stamps[name]:
                raise ChangedError(
                    f"The table {name[1]} has other columns than before.",
                    hint="The publisher looks at it again by itself.",
                    may_pass=True,
                )

    def _with_room(
        self,
        connection: Connection,
        asked: Sequence[AskedObjects],
        wanted: Wanted,
        large: Mapping[RowId, int],
    ) -> dict[RowId, ReadBack]:
        """Read as many objects with long values as there is room for, in the order wanted."""
        assert self._room is not None
        rows: dict[RowId, ReadBack] = {}
        taken: set[RowId] = set()
        room = self._room.share
        for row in wanted:
            size = large.get(row)
            if size is None:
                continue
            if size > self._room.value_limit:
                note = (
                    f"The row {shorten(row.key)} of {row.table} has {size} bytes, more than"
                    f" publisher.value_limit, which is {self._room.value_limit}. Raise it and requeue the row."
                )
                rows[row] = Unreadable(note=note)
            elif size <= room or not taken:
                taken.add(row)
                room -= size
            else:
                rows[row] = Unreadable(note=NO_ROOM, reason=Reason.NO_ROOM)
                # Nobody overtakes: small objects would always have room, and a large one never.
                room = 0
        for group in asked:
            some = _of(group, [index for index, row in enumerate(group.rows) if row in taken])
            if some.rows:
                # A row alone, whatever it has: without a limit its long values come with it.
                rows |= self._careful(connection, some, wanted, None).rows
        return rows

    def _careful(self, connection: Connection, asked: AskedObjects, wanted: Wanted, plain: int | None) -> _Part:
        """Read objects so that an unreadable value blocks no other, nor a table whose rows may
        wait.

        Law: where the connection is lost or the server is away, the caller hears of it.
        """
        if asked.table.unconfirmed:
            doubt = Reason.UNCONFIRMED
            note = f"{asked.table.whole} {SAID[doubt]}. {REMEDIES[doubt]}"
            return _Part(rows=dict.fromkeys(asked.rows, Unreadable(note=note, reason=doubt)))
        try:
            return self._read_or_narrow(connection, asked, wanted, plain)
        except driver_errors(self._engine) as error:
            reason = table_fault(self._dialect, error)
            if reason is None:
                if may_pass(self._engine, error):
                    raise
                # Not even a question about no object has an answer.
                reason = Reason.DAMAGED
            if not (self._may_wait or reason is Reason.NO_RIGHT):
                raise
            remedy = hint_of(self._engine, error) or REMEDIES[reason]
            note = f"{asked.table.whole} {SAID[reason]}: {words_of(error)}. {remedy}"
            return _Part(rows=dict.fromkeys(asked.rows, Unreadable(note=note, reason=reason)))

    def _read_or_narrow(self, connection: Connection, asked: AskedObjects, wanted: Wanted, plain: int | None) -> _Part:
        """Read the objects, one by one if a value is unreadable; raise errors of the table or
        connection.
        """
        try:
            return self._read(connection, asked, wanted, plain)
        except driver_errors(self._engine) as error:
            if not self._is_of_value(error):
                raise
            # Where the same question about no object fails too, the table is at fault and no value.
            self._read(connection, asked, wanted, plain, nobody=True)
            return self._narrow(connection, asked, wanted, plain, error)

    def _is_of_value(self, error: Exception) -> bool:
        """Return True if an error may speak of a value: not of the connection, nor of the whole table."""
        return table_fault(self._dialect, error) is None and not may_pass(self._engine, error)

    def _narrow(
        self,
        connection: Connection,
        asked: AskedObjects,
        wanted: Wanted,
        plain: int | None,
        error: Exception,
    ) -> _Part:
        """Read by halves, down to the unreadable objects."""
        if len(asked.rows) == 1:
            return _Part(rows={asked.rows[0]: self._single(connection, asked, wanted, error)})
        part = _Part()
        half = len(asked.rows) // 2
        for indexes in (range(half), range(half, len(asked.rows))):
            some = _of(asked, indexes)
            try:
                half_read = self._read(connection, some, wanted, plain)
            except driver_errors(self._engine) as refused:
                if not self._is_of_value(refused):
                    raise
                half_read = self._narrow(connection, some, wanted, plain, refused)
            part.rows |= half_read.rows
            part.large |= half_read.large
        return part

    def _single(self, connection: Connection, asked: AskedObjects, wanted: Wanted, error: Exception) -> Unreadable:
        """Read one object attribute by attribute; note why the others cannot be read."""
        [row] = asked.rows
        read: dict[str, Cell] = {}
        faults: list[str] = []
        for name in sorted(wanted[row]):
            try:
                one_attribute = {row: frozenset({name})}
                values = self._read(connection, asked, one_attribute, None).rows.get(row)
            except driver_errors(self._engine) as refused:
                if not self._is_of_value(refused):
                    raise
                faults.append(f"column {name}: {words_of(refused)}")
                continue
            if isinstance(values, dict):
                read |= values
        what = "; ".join(faults[:NAMED_COLUMNS]) or words_of(error)
        note = f"{asked.table.whole} {shorten(row.key)} cannot be read back: {what}."
        return Unreadable(note=note, row=read)

    def _by_table(self, wanted: Wanted) -> list[AskedObjects]:
        asked: list[AskedObjects] = []
        groups: dict[tuple[str | None, str, tuple[str, ...]], AskedObjects] = {}
        for row in wanted:
            parts = _parts(row.key)
            if parts is None:
                continue
            names, key = parts
            group = groups.get((row.schema, row.table, names))
            if group is None:
                table = self._tables.get((row.schema, row.table))
                if table is None:
                    continue
                columns, former = self._columns_of(row.schema, row.table, names)
                group = AskedObjects(table=table, columns=columns, rows=[], keys=[], by_former_key=former)
                groups[row.schema, row.table, names] = group
                if columns:
                    asked.append(group)
            group.rows.append(row)
            group.keys.append(key)
        return asked

    def _key_columns(self, schema: str | None, name: str, names: tuple[str, ...]) -> tuple[tuple[Column, ...], bool]:
        """Find the columns named in a key, and True for a former key; none if it was never the
        table's.
        """
        table, fold = self._tables[schema, name], self._catalog.fold
        by_name = {fold(column.name): column for column in reversed(table.columns)}
        # As they are written first: two columns may differ in case.
        spelled = {column.name: column for column in table.columns}
        columns = [spelled.get(name) or by_name.get(fold(name)) for name in names]
        known = tuple(column for column in columns if column is not None)
        named = {column.name for column in known}
        if len(known) < len(columns):
            return (), False
        if not table.key or named == set(table.key):
            return known, False
        # Rows of child tables name a parent by its key of now.
        was = not table.children and named in self._former_keys.get((schema, name), ())
        return (known if was else ()), was

    def _read(
        self,
        connection: Connection,
        asked: AskedObjects,
        wanted: Wanted,
        plain: int | None,
        *,
        nobody: bool = False,
    ) -> _Part:
        """Read some objects of one table."""
        reading = _Reading(
            connection=connection,
            dialect=self._dialect,
            asked=asked,
            plain=plain,
            nobody=nobody,
        )
        table, large = asked.table, reading.large
        wishes = {wanted[row] for row in asked.rows}
        names = frozenset[str]().union(*wishes)
        count = 0
        attributes: dict[str | None, list[Attribute]] = {}
        """By their child tables; those of the table itself are under None."""
        for name, attribute in table.loggable.items():
            if name in names:
                count += 1
                attributes.setdefault(attribute.child, []).append(attribute)
        rows = reading.own(attributes.get(None, []))
        for child in table.children:
            if child.name in attributes and (rows or nobody):
                reading.add_children(child, attributes[child.name], rows)
        if len(wishes) > 1:
            # Each object with what was wanted of it, where its neighbours wanted more.
            for row, values in rows.items():
                wished = wanted[row]
                if len(values) != count or len(wished) < count:
                    rows[row] = {name: value for name, value in values.items() if name in wished}
        # Those that lack a value are read again, if there is room.
        if large:
            rows = {row: values for row, values in rows.items() if row not in large}
        return _Part(rows={**rows}, large=large)


class _Reading(Struct, frozen=True, kw_only=True):
    """Reads some objects of one table, with their rows in child tables.

    `large` gets the bytes of those that lack values. `nobody` asks for none of the objects, to see
    whether the database would answer.
    """

    connection: Connection
    dialect: Dialect
    asked: AskedObjects
    plain: int | None
    nobody: bool
    large: dict[RowId, int] = field(default_factory=dict)

    def own(self, attributes: Sequence[Attribute]) -> _Rows:
        """Read existing objects with these attributes of the table itself."""
        asked, rows = self.asked, self.asked.rows
        several = any(map(attrgetter("multiple"), attributes))
        answers = self._answers(asked, asked.table.name, asked.columns, attributes, several=several)
        read: _Rows = {}
        if several:
            for number, of_one in groupby(answers, itemgetter(0)):
                read[rows[number]] = _gather(list(of_one), attributes)
            return read
        names = list(map(attrgetter("name"), attributes))
        if asked.by_former_key:
            # By a former key nobody says which one was meant of several.
            found = Counter(answer[0] for answer in answers)
            answers = [answer for answer in answers if found[answer[0]] == 1]
        for answer in answers:
            row = rows[answer[0]]
            # A view may have several rows of one object: the first counts. Behind the values may
            # stand the bytes of all.
            if row not in read:
                read[row] = dict(zip(names, answer[1:], strict=False))
        return read

    def add_children(self, child: Child, attributes: Sequence[Attribute], objects: _Rows) -> None:
        """Add a child table's values to the objects found."""
        some = asked = self.asked
        if not self.nobody:
            some = _of(asked, [index for index, row in enumerate(asked.rows) if row in objects])
        described = {column.name: column for column in child.columns}
        parents = dict(zip(asked.table.key or child.parent_key, child.parent_key, strict=True))
        held = [(parents.get(column.name, column.name), column) for column in asked.columns]
        columns_of_key = tuple(described.get(name) or Column(name=name, type=column.type) for name, column in held)
        answers = self._answers(some, child.name, columns_of_key, attributes, several=True)
        for row in objects:
            # Empty where the child has no rows, which is not the same as not read.
            objects[row].update(dict.fromkeys([attribute.name for attribute in attributes], ()))
        for number, rows in groupby(answers, itemgetter(0)):
            columns = zip(*(values for _, *values in rows), strict=True)
            for attribute, column in zip(attributes, columns, strict=False):
                values = tuple(value for value in column if value is not None)
                objects[some.rows[number]][attribute.name] = values

    def _answers(
        self,
        some: AskedObjects,
        table: str,
        matched: tuple[Column, ...],
        attributes: Sequence[Attribute],
        *,
        several: bool,
    ) -> list[Answer]:
        """Ask for the attributes; note in `large` the objects that lack values, and their bytes."""
        plain: int | None = None
        if self.plain is not None:
            # Each value has an equal share of what the object may have.
            plain = max(1, self.plain // max(1, len(attributes)))
        question = Question(
            schema=some.table.schema,
            table=table,
            matched=matched,
            selected=tuple(map(attrgetter("column"), attributes)),
            several=several,
            plain=plain,
            nobody=self.nobody,
        )
        answers = self.dialect.lookup.ask(self.connection, self.dialect, question, some.keys)
        if plain is not None:
            for answer in answers:
                if answer[-1] is not None:
                    row = some.rows[answer[0]]
                    self.large[row] = self.large.get(row, 0) + int(answer[-1])
        return answers


def _of(asked: AskedObjects, indexes: Sequence[int]) -> AskedObjects:
    rows = [asked.rows[index] for index in indexes]
    return replace(asked, rows=rows, keys=[asked.keys[index] for index in indexes])


def _parts(key: str) -> tuple[tuple[str, ...], Key] | None:
    """Split a key into column names and values; None if not written by the grammar."""
    if simple(key):  # by far the most
        name, _, value = key.partition("=")
        return (name,), (value,)
    try:
        parts = parse(key).parts
    except KeySyntaxError:
        return None
    return tuple(name for name, _ in parts), tuple(value for _, value in parts)


def _gather(rows: Sequence[Answer], attributes: Sequence[Attribute]) -> dict[str, Cell]:
    """Merge the rows of a view to one object: its distinct values, or else the first one."""
    gathered: dict[str, Cell] = {}
    for index, attribute in enumerate(attributes, start=1):
        values = [row[index] for row in rows]
        gathered[attribute.name] = values[0]
        if attribute.multiple:
            known = [value for value in values if value is not None]
            gathered[attribute.name] = tuple(dict.fromkeys(known))
    return gathered
