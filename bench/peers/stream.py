"""The row changes of the other benchmarks in a server's write-ahead log, and slots that can be read from the first again and again."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from bench.backlog import COLUMNS
from bench.pgq import OBJECTS_AT_ONCE, PRODUCE
from bench.postgresql import url
from eventlog.core.model import Change, Edit, Op, RowId

TABLE: Final = f"CREATE TABLE usr (idu integer PRIMARY KEY, {', '.join(f'{column} text' for column in COLUMNS)})"
SET_UP: Final = (
    "DROP TABLE IF EXISTS usr",
    TABLE,
    "ALTER TABLE usr REPLICA IDENTITY FULL",
    "DROP PUBLICATION IF EXISTS bench",
    "CREATE PUBLICATION bench FOR TABLE usr",
)


class Slot(Struct, frozen=True, kw_only=True):
    """A place in the write-ahead log before the first of so many changes; `run` is a copy for one reader."""

    engine: Engine
    plugin: str
    changes: int
    end: str
    """Where the log stood after the last of them."""

    @property
    def run(self) -> str:
        return f"run_{self.plugin}"

    @property
    def server(self) -> URL:
        return self.engine.url

    def rewind(self) -> None:
        """Makes the copy anew."""
        dropped = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = :run"
        copied = "SELECT pg_copy_logical_replication_slot(:kept, :run)"
        with self.engine.begin() as connection:
            connection.execute(text(dropped), {"run": self.run})
        with self.engine.begin() as connection:
            connection.execute(text(copied), {"kept": f"kept_{self.plugin}", "run": self.run})


def filled_slots(changes: int, *plugins: str) -> dict[str, Slot | str]:
    """A slot for each plug-in, all before the same changes, half of them inserts; or why there is none."""
    engine = create_engine(make_url(url("wal_level=logical")), poolclass=NullPool)
    with engine.begin() as connection:
        for statement in SET_UP:
            connection.execute(text(statement))
    missing = {plugin: why for plugin in plugins if (why := _refusal(engine, plugin))}
    _produce(engine, changes)
    with engine.connect() as connection:
        end = str(connection.execute(text("SELECT pg_current_wal_flush_lsn()")).scalar_one())
    return {
        plugin: missing.get(plugin) or Slot(engine=engine, plugin=plugin, changes=changes, end=end)
        for plugin in plugins
    }


def change_of(number: int, old: dict[str, Any] | None, new: dict[str, Any]) -> Change:
    """An insert, or an update with what has changed, as a log of fields tells them."""
    edits = [
        Edit(column=name, new=value) if old is None else Edit(column=name, old=old.get(name), new=value)
        for name, value in new.items()
        if name != "idu" and (old is None or old.get(name) != value)
    ]
    row = RowId("public", "usr", f"idu={new['idu']}")
    return Change(row=row, op=Op.ADD if old is None else Op.MODIFY, edits=tuple(edits), positions=((number,),))


def written_slot(slot: Slot) -> bytes:
    """What a process of its own has to know of a slot."""
    place = slot.server
    known = {"host": place.host, "port": place.port, "user": place.username, "database": place.database}
    return msgspec.json.encode({**known, "slot": slot.run, "changes": slot.changes})


def _refusal(engine: Engine, plugin: str) -> str | None:
    try:
        with engine.begin() as connection:
            connection.execute(
                text("SELECT pg_create_logical_replication_slot(:slot, :plugin)"),
                {"slot": f"kept_{plugin}", "plugin": plugin},
            )
    except DBAPIError as error:
        return str(error.orig).splitlines()[0]
    return None


def _produce(engine: Engine, changes: int) -> None:
    """Objects are inserted and updated in transactions of the same size as those of the queue."""
    inserts, updates = PRODUCE[0], PRODUCE[1]
    for first in range(0, changes // 2, OBJECTS_AT_ONCE):
        bounds = {"first": first, "last": min(first + OBJECTS_AT_ONCE, changes // 2) - 1}
        for statement in (inserts, updates):
            with engine.begin() as connection:
                connection.execute(text(statement), bounds)
