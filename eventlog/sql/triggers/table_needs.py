"""Fits what was asked for to the tables as they are: row triggers where others would miss something, and words about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from eventlog.core.schema import Table
from eventlog.sql.dialect import dialect_of
from eventlog.sql.queries import offers, statement
from eventlog.sql.reflect import reflect
from eventlog.sql.triggers.cascades import Name, Reference, acting, changed_twice_by
from eventlog.sql.triggers.ddl import numbered
from eventlog.sql.triggers.plan import VALUED, Style, TriggerOptions, TriggerPlan

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class TableNeeds:
    """Looks at the tables on one connection; what it asks about all of them it asks once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)
        self._references: list[Reference] | None = None

    def fitted(self, table: Table, options: TriggerOptions) -> TriggerOptions:
        """The options as these tables need them; nothing of a foreign owner's may run with our rights."""
        return replace(self.needed(table, options), foreign=any(self._asked(table, "foreign_owners")))

    def needed(self, table: Table, options: TriggerOptions) -> TriggerOptions:
        """Row triggers where statement triggers would not see every change, or not in its turn; a look at who else has a
        key where two rows may.
        """
        rows = options.rows or any(True for _ in self._why_rows(table))
        return replace(options, rows=rows, deferred=any(self._one(table.schema, table.name, "deferrable_key")))

    def numbered(self, plan: TriggerPlan) -> TriggerPlan:
        """The plan with what an event trigger has to know of its tables."""
        return numbered(self._connection, plan)

    def remarks(self, table: Table, options: TriggerOptions) -> Iterator[str]:
        """What somebody should know who tracks a class: what was chosen for them, and what no trigger will see."""
        if not options.rows:
            yield from self._why_rows(table)
        if not self._dialect.cascades_fire_triggers:
            yield from self._unseen_actions(table, options)
        if options.style in VALUED:
            yield from self._equal_values(table)
        yield from self._asked(table, "remarks_on")

    def _why_rows(self, table: Table) -> Iterator[str]:
        if not self._dialect.transition_tables or table.view:
            return
        for schema, name in _names(table):
            if any(self._one(schema, name, "passed_by")):
                yield f"{name} gets row triggers, because it has partitions or is changed by way of another table."
            elif (root := changed_twice_by((schema, name), self.references)) is not None:
                yield (
                    f"{name} gets row triggers, because foreign keys may change one of its rows twice when {root[1]} is"
                    " changed; bulk statements take longer with them."
                )

    def _unseen_actions(self, table: Table, options: TriggerOptions) -> Iterator[str]:
        """Where foreign keys change rows and no trigger fires; what goes with its own parent needs none."""
        for place, (schema, name) in enumerate(_names(table)):
            found = acting((schema, name), self.references)
            if place:
                found = [one for one in found if one.clears or (one.follows and options.style != Style.ROW_BACK)]
            parents = ", ".join(sorted({one.referred[1] for one in found}))
            if parents:
                yield (
                    f"{name} is changed by foreign keys when {parents} is changed, and this database fires no trigger then:"
                    " such changes are not logged."
                )

    def _equal_values(self, table: Table) -> Iterator[str]:
        """Where two rows of a child may have one value: the end of the one is told, and a receiver takes both for gone."""
        for child in table.children:
            unique = self._unique(table.schema, child.name)
            others = {column.name for column in child.columns} - {*child.parent_key}
            if any(not any(one <= {*child.parent_key, name} for one in unique) for name in others):
                yield (
                    f"{child.name} may have a value twice under one parent. When one of the two goes, receivers are told that"
                    " the value goes; with --events row-back they are told what is there."
                )

    def _unique(self, schema: str | None, name: str) -> list[frozenset[str]]:
        """Columns of a table that no two rows have alike."""
        from sqlalchemy import inspect

        ask, called = inspect(self._connection), self._dialect.normalised(name)
        constraints, indexes = ask.get_unique_constraints(called, schema=schema), ask.get_indexes(called, schema=schema)
        found: list[Any] = [
            ask.get_pk_constraint(called, schema=schema)["constrained_columns"],
            *(one["column_names"] for one in constraints),
            *(one["column_names"] for one in indexes if one["unique"]),
        ]
        return [frozenset(self._dialect.reported(str(one)) for one in columns) for columns in found if columns]

    @property
    def references(self) -> list[Reference]:
        """All foreign keys that delete or change rows."""
        from sqlalchemy import text

        if self._references is None:
            known = offers(self._dialect, "acting_references")
            rows = self._connection.execute(text(statement(self._dialect, "acting_references"))).all() if known else []
            self._references = list(_gathered(rows))
        return self._references

    def _asked(self, table: Table, query: str) -> list[Any]:
        """What the catalog answers about a table and each of its child tables; nothing where it has no such question."""
        return [answer for schema, name in _names(table) for answer in self._one(schema, name, query)]

    def _one(self, schema: str | None, name: str, query: str) -> list[Any]:
        from sqlalchemy import text

        if not offers(self._dialect, query):
            return []
        where = {"table": name, "schema": schema}
        found = self._connection.execute(text(statement(self._dialect, query)), where).scalars()
        return [answer for answer in found if answer]


def remarks(
    engine: Engine, tables: Sequence[str], options: TriggerOptions | None = None, schema: str | None = None
) -> list[str]:
    """What somebody should know who tracks these classes, as sentences."""
    asked = options or TriggerOptions()
    with engine.connect() as connection:
        needs = TableNeeds(connection)
        found = reflect(connection, tables, schema, asked.children)
        return [sentence for table in found for sentence in needs.remarks(table, asked)]


def _names(table: Table) -> list[Name]:
    """A class's own table and its child tables."""
    return [(table.schema, name) for name in (table.name, *(child.name for child in table.children))]


def _gathered(rows: Iterable[Any]) -> Iterator[Reference]:
    """Foreign keys of rows that tell one pair of columns each."""
    by_number: dict[object, list[Any]] = {}
    for row in rows:
        by_number.setdefault((row.own_schema, row.own_table, row.number), []).append(row)
    for pairs in by_number.values():
        first = pairs[0]
        yield Reference(
            table=(first.own_schema, first.own_table),
            columns=frozenset(pair.own_column for pair in pairs),
            referred=(first.other_schema, first.other_table),
            referred_columns=frozenset(pair.other_column for pair in pairs),
            on_delete=first.on_delete,
            on_update=first.on_update,
        )
