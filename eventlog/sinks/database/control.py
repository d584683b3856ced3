"""Control tables beside the change tables: how far a task is, what its tables look like, what was
refused, DDL, partitions.

`attrep_ddl_history` and `attrep_cdc_partitions` have the columns that readers of change tables
know; times are UTC.

Whether a database takes change tables is tried with them: what a publisher would make is made, and
undone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, inspect

from eventlog.core.errors import SinkError, SourceError
from eventlog.core.model import Outcome, Position, Refusal, format_position
from eventlog.core.rules.meaning import end_event
from eventlog.qlik.change_seq import moment_of
from eventlog.qlik.change_tables.partitions import read_partition
from eventlog.qlik.change_tables.rows import ChangeColumn
from eventlog.sinks.database.settings import DatabaseSettings
from eventlog.sinks.ownership import Owner
from eventlog.sql.access import in_our_words, is_denied
from eventlog.sql.column_types import KeyText
from eventlog.sql.connect import connect, make_readable_url
from eventlog.sql.dialect import dialect_of
from eventlog.sql.homes import find_home

if TYPE_CHECKING:
    from alembic.operations import Operations

SERVER = "eventlog"
NO_CHANGE_SEQ = " "
"""What stands for a task that has no document yet: Oracle takes the empty string for NULL."""


class TaskState(Struct, frozen=True, kw_only=True):
    """How far a task is: its last document, who writes it, and the last plan of a publisher and of
    a conversion.
    """

    change_seq: str = ""
    owner: Owner = Owner()
    plan: str = ""
    converted: str = ""


class Record(Struct, frozen=True, kw_only=True):
    """What a change table was made for: its log, task and source table, how often it was altered,
    and the columns then. `gone` are those that it still has, and its source has no more.
    """

    target: str
    owner: str
    table: str
    version: int
    columns: tuple[ChangeColumn, ...]
    partition: str | None = None
    log: str = ""
    task: str = ""
    gone: tuple[ChangeColumn, ...] = ()


class RefusedEvent(NamedTuple):
    """An event that a change table did not take, and why; of a `partial` one only what its row was before."""

    target: str
    position: Position
    note: str
    partial: bool = False

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of the event."""
        return end_event(self.position, Refusal(positions=(self.position,), note=self.note, partial=self.partial))


class Control:
    """The control tables of one task in one schema.

    `durably` is SQL that has the transaction be on disk, said where `standing` asks.
    """

    def __init__(self, task: str, schema: str | None, durably: str = "") -> None:
        self.task = task
        self._durably: list[sa.ColumnElement[str]] = [sa.literal_column(durably)] if durably else []
        self.tables = sa.MetaData(schema=schema)
        name, text, moment = sa.String(128), sa.Text(), sa.DateTime()
        key = KeyText(128)
        self.positions = sa.Table(
            "eventlog_position",
            self.tables,
            sa.Column("task", key, primary_key=True),
            sa.Column("change_seq", sa.String(35), nullable=False),
            sa.Column("source_log", name),
            sa.Column("source_name", text),
            sa.Column("epoch", sa.BigInteger()),
            sa.Column("plan_id", name),
            sa.Column("converted_id", name),
        )
        self.records = sa.Table(
            "eventlog_change_table",
            self.tables,
            sa.Column("target", key, primary_key=True),
            sa.Column("owner", name),
            sa.Column("source", name),
            sa.Column("version", sa.Integer),
            sa.Column("columns", text),
            sa.Column("open_partition", sa.String(31)),
            sa.Column("source_log", name),
            sa.Column("task", name),
            sa.Column("gone", text),
        )
        self.refusals = sa.Table(
            "eventlog_refused",
            self.tables,
            sa.Column("task", name),
            sa.Column("document", sa.String(35)),
            sa.Column("position", name),
            sa.Column("target", name),
            sa.Column("note", text),
            sa.Column("plan_id", name),
            sa.Column("partial", sa.Integer),
        )
        self.history = sa.Table(
            "attrep_ddl_history",
            self.tables,
            *[sa.Column(column, name) for column in ("server_name", "task_name")],
            *[sa.Column(column, name) for column in ("table_owner", "table_name")],
            sa.Column("change_seq", sa.String(35)),
            sa.Column("timestamp", moment),
            sa.Column("table_version", sa.Integer),
            sa.Column("ddl_type", sa.String(20)),
            sa.Column("details", text),
        )
        self.partitions = sa.Table(
            "attrep_cdc_partitions",
            self.tables,
            *[sa.Column(column, name) for column in ("server_name", "task_name", "partition_name")],
            *[sa.Column(f"partition_{edge}_time", moment) for edge in ("start", "end")],
            *[sa.Column(column, name) for column in ("table_owner", "table_name")],
        )

    def prepare(self, connection: Connection) -> None:
        """Makes the tables that are missing."""
        self.tables.create_all(connection)

    def state(self, connection: Connection) -> TaskState | None:
        """Read the task's state, locked until the transaction ends; None before its first document."""
        table = self.positions
        # The lock keeps a publisher that was replaced from writing after it was looked at.
        # One row for each task, so that tasks of one database do not wait for each other.
        query = sa.select(table, *self._durably).where(table.c.task == self.task).with_for_update()
        row = connection.execute(query).first()
        if row is None:
            return None
        owner = Owner(log=row.source_log or "", name=row.source_name or "", epoch=row.epoch or 0)
        plan, converted = row.plan_id or "", row.converted_id or ""
        # A blank stands for none: see NO_CHANGE_SEQ.
        return TaskState(change_seq=row.change_seq.strip(), owner=owner, plan=plan, converted=converted)

    def advance(self, connection: Connection, former: TaskState | None, now: TaskState) -> None:
        """Notes how far the task is now, and whose it is."""
        table = self.positions
        values = {
            "change_seq": now.change_seq or NO_CHANGE_SEQ,
            "source_log": now.owner.log,
            "source_name": now.owner.name,
            "epoch": now.owner.epoch,
            "plan_id": now.plan,
            "converted_id": now.converted,
        }
        if former is None:
            connection.execute(table.insert().values(task=self.task, **values))
        else:
            connection.execute(table.update().where(table.c.task == self.task).values(**values))

    def record(self, connection: Connection, target: str) -> Record | None:
        """Read the record of a change table."""
        query = self.records.select().where(self.records.c.target == target)
        row = connection.execute(query).first()
        if row is None:
            return None
        owner, open_partition = row.owner or "", row.open_partition
        return Record(
            target=target,
            owner=owner,
            table=row.source,
            version=row.version,
            columns=_columns(row.columns),
            partition=open_partition,
            log=row.source_log or "",
            task=row.task or "",
            gone=_columns(row.gone or "[]"),
        )

    def all_records(self, connection: Connection) -> list[Record]:
        """Read the records of all change tables, by name."""
        # Their details one by one: there are few, and the query for one is there already.
        targets = connection.scalars(sa.select(self.records.c.target)).all()
        records = [self.record(connection, name) for name in sorted(targets)]
        return [record for record in records if record is not None]

    def keep(self, connection: Connection, record: Record, *, former: Record | None) -> None:
        """Notes what a change table looks like now."""
        table = self.records
        values = {
            "owner": record.owner,
            "source": record.table,
            "version": record.version,
            "columns": _write_columns(record.columns),
            "source_log": record.log,
            "task": record.task,
            "gone": _write_columns(record.gone),
        }
        if former is None:
            connection.execute(table.insert().values(target=record.target, **values))
        else:
            changed = table.update().where(table.c.target == record.target)
            connection.execute(changed.values(**values))

    def announce_ddl(
        self,
        connection: Connection,
        record: Record,
        change_seq: str,
        kind: str,
        columns: dict[str, Any],
    ) -> None:
        """Adds a line to the DDL history."""
        details = {
            "owner": record.owner,
            "table": record.table,
            "tableNewName": None,
            "version": record.version,
            "columns": columns,
        }
        connection.execute(
            self.history.insert().values(
                **self._whose(record.owner, record.table),
                change_seq=change_seq,
                timestamp=moment_of(change_seq),
                table_version=record.version,
                ddl_type=kind,
                # Names as they are, for readers of this table compare them.
                details=json.dumps(details, ensure_ascii=False),
            )
        )

    def open_partitions(
        self,
        connection: Connection,
        opened: dict[str, str],
        change_seq: str,
    ) -> None:
        """Notes the partitions that rows are in now.

        Those that none can come into any more become visible.
        """
        table = self.records
        # A task that is behind still has rows for its own.
        still_open = table.select().where(table.c.open_partition.is_not(None), table.c.task == self.task)
        for row in connection.execute(still_open).all():
            partition = read_partition(row.open_partition)
            # Rows stand in the next one now, or the time has come past it.
            goes_on = opened.get(row.target, row.open_partition) == row.open_partition
            if goes_on and not partition.is_closed_by(change_seq):
                continue
            # Only now does a reader see it: all of its rows are there.
            values = self._whose(row.owner, row.source) | {"partition_name": row.open_partition}
            values |= {"partition_start_time": partition.start, "partition_end_time": partition.end}
            connection.execute(self.partitions.insert().values(**values))
            self._set_partition(connection, row.target, None)
        for target, partition_name in opened.items():
            self._set_partition(connection, target, partition_name)

    def refuse(
        self,
        connection: Connection,
        plan: str,
        document: str,
        refused: Iterable[RefusedEvent],
    ) -> None:
        """Notes which events of a document the target did not take, and why."""
        rows = [
            {
                "task": self.task,
                "plan_id": plan,
                "document": document,
                "position": format_position(event.position),
                "target": event.target,
                "note": event.note,
                "partial": int(event.partial),
            }
            for event in refused
        ]
        if rows:
            connection.execute(self.refusals.insert(), rows)

    def read_refused(self, connection: Connection, plan: str) -> Sequence[Outcome]:
        """Read the refusals noted when the plan first came."""
        table = self.refusals
        query = table.select().where(table.c.task == self.task, table.c.plan_id == plan)
        # In one order, for a repeat has to tell the same.
        events = [
            RefusedEvent(row.target, _position(row.position), row.note, bool(row.partial))
            for row in connection.execute(query)
        ]
        return [event.outcome for event in sorted(events, key=attrgetter("position"))]

    def _set_partition(self, connection: Connection, target: str, name: str | None) -> None:
        table = self.records
        changed = table.update().where(table.c.target == target)
        connection.execute(changed.values(open_partition=name))

    def _whose(self, owner: str | None, table: str) -> dict[str, Any]:
        return {
            "server_name": SERVER,
            "task_name": self.task,
            "table_owner": owner or "",
            "table_name": table,
        }


def alterations(connection: Connection) -> Operations:
    """Return Alembic's operations for altering tables on this database."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    return Operations(MigrationContext.configure(connection))


def add_columns(
    connection: Connection,
    table: str,
    schema: str | None,
    columns: Mapping[str, sa.types.TypeEngine[Any]],
) -> None:
    """Adds columns by name and type, which are NULL in the rows that are there."""
    operations, schema = alterations(connection), schema or find_home(connection)
    for name, kind in columns.items():
        # Rows of before have no value in it, whatever the source demands.
        added: sa.Column[Any] = sa.Column(name, kind, nullable=True)
        operations.add_column(table, added, schema=schema)


def change_types(
    connection: Connection,
    table: str,
    schema: str | None,
    columns: Mapping[str, sa.types.TypeEngine[Any]],
) -> None:
    """Gives columns wider types, by their names."""
    if not columns or not connection.dialect.supports_alter:
        return  # SQLite takes values of any type
    operations, schema = alterations(connection), schema or find_home(connection)
    reported = inspect(connection).get_columns(table, schema)
    there = {dialect_of(connection).column_name(column["name"]).casefold(): column for column in reported}
    for name, kind in columns.items():
        known = there[name.casefold()]
        default, using = known.get("default"), None
        if isinstance(known["type"], sa.Boolean):
            # PostgreSQL makes no number of a truth value by itself.
            using = f"CAST({dialect_of(connection).quote(name)} AS integer)"
        operations.alter_column(
            table,
            name,
            type_=kind,
            schema=schema,
            # MariaDB takes away what is not said again.
            existing_nullable=known["nullable"],
            existing_server_default=False if default is None else sa.text(default),
            existing_comment=known.get("comment"),
            postgresql_using=using,
        )


def _position(text: str) -> Position:
    return tuple(int(part) for part in text.split("."))


def _columns(text: str) -> tuple[ChangeColumn, ...]:
    return tuple([ChangeColumn(**column) for column in json.loads(text)])


def _write_columns(columns: Iterable[ChangeColumn]) -> str:
    facts = [{name: getattr(column, name) for name in _FACTS} for column in columns]
    return json.dumps(facts, ensure_ascii=False)


_FACTS = ("name", "type", "header", "key")


def try_tables(settings: DatabaseSettings) -> str:
    """Try to create the change tables; raise SinkError if the login, the schema or a right is
    missing.

    If the database cannot roll back DDL, only look whether the schema exists.
    """
    engine = connect(settings.url)
    dialect = dialect_of(engine)
    where = make_readable_url(engine.url)
    try:
        what = f"The database of the change tables ({where})"
        with in_our_words(engine, what), engine.connect() as connection:
            schemas = inspect(connection).get_schema_names()
            if settings.schema is not None and settings.schema not in schemas:
                hint = "Create it and give the output's login CREATE there, or change `output.schema`."
                raise SinkError(
                    f"{where} has no schema {settings.schema} that this login sees.",
                    hint=hint,
                )
            # Made, and undone: only so is it known that each of the rights is there.
            if dialect.ddl.transactional_ddl:
                if dialect.ddl.begin_ddl is not None:
                    connection.exec_driver_sql(dialect.ddl.begin_ddl)
                Control(settings.task, settings.schema).prepare(connection)
                connection.rollback()
    except SourceError as error:
        # The statement that gives the right, where the database said that one is missing.
        hint = f"GRANT USAGE, CREATE ON SCHEMA {settings.schema} TO {engine.url.username} gives the right."
        if settings.schema is None or engine.url.username is None:
            hint = "Give its login the right to create tables there."
        if not is_denied(dialect, error.__cause__):
            hint = "See to the server, the login and the database in the output's `url`."
        hint = error.hint or hint
        raise SinkError(error.message, hint=hint, may_pass=error.may_pass) from error
    finally:
        engine.dispose()
    target = where
    if settings.schema is not None:
        target = f"schema {settings.schema} of {where}"
    if dialect.ddl.transactional_ddl:
        return f"{target} takes change tables"
    return f"{target} takes our login"
