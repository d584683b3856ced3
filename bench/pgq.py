"""A consumer of PgQ in Python: the same row changes, from a queue that C triggers fill, whole rows as payload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_plus

from msgspec import Struct
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from bench.backlog import BATCH_SIZE, COLUMNS, LIMIT, PER_CHANGE, engine
from bench.postgresql import url
from eventlog.core.model import Change, Document, Edit, Op, RowId
from eventlog.core.seams import encode
from eventlog.sinks.files import FileSink
from eventlog.xds.write import XdsFormat

OBJECTS_AT_ONCE: Final = LIMIT // PER_CHANGE // 2
"""Inserted and updated between two ticks, so that a batch holds as many row changes as a cycle of the publisher."""

VALUES: Final = ", ".join(f"'new ' || {COLUMNS.index(column)} + 8 * n" for column in COLUMNS)
PRODUCE: Final = (
    f"INSERT INTO usr SELECT n, {VALUES} FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS n",
    f"UPDATE usr SET {COLUMNS[0]} = 'R&D ' || idu, {COLUMNS[1]} = 'new ' || idu WHERE idu BETWEEN :first AND :last",
    "SELECT pgq.force_tick('changes')",
    "SELECT pgq.ticker('changes')",
)
SET_UP: Final = (
    "CREATE EXTENSION pgq",
    f"CREATE TABLE usr (idu integer PRIMARY KEY, {', '.join(f'{column} text' for column in COLUMNS)})",
    "SELECT pgq.create_queue('changes')",
    "CREATE TRIGGER queued AFTER INSERT OR UPDATE ON usr FOR EACH ROW EXECUTE FUNCTION pgq.logutriga('changes')",
    "SELECT pgq.ticker('changes')",
)
EVENTS: Final = "SELECT ev_id, ev_type, ev_data FROM pgq.get_batch_events(:batch)"
FIRST: Final = "SELECT min(tick_id) FROM pgq.tick JOIN pgq.queue ON queue_id = tick_queue WHERE queue_name = 'changes'"


class Queue(Struct, frozen=True, kw_only=True):
    """A queue that holds row changes; a consumer can begin with the first of them again and again."""

    engine: Engine
    changes: int
    folder: Path

    def rewind(self) -> None:
        """Makes the consumer begin anew."""
        with self.engine.begin() as connection:
            connection.execute(text("SELECT pgq.unregister_consumer('changes', 'bench')"))
            first = connection.execute(text(FIRST)).scalar_one()
            connection.execute(text("SELECT pgq.register_consumer_at('changes', 'bench', :first)"), {"first": first})

    def parse(self) -> None:
        """Reads every batch, makes a dictionary of every payload, and finishes the batch."""
        self._check(sum(len([parsed(data) for _, _, data in events]) for events in self._batches()))

    def publish(self) -> None:
        """Does that, and writes the changes into XDS files as eventlog would."""
        sink, form = FileSink(self.folder / "out", ".xml"), XdsFormat(batch_size=BATCH_SIZE)
        sink.open(None)
        found = 0
        for events in self._batches():
            changes = [change for number, kind, data in events if (change := _change(number, kind, parsed(data)))]
            sink.commit("", [document for document in encode(form, changes) if isinstance(document, Document)])
            found += len(changes)
        self._check(found)

    def _batches(self) -> Iterator[list[Any]]:
        with self.engine.connect() as connection:
            while (batch := _next(connection)) is not None:
                yield list(connection.execute(text(EVENTS), {"batch": batch}))
                connection.execute(text("SELECT pgq.finish_batch(:batch)"), {"batch": batch})
                connection.commit()

    def _check(self, found: int) -> None:
        if found != self.changes:
            raise AssertionError(f"{found} of {self.changes} changes came out of the queue")


def filled_queue(changes: int, folder: Path) -> Queue | str:
    """A queue with so many row changes, half of them inserts; or why there is none."""
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE queues"))
    own = create_engine(url().rpartition("/")[0] + "/queues", poolclass=NullPool)  # nothing stays open when it ends
    try:
        with own.begin() as connection:
            for statement in SET_UP:
                connection.execute(text(statement))
            connection.execute(text("SELECT pgq.register_consumer('changes', 'bench')"))
    except DBAPIError as error:
        return str(error.orig).splitlines()[0]
    for first in range(0, changes // 2, OBJECTS_AT_ONCE):
        bounds = {"first": first, "last": min(first + OBJECTS_AT_ONCE, changes // 2) - 1}
        for statement in PRODUCE:
            with own.begin() as connection:
                connection.execute(text(statement), bounds if ":first" in statement else {})
    return Queue(engine=own, changes=changes, folder=folder)


def parsed(data: str) -> dict[str, str | None]:
    """A payload as a dictionary; a name without a value stands for NULL."""
    found: dict[str, str | None] = {}
    for part in data.split("&"):
        name, equals, value = part.partition("=")
        found[name] = (unquote_plus(value) if "%" in value or "+" in value else value) if equals else None
    return found


def _next(connection: Connection) -> int | None:
    found: int | None = connection.execute(text("SELECT pgq.next_batch('changes', 'bench')")).scalar()
    return found


def _change(number: int, kind: str, row: dict[str, str | None]) -> Change | None:
    """An insert or an update with its values; the queue does not say what they were."""
    operation = {"I:idu": Op.ADD, "U:idu": Op.MODIFY}.get(kind)
    if operation is None:
        return None
    edits = tuple([Edit(column=name, new=value, reset=True) for name, value in row.items() if name != "idu"])
    return Change(row=RowId("public", "usr", f"idu={row['idu']}"), op=operation, edits=edits, positions=((number,),))
