"""What operators of a history do at any moment: they hold, release, delete, letter and set back rows."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from eventlog.care.journal import hold, release
from eventlog.care.rows import Choice, requeue
from eventlog.sources.marks import RowRanges
from tests.publisher.sharing import join, may_speak_of_another, waiting_rows

if TYPE_CHECKING:
    from tests.publisher.world import World


def operate(world: World, *, inside: bool = False, what: str = "", among: Collection[int] | None = None) -> None:
    """Somebody holds, releases, deletes, letters or sets back a row, perhaps one `among` these."""
    was, world.inside = world.inside, True
    try:
        _operate(world, inside, what, among)
    finally:
        world.inside = was


def _operate(world: World, inside: bool, what: str, among: Collection[int] | None) -> None:
    rng = world.rng
    what = what or rng.choice(world.operations)
    if what == "release":
        if world.held:
            record = rng.choice(sorted(world.held))
            del world.held[record]
            let_go(world, record)
            world.trace.append((world.now, "release", record))
        return
    status = {"back": "<> 'N'", "undo": "= 'X'"}.get(what, "= 'N'")
    found = world.ask(f"SELECT DISTINCT record_id, status FROM event_log WHERE status {status} ORDER BY 1, 2")
    if not found:
        return
    if among is not None:
        found = [row for row in found if row[0] in among]
        if not found:
            return
    record, letter = rng.choice(found[-12:])
    rows = waiting_rows(world, record, letter)
    world.counts[what] += 1
    world.trace.append((world.now, what, record, *[(row.uid, row.object) for row in rows]))
    if what == "hold":
        plans = world.plans_with(record)
        with world.log.transaction() as connection:
            _, late = hold(connection, world.log, [(record, record)], "somebody")
        if late != {output for output, _ in plans}:
            world.fail("hold does not say who has it already", late, plans)
        for row in rows:
            row.was_held = True
        carried = set[tuple[str, str]]().union(*[row.carried for row in rows])
        world.held.setdefault(record, plans | world.plans_carrying(record) | carried)
        world.held_late.discard(record)
        return
    if what in ("back", "undo"):
        _set_back(world, record, letter)
        return
    plans = world.plans_with(record)
    for row in rows:
        row.carried |= plans
        row.allowed = None if inside else world.may_go(record)
    if what == "delete":
        world.run_sql("DELETE FROM event_log WHERE record_id = :record AND status = 'N'", record=record)
        for row in rows:
            row.gone = True
        world.held.pop(record, None)
    elif what == "letter":
        world.run_sql("UPDATE event_log SET status = 'X' WHERE record_id = :record AND status = 'N'", record=record)
        for row in rows:
            row.foreign = True
        if world.held.pop(record, None) is not None:  # else nobody is told
            let_go(world, record)


def sent_again(world: World, *, left: bool) -> set[int]:
    """Find the rows of documents sent again as they are, or those that have `left` them."""
    rows = set[int]()
    for covers, records in world.ask("SELECT covers, records FROM event_log_planned WHERE covers IS NOT NULL"):
        covered = {position[0] for change in json.loads(covers).values() for position in change}
        waiting = set(RowRanges(map(tuple, json.loads(records))))
        rows |= covered - waiting if left else covered & waiting
    return rows


def _set_back(world: World, record: int, letter: str) -> None:
    plans = world.plans_with(record)
    former = waiting_rows(world, record, letter)
    for row in former:
        row.carried |= plans
    if any(row.setbacks >= 3 for row in former) or (world.shares and may_speak_of_another(world, record, former)):
        return
    statuses = {row.uid: one for one in "XSWEF" for row in waiting_rows(world, record, one)}
    if (
        world.quiet or not record % 2 or not requeue(world.log, [(record, record)], Choice(statuses="SWEF"))
    ):  # else by hand
        sql = "UPDATE event_log SET status = 'N' WHERE record_id = :record AND status = :letter"
        world.run_sql(sql, record=record, letter=letter)
    for row in join(world, record):
        row.setbacks, row.allowed = row.setbacks + 1, None
        if statuses[row.uid] != "X":
            row.past.append(
                {name: sum(one.uid == row.uid for one in world.targets[name].came) for name in world.outputs()}
            )
        row.foreign = False
    if world.held.pop(record, None) is not None:  # else nobody is told: that tells the publisher to read all anew
        let_go(world, record)
    world.retried = {key: due for key, due in world.retried.items() if key[1] != record}
    world.anew.add(record)


def let_go(world: World, record: int) -> None:
    """Release a held row."""
    plans = world.ask("SELECT output, plan FROM event_log_planned")
    for row in world.live[record]:
        world.released[row.object] = len(world.trace), {(output, plan) for output, plan in plans}
    with world.log.transaction() as connection:
        release(connection, world.log, [(record, record)])
