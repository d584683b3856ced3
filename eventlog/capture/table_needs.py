"""Fits what was asked for to the tables as they are: row triggers where others would miss
something, and words about it.

Foreign keys may change a row twice in one statement. Statement triggers see that as two rows before
and two rows after, and nothing tells which belong together; a statement's updates are heard before
its deletes or after them, as it happens. Row triggers hear each change in its turn (decision 21).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, inspect

from eventlog.capture.clauses import image_columns
from eventlog.capture.plan import TriggerPlan, plan
from eventlog.core.errors import InstallError
from eventlog.core.schema import Table
from eventlog.sql.access import answers
from eventlog.sql.definitions import ShapeVersion
from eventlog.sql.dialect import dialect_of, log_holes, offers
from eventlog.sql.history import image_number, read_owned
from eventlog.sql.names import LogNames
from eventlog.sql.shapes import unique_indexes
from eventlog.tracked.options import VALUED, Style, TriggerOptions

_period: Final = re.compile(r'^ *PERIOD FOR [`"].+[`"] \([`"](.+)[`"], [`"](.+)[`"]\),?$', re.MULTILINE)
"""A period in what MariaDB answers, with its columns; the one of SYSTEM_TIME has no quotes."""
_overlapping: Final = re.compile(r'\((.+),[`"].+[`"] WITHOUT OVERLAPS\)')
_name: Final = re.compile(r'[`"](.+?)[`"]')


class TableNeeds:
    """Looks at the tables on one connection; what it asks about all of them it asks once."""

    def __init__(self, connection: Connection, names: LogNames) -> None:
        self._connection = connection
        self._names = names
        self._dialect = dialect_of(connection)
        self._passed_by: dict[str | None, frozenset[str]] = {}
        self._unique: dict[str | None, dict[str, list[frozenset[str]]]] = {}

    def plan(self, table: Table, options: TriggerOptions) -> TriggerPlan:
        """Plan the triggers of a class with options that fit its tables, and the number of its images."""
        planned = plan(table, self._fit_options(table, options))
        self._refuse_period(planned)
        if planned.options.style != Style.IMAGE:
            return planned
        columns = image_columns(self._dialect, planned)
        return replace(planned, number=image_number(self._connection, self._owned, table, columns))

    def _refuse_period(self, planned: TriggerPlan) -> None:
        """Refuse a key with a column of a period. `FOR PORTION OF` inserts what is left under the old key, and only then
        fires the trigger that logs the end of that key: whoever believes the log would lose a row.
        """
        table = planned.table
        columns = {table.name: {column.name for column in planned.key}}
        columns |= {part.child.name: {watched.column.name for watched in part.watched} for part in planned.children}
        for schema, name in () if table.view else _names(table):
            target = self._dialect.qualify(schema, name)
            text = "\n".join(str(row[1]) for row in answers(self._connection, "table_text", target=target))
            ends, known = {end for found in _period.findall(text) for end in found}, columns.get(name, set())
            # SQLAlchemy leaves the period out of such a key, whose other columns tell no rows apart.
            without = [{*_name.findall(names)} for names in _overlapping.findall(text)]
            if ends and (ends & known or known in without):
                columns_of_period = ", ".join(sorted(ends))
                raise InstallError(
                    f"The key of {name} has a period of time ({columns_of_period}): what FOR PORTION OF writes"
                    " would be logged in the wrong order, and rows be lost.",
                    hint="Name another key by --key, such as a column with AUTO_INCREMENT.",
                )

    def _fit_options(self, table: Table, options: TriggerOptions) -> TriggerOptions:
        """Fit the options to these tables; nothing of a foreign owner's may run with our rights.

        Row triggers where statement triggers would miss a change or its order; and a look for a second
        row with the same key or value where there may be one.
        """
        return replace(
            options,
            foreign=any(self._ask_each_table(table, "foreign_owners")),
            rows=options.rows or any(True for _ in self._why_rows(table)),
            at_once=not table.view and any(self._ask_each_table(table, "triggers_between")),
            deferred=self._is_deferred(table),
            repeated=tuple(self._find_repeatable_attributes(table)) if options.style in VALUED else (),
        )

    def remarks(self, planned: TriggerPlan, asked: TriggerOptions) -> Iterator[str]:
        """Yield remarks for the person tracking a class: choices made for them, and changes
        invisible to triggers.
        """
        table = planned.table
        if not asked.rows:
            yield from self._why_rows(table)
        if not self._dialect.ddl.cascades_fire_triggers:
            yield from self._unseen_actions(table, asked)
        if planned.options.deferred:
            yield (
                f"{table.name} may have two rows with one key for a while. So when a row leaves a"
                " key, the other row with that key is read back."
            )
        for child in planned.children:
            # A receiver would take both for gone with the first.
            repeated = [one.column.name for one in child.watched if one.name in planned.options.repeated]
            if repeated:
                yield (
                    f"{child.child.name} may have the same value twice under one parent"
                    f" ({', '.join(repeated)}). So, when such a value is deleted, the values that are left"
                    f" are read back. A unique index that also has {', '.join(child.child.parent_key)} makes"
                    " this unnecessary."
                )
        between = sorted({str(name) for name in self._ask_each_table(table, "triggers_between")})
        if between:
            yield (
                f"{', '.join(between)} may write to {table.name} before a statement ends."
                " So each row is logged at once, and bulk statements take longer."
            )
        yield from self._ask_each_table(table, "remarks_on")
        if asked.key and (empty := _may_be_null(table)):
            yield (
                f"{empty} may be NULL in the key of {table.name}. Such a row has an empty text there"
                " in the log, and is not found when it is read back."
            )

    def _why_rows(self, table: Table) -> Iterator[str]:
        if not offers(self._dialect, "statement_trigger") or table.view:
            return
        if table.schema not in self._passed_by:
            rows = answers(self._connection, "passed_by", {"schema": table.schema})
            self._passed_by[table.schema] = frozenset(str(name) for (name,) in rows)
        for schema, name in _names(table):
            why = ""
            if name == table.name and (empty := _may_be_null(table)):
                # Rows before and after are paired by the key, and NULL is like no other.
                why = f"{empty} may be NULL in its key"
            elif name in self._passed_by[schema]:
                why = "it has partitions or is changed by way of another table"
            elif (root := find_table_changed_twice((schema, name), self.references)) is not None:
                why = f"foreign keys may change one of its rows twice when {root[1]} is changed"
                why += "; bulk statements take longer with them"
            if why:
                yield f"{name} gets row triggers, because {why}."

    def _unseen_actions(self, table: Table, options: TriggerOptions) -> Iterator[str]:
        """Find places where foreign keys change rows and no trigger fires."""
        for index, (schema, name) in enumerate(_names(table)):
            references = acting((schema, name), self.references)
            if index > 0:
                # A child's row that goes with its own parent needs no trigger: the parent's end
                # tells of it.
                back = options.style == Style.ROW_BACK
                references = [key for key in references if key.clears or (key.follows and not back)]
            parents = ", ".join(sorted({reference.referred[1] for reference in references}))
            if parents:
                yield (
                    f"{name} is changed by foreign keys when {parents} is changed,"
                    " and this database fires no trigger then: such changes are not logged."
                )

    def _find_repeatable_attributes(self, table: Table) -> Iterator[str]:
        """Find attributes of child tables with perhaps equal values under one parent."""
        for child in table.children:
            unique = self._unique_columns(table.schema, child.name)
            for name, attribute in table.attributes.items():
                value_of_child = (*child.parent_key, attribute.column.name)
                if attribute.child == child.name and not _holds(unique, value_of_child):
                    yield name

    def _is_deferred(self, table: Table) -> bool:
        """Return True if two rows may have one key while a transaction is open."""
        if table.view or table.whole_row or not offers(self._dialect, "always_unique"):
            return False
        return not _holds(self._unique_columns(table.schema, table.name), table.key)

    def _unique_columns(self, schema: str | None, table: str) -> list[frozenset[str]]:
        """Return sets of columns unique in a table at any time, even within a transaction."""
        if not offers(self._dialect, "always_unique"):
            indexes = unique_indexes(self._connection, schema, table)
            asked = self._dialect.normalise_name(table)
            names = inspect(self._connection).get_pk_constraint(asked, schema=schema)["constrained_columns"]
            key = tuple(self._dialect.column_name(str(name)) for name in names)
            return [frozenset(columns) for columns in (key, *indexes.values()) if columns]
        if schema not in self._unique:
            by_index: dict[tuple[str, str], set[str]] = {}
            for name, index, column in answers(self._connection, "always_unique", {"schema": schema}):
                by_index.setdefault((str(name), str(index)), set()).add(str(column))
            of_schema = self._unique[schema] = dict[str, list[frozenset[str]]]()
            for (name, _), columns in by_index.items():
                of_schema.setdefault(name, []).append(frozenset(columns))
        return self._unique[schema].get(table, [])

    @cached_property
    def _owned(self) -> list[ShapeVersion]:
        """Read the log owner's entries of former tables."""
        return read_owned(self._connection, self._names)

    @cached_property
    def references(self) -> list[CascadingKey]:
        """Read all foreign keys with actions on rows."""
        return list(_gather_references(answers(self._connection, "acting_references")))

    def _ask_each_table(self, table: Table, query: str) -> list[Any]:
        """Ask the catalog about a table and each of its child tables; return nothing where it has no such
        question.
        """
        answered = []
        for schema, name in _names(table):
            asked = {"table": name, "schema": schema}
            rows = answers(self._connection, query, asked, **log_holes(self._dialect, self._names))
            answered += [row[0] for row in rows if row[0]]
        return answered


def _holds(unique: Iterable[frozenset[str]], columns: Sequence[str]) -> bool:
    """Return True if no two rows have the same in all of these columns."""
    return any(index <= {*columns} for index in unique)


def _may_be_null(table: Table) -> str:
    """Write the nullable columns of the key; none for a key the table itself has."""
    if table.whole_row:
        return ""
    return ", ".join(column.name for column in table.key_columns if column.nullable)


def _names(table: Table) -> list[Name]:
    """List a class's own table and its child tables."""
    names = [table.name, *(child.name for child in table.children)]
    return [(table.schema, name) for name in names]


def _gather_references(rows: Iterable[Any]) -> Iterator[CascadingKey]:
    """Group rows of one column pair each to foreign keys."""
    by_number: dict[object, list[Any]] = {}
    for row in rows:
        by_number.setdefault((row.own_schema, row.own_table, row.number), []).append(row)
    for pairs in by_number.values():
        first = pairs[0]
        yield CascadingKey(
            table=(first.own_schema, first.own_table),
            columns=frozenset(pair.own_column for pair in pairs),
            referred=(first.other_schema, first.other_table),
            referred_columns=frozenset(pair.other_column for pair in pairs),
            on_delete=first.on_delete,
            on_update=first.on_update,
        )


Name = tuple[str | None, str]
"""A table: its schema and its own name."""

DELETES: Final = "CASCADE"
SETS: Final = frozenset({"SET NULL", "SET DEFAULT"})


class CascadingKey(Struct, frozen=True, kw_only=True):
    """A foreign key: whose columns hold which of which table, and what happens when those are
    deleted or changed.
    """

    table: Name
    columns: frozenset[str]
    referred: Name
    referred_columns: frozenset[str]
    on_delete: str
    on_update: str

    @property
    def deletes(self) -> bool:
        return self.on_delete == DELETES

    @property
    def clears(self) -> bool:
        """Return True if it updates rows of its table when the others are deleted."""
        return self.on_delete in SETS

    @property
    def follows(self) -> bool:
        """Return True if it updates rows of its table when the others change their keys."""
        return self.on_update == DELETES or self.on_update in SETS


def acting(table: Name, references: Iterable[CascadingKey]) -> list[CascadingKey]:
    """Find the foreign keys of a table with actions on its rows."""
    own = [key for key in references if key.table == table]
    return [key for key in own if key.deletes or key.clears or key.follows]


def find_table_changed_twice(table: Name, references: Sequence[CascadingKey]) -> Name | None:
    """Find a table where one statement can change or delete rows, and so change a row of this one
    twice.
    """
    if not any(reference.clears or reference.follows for reference in acting(table, references)):
        return None  # a row is deleted once, however many foreign keys do so
    above, taking_part = [table], list[CascadingKey]()
    for name in above:  # grows while it is walked
        leading = acting(name, references)
        taking_part += leading
        above += dict.fromkeys(reference.referred for reference in leading if reference.referred not in above)
    return next((root for root in sorted(above, key=str) if _is_changed_twice(table, root, taking_part)), None)


def _is_changed_twice(table: Name, root: Name, references: list[CascadingKey]) -> bool:
    """Return True if one statement on `root`, as a MERGE, reaches a row of the table twice."""
    deleted = _find_tables_deleted_from(root, references)

    def count_updates(reference: CascadingKey, known: list[int]) -> int:
        """Count how often the referenced row is deleted or gets another key, so far as is known; more than
        twice is twice, else a circle of them would never end.
        """
        # A row of the root is either deleted or updated, so both together are one time.
        by_root = reference.referred == root and (reference.clears or reference.follows)
        by_delete = reference.clears and reference.referred in deleted
        by_update = sum(
            often
            for other, often in zip(references, known, strict=True)
            if reference.follows and other.table == reference.referred and other.columns & reference.referred_columns
        )
        return min(2, by_root + by_delete + by_update)

    # How often each reference may update one row. One leads to another, so it is asked until
    # nothing changes.
    updates, before = [0] * len(references), None
    while updates != before:
        before = updates
        updates = [count_updates(reference, before) for reference in references]
    own = [(key, times) for key, times in zip(references, updates, strict=True) if key.table == table]
    # It either deletes a row or updates it when the one row changes that it points to. To be deleted
    # is to be met once, by whatever.
    goes = {root, *deleted}
    met = sum(max(times, int(key.deletes and key.referred in goes)) for key, times in own)
    # What the statement itself does is done before any foreign key acts. So a row that it deletes
    # is met by no action, and one that it updates is heard as updated before an action deletes it.
    return any(times for _, times in own) and (met > 1 or table == root)


def _find_tables_deleted_from(root: Name, references: list[CascadingKey]) -> set[Name]:
    """Find the tables whose rows foreign keys delete with rows of `root`."""
    deleted, reached = set[Name](), [root]
    for name in reached:  # grows while it is walked; actions may lead in a circle
        more = {key.table for key in references if key.deletes and key.referred == name} - deleted
        deleted |= more
        reached += more
    return deleted
