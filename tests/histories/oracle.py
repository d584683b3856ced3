"""The oracle: what must have come where, how often, in which order, and what the log must say of it
in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from tests.histories.book import Away, Row
from tests.histories.operators import FOREIGN
from tests.histories.targets import FILTERED, Arrival, Files, Target

if TYPE_CHECKING:
    from tests.histories.world import World

RANK: Final = "ISWEF"
"""What may be said of a row, the worst last; I is a policy that leaves it out."""


def wrong_at_once(world: World, target: Target, arrival: Arrival) -> str | None:
    """What is wrong with a row that has just come."""
    row = world.book.rows[arrival.uid]
    what = f"row {row.uid} (record {row.record}, {row.object}) came to {target.called[-1]}"
    if leaves_out(target, row):
        return f"{what}, which leaves it out"
    if target.repeats:
        return None
    if row.held is not None and not _was_on_its_way(row.held, target, row):
        return f"{what} although somebody holds it"
    if row.barred is not None and not _was_on_its_way(row.barred, target, row):
        return f"{what} although it was gone, or had a letter"
    times = world.count(target, row.uid)
    if isinstance(target, Files):
        times = target.now().count(row.uid)
    if times > row.setbacks + 1:
        return f"{what} {times} times, and was set back {row.setbacks} times"
    return None


def leaves_out(target: Target, row: Row) -> bool:
    return target.filters and row.table == FILTERED


def _was_on_its_way(away: Away, target: Target, row: Row) -> bool:
    return any(row.record in away.get(name, ()) for name in ("", *target.called))


def wrong_in_the_end(world: World) -> list[str]:
    """Everything that is wrong when all is quiet."""
    letters = world.book.letters()
    known = {world.book.live[record]: letter for record, letter in letters.items()}
    deletes = "S" if world.config.publisher.delete_from_log else ""
    last = {row.uid: known.get(row.uid, row.letter or deletes) for row in world.book.rows.values()}
    return [
        *(f"at rest the log keeps {one}" for one in world.heart.left_at_rest(world.log)),
        *(f"{target.name} has {one} left" for target in world.configured.values() for one in target.left_behind()),
        *(found for target in world.configured.values() for found in _lost(world, target, last)),
        *(found for target in world.targets.values() if not target.repeats for found in _disorder(world, target)),
        *_wrong_letters(world, last, set(known)),
        *_wrong_records(world, letters),
    ]


def _lost(world: World, target: Target, last: dict[int, str]) -> Iterable[str]:
    came = Counter(one.uid for one in target.came)
    for row in world.book.rows.values():
        judged = not (row.gone or row.foreign or row.keyless or target.name in row.excused)
        if not judged or leaves_out(target, row) or last[row.uid] not in RANK:
            continue
        needed = [int(row.known_since >= world.added_at[target.name])]
        needed += [past[target.name] + 1 for past in row.came_before if target.name in past]
        if came[row.uid] < max(needed):
            said = f"row {row.uid} (record {row.record}, {row.object}) has {last[row.uid]}"
            yield f"{said}, came to {target.called[-1]} {came[row.uid]} times and not {max(needed)}"


def _disorder(world: World, target: Target) -> Iterable[str]:
    """Rows of one object come in their order; looked at as they came, and as a reader finds them at
    the end.
    """
    for how, uids in _orders(world, target):
        highest: dict[str, int] = {}
        for uid in dict.fromkeys(uids):
            row = world.book.rows[uid]
            if row.setbacks:
                continue
            before = highest.get(row.object, 0)
            if uid < before:
                yield f"in {target.called[-1]} row {uid} ({row.object}) {how} after row {before}"
            highest[row.object] = max(before, uid)


def _orders(world: World, target: Target) -> Iterable[tuple[str, list[int]]]:
    yield "came", [one.uid for one in target.came]
    # A document of several rows is called after its last one; one that comes late may be
    # called after a row between those of another.
    if target.kind != "x" or world.config.publisher.batch_size == 1:
        yield "stands", target.now()


def _wrong_letters(world: World, last: dict[int, str], there: set[int]) -> Iterable[str]:
    for row in world.book.rows.values():
        letter = last[row.uid]
        if row.gone or (row.foreign and letter == FOREIGN):
            continue
        if row.foreign:
            yield f"row {row.uid} (record {row.record}) had a letter of others, and has {letter}"
        elif letter in ("", "N"):
            yield f"row {row.uid} (record {row.record}, {row.object}) waits for ever: {letter!r}"
        elif row.odd or (row.uid not in there and world.config.publisher.delete_from_log):
            continue
        elif letter not in (right := _right_letters(world, row)):
            yield f"row {row.uid} (record {row.record}, {row.object}) has {letter} and not {'/'.join(sorted(right))}"


def _right_letters(world: World, row: Row) -> set[str]:
    """The worst that outputs said since it was set back last."""
    if row.keyless:
        return {"E", "W"} if row.excused else {"E"}
    votes: dict[str, str] = {}
    past = row.came_before[-1] if row.came_before else {}
    for name, target in world.targets.items():
        said = [one.letter for one in target.came if one.uid == row.uid][past.get(name, 0) :]
        votes[name] = "I" if leaves_out(target, row) else max(said, key=RANK.index, default="S")
    now = [vote for name, vote in votes.items() if name in world.configured]
    worst = {max(now, key=RANK.index, default="S"), max(votes.values(), key=RANK.index, default="S")}
    worst = {"S" if letter == "I" else letter for letter in worst}
    return worst | ({"W", *worst} if row.excused else set())


def _wrong_records(world: World, letters: dict[int, str]) -> Iterable[str]:
    """No record says N of a row that is not N, none contradicts the letter, none outlives its row."""
    deleted = {row.record for row in world.book.rows.values() if row.gone}
    with world.engine.connect() as connection:
        found = connection.execute(
            text("SELECT record_id, status, reason, next_attempt, held FROM event_log_outcome ORDER BY record_id")
        ).all()
    for record, status, reason, next_attempt, held in found:
        letter = letters.get(record)
        if letter is None:
            if record not in deleted and not (world.config.publisher.delete_from_log and status in ("S", "W")):
                yield f"the record of {record} ({status}, {reason}) outlives its row"
        elif letter == FOREIGN or (letter == "N" and status in (None, "N")):
            continue
        elif status not in (None, letter) or reason in ("retry", "held") or next_attempt is not None or held:
            yield f"{record} is {letter}, and its record says {status}, {reason}, next at {next_attempt}, held {held}"
