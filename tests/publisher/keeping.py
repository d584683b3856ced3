"""What keepers of a log do beside publishers: outputs come, go, pause and give up rows, or are forgotten by a command; a
purge; numbers that begin again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from eventlog.care.journal import CaredJournal
from eventlog.care.outputs import find_kept_for, forget, skip
from eventlog.care.rows import PROCESSED
from eventlog.purge.deleting import Purge, purge
from eventlog.sources.marks import RowRanges
from tests.publisher.judging import judge_retries, not_joined, waits
from tests.publisher.sharing import uid_in
from tests.publisher.targets import KINDS, Target, is_filtered

if TYPE_CHECKING:
    from tests.publisher.world import World


def keep(world: World, *, between: bool) -> None:
    """Something of this; `between` two turns, or while a publisher is in the middle of one."""
    was, world.inside = world.inside, True
    try:
        draw = world.more.random()
        if draw < 0.3:
            _give_up(world)
        elif draw < 0.5:
            _forget(world, between=between)
        elif between and _is_at_rest(world):
            _purge(world)
            world.counts["numbers begin again"] += 1
            world.next = 1
            world.live.clear()
            world.held.clear()
            world.retried.clear()
        else:
            _purge(world)
    finally:
        world.inside = was


def _is_at_rest(world: World) -> bool:
    """Return True if every row of the log may go, and no table speaks of any."""
    if world.open or world.frozen or waits(world):
        return False
    return not world.ask("SELECT 1 FROM event_log WHERE status = 'X'")


def _purge(world: World) -> None:
    statuses = _letters(world)
    world.note_given_up()  # what ended so goes with its row
    for _ in purge(world.log, Purge(statuses=PROCESSED, age=0)):
        pass
    gone = statuses.keys() - _letters(world).keys()
    world.counts["purged"] += len(gone)
    world.trace.append((world.now, "purge", sorted(gone)))
    for uid in gone:
        world.rows[uid].letter = statuses[uid]


def _letters(world: World) -> dict[int, str]:
    return {uid_in(value): str(letter) for value, letter in world.ask("SELECT new_value, status FROM event_log")}


def _give_up(world: World) -> None:
    name, numbers = world.more.choice(world.outputs()), None
    kept = find_kept_for(world.log, name)
    if world.more.random() < 0.5:
        kept = numbers = RowRanges.of(number for number in kept if world.more.random() < 0.5)
    world.counts["given up"] += len(kept)
    world.trace.append((world.now, "give up", name, kept.parts))
    for record in kept:
        give_up(world, record, name)
        for row in world.live[record]:
            row.skipped = True
    skip(world.log, name, numbers, by="somebody", delete_from_log=world.deletes)
    judge_retries(world)  # what was to come again may wait no longer


def _forget(world: World, *, between: bool) -> None:
    """Forget an output no publisher works with now; `between` two turns the others go on meanwhile."""
    names = [name for name in world.outputs() if name != world.working]
    if len(names) < 2 or world.frozen:
        return
    name = world.more.choice(names)
    world.counts["forgotten by a command"] += 1
    world.trace.append((world.now, "forget", name))
    excuse(world, name)
    world.forgotten.add(name)
    if between:
        world.forgetting = name
    forget(world.log, name, (), by="somebody", delete_from_log=world.deletes)
    world.forgetting = ""


def excuse(world: World, name: str) -> None:
    """Excuse rows an output lacks as soon as somebody begins to forget it: they may be given up."""
    planned = world.ask(f"SELECT records FROM event_log_planned WHERE output = '{name}'")
    lacking = [RowRanges(map(tuple, json.loads(records))) for (records,) in planned]
    if name in world.outputs():
        lacking.append(find_kept_for(world.log, name))
    for record in RowRanges.union(lacking):
        give_up(world, record, name)


def give_up(world: World, record: int, name: str) -> None:
    for row in world.live[record]:
        row.excused.add(name)


def add(world: World, name: str) -> None:
    """Add an output; it must get the rows the foremost one lacks."""
    assert world.publisher is not None
    if name in world.outputs():
        return
    order = "SELECT name FROM event_log_output ORDER BY position DESC, name"
    foremost = [str(one) for (one,) in world.ask(order)][:1]
    waiting = {uid_in(value) for (value,) in world.ask("SELECT new_value FROM event_log WHERE status = 'N'")}
    has, must, doubt = set[int](), waiting, set[int]()
    if foremost:
        has = {one.uid for one in world.targets[foremost[0]].came}
        known, its, _ = world.added.get(foremost[0], (set(), set(), set()))
        must = {uid for uid in waiting - has - (known - its) if not is_filtered(foremost[0], world.rows[uid].change)}
        if world.max_attempts:  # it may have given them up
            must -= world.targets[foremost[0]].not_taken.keys()
        must = {uid for uid in must if foremost[0] not in world.rows[uid].excused}
        must &= not_joined(world, foremost[0])  # of the others it may have left out more than its filter says
        planned = world.ask(f"SELECT records FROM event_log_planned WHERE output = '{foremost[0]}'")
        numbers = [number for (records,) in planned for number in RowRanges(map(tuple, json.loads(records)))]
        parked = world.ask(f"SELECT record_id FROM event_log_parked WHERE output = '{foremost[0]}'")
        numbers += [number for (number,) in parked]  # what came behind a row that was not taken comes again
        doubt = {row.uid for number in numbers for row in world.live.get(number, ())}
    world.added[name] = (set(world.rows), must, {uid for uid in has - doubt if not world.rows[uid].setbacks})
    world.targets[name] = Target(world, name)
    world.publisher.journal.serve([(name, ())])


def change_outputs(world: World) -> None:
    rng, names = world.rng, world.outputs()
    assert world.publisher is not None
    draw = rng.random()
    if draw < 0.3 and len(world.targets) < 9:
        add(world, rng.choice([*KINDS]) + str(len(world.targets)))
    elif draw < 0.45 and len(names) > 1:
        name = rng.choice(names)
        replaced = world.more.random() < 0.3
        if replaced:  # the one that is ahead: what it had is still to come to the others
            order = "SELECT name FROM event_log_output ORDER BY position DESC, name"
            name = str(world.ask(order)[0][0])
        world.forgotten.add(name)
        excuse(world, name)
        was, world.inside = world.inside, True
        CaredJournal(world.log, world.publisher.journal.settings).forget(name, "somebody")
        world.inside = was
        if replaced and len(world.targets) < 9:
            add(world, name[0] + str(len(world.targets)))
    elif draw < 0.7:
        world.publisher.journal.pause(rng.choice(names), rng.choice([None, "somebody"]))
    else:
        world.away = {rng.choice(names)} if rng.random() < 0.6 else set()
