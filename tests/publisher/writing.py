"""What writers of a history do: changes of one or more rows, in transactions that are committed now or later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import psycopg

from eventlog.core.rules.images import encode_image
from eventlog.sql.names import CONTEXT, TRANSACTION
from tests.publisher.actors import COLUMNS, DEFINITION, Row
from tests.publisher.sharing import new_rows, share

if TYPE_CHECKING:
    from tests.publisher.world import World

VALUE_LENGTHS = [0, 0, 0, 700, 3000]
"""Bytes that values have beside what they say: some have more than a batch may have where `query_bytes` are few."""

UPDATE, UPDATE_ROW = 2, 6

MOST_SESSIONS = 6
"""So many sessions hold the log locked at most; more open changes than that share them."""


class OpenWriters:
    """Sessions that have the log locked as an insert has, from before a change draws its first number until its rows
    are there or never come: by that the publisher knows which numbers may still come (`eventlog.publisher.proven`).
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._sessions: list[psycopg.Connection] = []
        self._changes: list[set[str]] = [set() for _ in range(MOST_SESSIONS)]

    def begin(self, name: str) -> None:
        """Lock the log for a change of an object."""
        if self._world.engine.dialect.name != "postgresql":
            return
        place = min(range(MOST_SESSIONS), key=lambda place: len(self._changes[place]))
        if place == len(self._sessions):
            url = self._world.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
            self._sessions.append(self._world.leaving.enter_context(psycopg.connect(url)))
        if not self._changes[place]:
            self._sessions[place].execute("LOCK TABLE event_log IN ROW EXCLUSIVE MODE")
        self._changes[place].add(name)

    def end(self, names: Iterable[str]) -> None:
        """Let the log go, now that the rows of these objects are there or never come."""
        ended = {*names}
        for place, session in enumerate(self._sessions):
            if self._changes[place] and self._changes[place] <= ended:
                session.rollback()
            self._changes[place] -= ended


def write(world: World) -> None:
    """Begin a change, perhaps add rows to another, and commit some now or later; one writer at a time changes an
    object.
    """
    rng = world.rng
    if len(world.rows) + sum(len(records) for records, _ in world.open) < world.total and rng.random() < 0.95:
        name = f"{rng.choice('AB')}/id={rng.randint(0, world.last_key)}"
        if rng.random() < world.busiest:
            name = "A/id=0"
        if world.more.random() < world.nameless:
            name = f"{name[0]}/"
        if name not in world.busy:
            world.writers.begin(name)
            world.open.append(([_draw(world)], name))
            world.busy.add(name)
        for records, _ in world.open:
            if len(records) < len(COLUMNS) and rng.random() < world.several:
                records.append(_draw(world))
    if world.open and rng.random() < world.commits:
        end_one(world)


def end_one(world: World) -> None:
    """Commit some of the open changes in one transaction, or roll them back."""
    rng = world.rng
    size = min(len(world.open), rng.choice(world.transaction_rows))
    ended = [world.open.pop(rng.randrange(len(world.open))) for _ in range(size)]
    names = [name for _, name in ended]
    world.busy.difference_update(names)
    if rng.random() < 0.05:
        world.total -= sum(len(records) for records, _ in ended)  # rolled back: a hole
    else:
        _commit(world, ended)
    world.writers.end(names)


def _draw(world: World) -> int:
    record = world.next
    world.next += 1 + (world.rng.random() < 0.1)
    return record


def _commit(world: World, changes: Sequence[tuple[list[int], str]]) -> None:
    """Write changes in one transaction."""
    world.counts["transactions"] += 1
    rows, numbers = [], set[int]()
    for records, name in share(world, changes):
        first = len(world.rows) + 1
        numbers.update(records)
        for record, column in zip(records, COLUMNS, strict=False):
            uid = len(world.rows) + 1
            world.rows[uid] = Row(uid, record, name, world.counts["transactions"], first)
            world.live[record] = world.rows[uid].alike
            table, key = name.split("/")
            value = f"{first}/{uid}" + " " * world.rng.choice(VALUE_LENGTHS)
            row = {"record": record, "name": table, "key": key or "-", "kind": UPDATE, "column": column}
            row |= {"former": None, "value": value, "transaction": world.counts["transactions"], "who": f"<{first}>"}
            rows.append(row | (_image(world, value) if world.images and len(records) == 1 else {}))
            world.trace.append((world.now, "row", uid, record, name, world.counts["transactions"]))
    # PostgreSQL says itself which transaction wrote a row.
    named, named_value = "", ""
    if world.engine.dialect.name != "postgresql":
        named, named_value = f", {TRANSACTION}", ", :transaction"
    world.run_sql(
        "INSERT INTO event_log (record_id, status, event_type, event_time, table_name, table_key, column_name,"
        f" old_value, new_value, {CONTEXT}{named})"
        f" VALUES (:record, 'N', :kind, '2026-03-23 10:57:19', :name, :key, :column, :former, :value, :who{named_value})",
        rows,
    )
    world.counts["rows"] += len(rows)
    if world.shares:
        new_rows(world, sorted(numbers))


def _image(world: World, value: str) -> dict[str, object]:
    """Make the columns of a change as the image of a row, perhaps with the former one; none for a field."""
    if world.imaged.random() >= world.images:
        return {}
    world.counts["images"] += 1
    former = encode_image(DEFINITION, ["before"]) if world.imaged.random() < 0.5 else None
    return {"kind": UPDATE_ROW, "column": None, "former": former, "value": encode_image(DEFINITION, [value])}
