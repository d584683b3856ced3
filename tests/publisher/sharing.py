"""Rows of one number, which the log of somebody else may have.

Law: rows of one number that wait together are refused together: none is published, and all get E. They
are held and set back together, too. A number whose rows have their letters is the own one of a new row.

Not drawn is a row that gets a number which a publisher has in hand: no statement could tell it from
the other row, with which it gets its letter unpublished.

Nor one that gets a number which a publisher has sealed while rows wait: law 12 of the journal says
that it is not looked for, so a later row of its object goes before the sweep has found it. Numbers
must not come twice; where nothing waits, a row with one that did goes in its turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, text

from eventlog.core.rules.images import decode_image
from eventlog.sources.marks import SEEN, RowRanges

if TYPE_CHECKING:
    from tests.publisher.actors import Row
    from tests.publisher.world import World

KEY = " PRIMARY KEY AUTOINCREMENT"
"""What keeps a number from being given twice."""


def have_key(connection: Connection, *, wanted: bool) -> None:
    """Make SQLite's empty log again with a key or without, if it is not so."""
    log, *indexes = connection.execute(text("SELECT sql FROM sqlite_master WHERE tbl_name = 'event_log'")).scalars()
    if (KEY in log) == wanted:
        return
    number = "record_id INTEGER NOT NULL"
    connection.execute(text("DROP TABLE event_log"))
    for statement in (log.replace(number + KEY, number) if not wanted else log.replace(number, number + KEY), *indexes):
        connection.execute(text(statement))


def waiting_rows(world: World, record: int, status: str = "N") -> list[Row]:
    """Find the rows of a number that wait, or have this status."""
    told = world.ask(f"SELECT new_value FROM event_log WHERE record_id = {record} AND status = '{status}' ORDER BY 1")
    return [world.rows[uid_in(value)] for (value,) in told]


def uid_in(value: str) -> int:
    """Read the uid in a value, or in the image of a row."""
    if (image := decode_image(value)) is not None:
        [told] = image[1]
        value = told or ""
    return int(value.partition("/")[2])


def join(world: World, record: int) -> list[Row]:
    """Treat the waiting rows of this number as one from now on."""
    world.live[record] = rows = waiting_rows(world, record)
    for row in rows:
        row.alike = rows
        row.was_shared = row.was_shared or len(rows) > 1
    return rows


def new_rows(world: World, numbers: Iterable[int]) -> None:
    """Note written rows with these numbers, also used before."""
    for record in numbers:
        world.counts["rows of one number"] += len(join(world, record)) > 1
        world.retried = {key: due for key, due in world.retried.items() if key[1] != record}


def share(world: World, changes: Sequence[tuple[list[int], str]]) -> Sequence[tuple[list[int], str]]:
    """Give rows numbers of others of their transaction, or of others in the log."""
    if not world.shares:
        return changes
    numbers = sorted(record for records, _ in changes for record in records)
    shared = []
    for records, name in changes:
        # Only a higher one: those of its object come in their order.
        raised = [
            world.more.choice([other for other in numbers if other >= record])
            if world.more.random() < world.shares
            else record
            for record in records
        ]
        if len(records) == 1 and world.more.random() < world.shares and (free := _known(world, name)):
            raised = [world.more.choice(free)]
            world.counts["numbers of other transactions"] += 1
        shared.append((sorted(raised), name))
    return shared


def may_speak_of_another(world: World, record: int, rows: Sequence[Row]) -> bool:
    """Return True if the journal or a publisher may hold a row of this number other than these."""
    return waiting_rows(world, record) != [] or (world.live[record] != rows and record in _in_hand(world))


def _known(world: World, name: str) -> list[int]:
    """Find numbers nobody has in hand, above those of the object's own waiting rows."""
    entries = world.ask("SELECT record_id, status, new_value FROM event_log")
    above, waiting, foreign, own = 0, set[int](), set[int](), set[int]()
    for record, status, value in entries:
        of_object = world.rows[uid_in(value)].object == name
        if status == "N":
            waiting.add(record)
            above = max(above, record * of_object)
            own |= {record} if of_object else set()
        elif status == "X":
            foreign.add(record)
    return sorted(
        {
            record
            for record, *_ in entries
            if record > above and record not in foreign and not (record in waiting and world.frozen)
        }
        - _in_hand(world)
        - own
        - set(_sealed(world))
    )


def _sealed(world: World) -> RowRanges:
    """Find numbers no publisher looks for while rows wait: this one by its memory, the next one by the mark."""
    sealed = RowRanges()
    for (value,) in world.ask(f"SELECT value FROM event_log_mark WHERE name = '{SEEN}'"):
        sealed |= RowRanges.read(value)
    memory = None if world.publisher is None else world.publisher.journal._memory
    return sealed if memory is None else sealed | memory.seen


def _in_hand(world: World) -> set[int]:
    """Find numbers in the journal or in a publisher's hands."""
    found = set[int](world.held)
    for table in ("parked", "hold", "answer"):
        found.update(record for (record,) in world.ask(f"SELECT record_id FROM event_log_{table}"))
    for table in ("batch", "planned"):
        for (records,) in world.ask(f"SELECT records FROM event_log_{table}"):
            found.update(RowRanges(map(tuple, json.loads(records))))
    for (covers,) in world.ask("SELECT covers FROM event_log_planned WHERE covers IS NOT NULL"):
        found.update(position[0] for several in json.loads(covers).values() for position in several)
    if world.publisher is not None:
        found |= world.publisher.read_ahead()
    return found
