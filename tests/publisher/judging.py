"""What must be true of a history in the end: what came where, in which order, which letters and records rows have."""

from __future__ import annotations

import collections
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from eventlog.publisher import journal_view
from tests.publisher.laws import OUT_OF_ORDER, Arrival, Due, find_overtaken, judge_status
from tests.publisher.sharing import uid_in
from tests.publisher.targets import ASKABLE, BY_TABLE, Taken, Target, is_filtered, is_unwritable
from tests.support.at_rest import RECORDED, find_left

if TYPE_CHECKING:
    from tests.publisher.actors import Row
    from tests.publisher.world import World

RANK = "SWEF"
ROOM_FOR_ALL = 1_000_000
"""So many bytes have room for every change."""
DELETED = "SW"
"""What a row had, one or the other, that was deleted when it was published."""


def judge(world: World) -> None:
    if waits(world):
        world.fail("left at rest", waits(world))
    statuses = dict.fromkeys(world.rows, DELETED) if world.deletes else {}
    statuses |= {uid: row.letter for uid, row in world.rows.items() if row.letter}
    entries = world.ask("SELECT new_value, status FROM event_log")
    statuses |= {uid_in(value): str(status) for value, status in entries}
    for name in world.outputs():
        if hidden := world.hidden(name):
            world.fail("hidden files are left", name, hidden)
        _output(world, name, world.targets[name], statuses)
    if told := world.ask("SELECT name, warning FROM event_log_output WHERE warning IS NOT NULL"):
        world.fail("a warning without a reason", told)
    _records(world)
    _attempts(world)
    _names(world)
    for uid, row in world.rows.items():
        letter = statuses.get(uid)
        if letter in (None, "N") or row.gone:
            continue
        if row.foreign:
            if letter != "X":
                world.fail("a letter of others was written over", uid, letter)
        elif row.setbacks == len(row.past):
            _letter(world, uid, row, str(letter))


def judge_retries(world: World) -> None:
    """Check, at each commit, that a retry counts its attempts and waits before it goes."""
    retried = world.ask("SELECT output, record_id, due, attempts FROM event_log_parked WHERE reason = 'retry'")
    world.anew &= {record for _, record, *_ in retried}
    world.stopped_until = {output: due for output, _, due, _ in sorted(retried, key=lambda row: row[2] or 0)}
    for output, record, due, attempts in retried:
        if output in world.first and not attempts:  # one that came later begins to count
            world.fail("wanted again, and no attempt is counted", output, record)
        if record in world.anew:
            continue
        retry = output, record
        if due is not None and output in world.first and retry not in world.retried:
            since = world.trace[world.clock_set :]  # before it times were another clock's
            came = [one[0] for one in since if one[1] == "arrived" and (one[2], one[4]) == retry]
            if came and due <= came[-1]:
                world.fail("wanted again, and at once", output, record)
        world.retried[retry] = due or 0


def judge_sending(world: World, name: str, records: Sequence[int]) -> None:
    """Check that rows on their way to a receiver do not come again too early, nor behind what stops them."""
    early = [record for record in records if world.retried.get((name, record), 0) > world.clock]
    # Documents go again as they are, also with rows that were set back since, and wait as others.
    if any(name == output for record in early for output, _ in world.plans_with(record)):
        world.fail("sent again before its time", name, records)
    if world.on_retry != "stop":
        return
    if (world.stopped_until.get(name) or 0) > world.clock:
        world.fail("sent though something comes again", name, records)
    # Whatever comes again waits for a while, and all else behind it; but what is given up stops nothing.
    if world.stopped_at.get(name) == world.now and not (world.max_attempts or world.shares):
        world.fail("sent behind what comes again", name, records)


def _attempts(world: World) -> None:
    """Check that no row is offered more often than allowed, but for lost answers."""
    if not world.max_attempts:
        return
    lost = sum(world.counts[what] for what in ("kills", "errors", "ambiguous", "frozen"))
    for target in world.targets.values():
        for uid, times in target.not_taken.items():
            if times > world.max_attempts * (1 + world.rows[uid].setbacks) + lost:
                world.fail("offered too often", target.name, uid, times, world.max_attempts)


def _names(world: World) -> None:
    """Check that the log knows the receivers' names of objects, but for rows given up or taken away."""
    if not world.calls_objects or world.standbys.happened:
        return
    touched = {one.object for one in world.rows.values() if one.setbacks or one.gone or one.foreign or one.excused}
    world.note_given_up()
    touched |= world.given_up
    for name in world.outputs():
        if name[0] != "r":
            continue
        sql = (
            f"SELECT object, association FROM event_log_association WHERE output = '{name}' AND association IS NOT NULL"
        )
        known, called = dict(world.ask(sql)), world.targets[name].names
        world.counts["objects named by a receiver"] += len(called)
        for one in (known.keys() | called.keys()) - touched:
            if known.get(one) != called.get(one):
                world.fail("the log calls an object otherwise", name, one, known.get(one), called.get(one))


def _records(world: World) -> None:
    """Check that no record is of a waiting row, contradicts its row's status, or outlives its row."""
    gone = {row.record for row in world.rows.values() if row.gone}
    foreign = {row.record for row in world.rows.values() if row.foreign}
    outputs_stayed = not (world.added.keys() - set(world.first) or world.forgotten)
    entries = world.ask(RECORDED)
    statuses: dict[int, set[str]] = collections.defaultdict(set)
    for record, _, letter, _ in entries:
        statuses[record].add(letter)
    for record, said, letter, reason in entries:
        if letter is None:
            if record not in gone:
                world.fail("a record outlives its row", record, said)
            continue
        rows = _rows_spoken_of(world, record)
        uids = {row.uid for row in rows}
        came = any(one.uid in uids for target in world.targets.values() for one in target.came)
        if reason == "filtered" and came and outputs_stayed and not any(row.setbacks for row in rows):
            world.fail("left out by all, and came to one", record)
        # Of rows that had a number one after the other it speaks of the last, perhaps deleted.
        known = statuses[record] | set(DELETED if world.deletes and world.shares else "")
        if said not in known and record not in foreign:
            world.fail("a record contradicts the letter", record, said, letter)


def _rows_spoken_of(world: World, record: int) -> list[Row]:
    """Find the rows of a number a publisher gave a status last: nothing is recorded of rows others gave theirs, or deleted."""
    rows = world.live[record]
    if not all(row.foreign or row.gone for row in rows):
        return rows
    own = [row for row in world.rows.values() if row.record == record and not (row.foreign or row.gone)]
    return own[-1].alike if own else []


def _output(world: World, name: str, target: Target, statuses: dict[int, str]) -> None:
    known, must, must_not = world.added.get(name, (set(), set(world.rows), set()))
    came = collections.Counter(one.uid for one in target.came)
    sure = not_joined(world, name)
    for uid, row in world.rows.items():
        count, letter = came[uid], statuses.get(uid)
        if uid not in sure:
            continue
        if row.names_no_object:
            if count:
                world.fail("came, and names no object", name, uid)
            continue
        if is_filtered(name, row.change):
            if count:
                world.fail("filtered, and came", name, uid)
            continue
        if row.was_shared:
            continue  # `World.arrived` has seen that it did not come
        if uid in must_not and count and not row.setbacks:
            world.fail("a new output got what others had before it", name, uid)
        if row.gone or row.foreign or letter in (None, "N", "X") or name in row.excused or name in world.standbys.told:
            continue
        needed = [0 if uid in known and uid not in must else 1]
        needed += [past[name] + 1 for past in row.past if name in past]
        given_up = bool(world.max_attempts and target.not_taken[uid])
        if what := Due(0 if given_up else max(needed), inf).judge(count):  # `World.arrived` sees what comes too often
            world.fail(what, name, uid, row.record, letter, count, needed)
    _whole(world, name, target)
    if name[0] in ASKABLE:
        _plans(world, name, target)
    # What was sent to whom nobody can ask, and nobody knows any more, comes again behind what came since.
    if name[0] != "p" and not world.standbys.excuses(target):
        _order(world, name, target)
    if world.standbys.happened:
        return  # rows of two histories come, perhaps twice
    if name[0] != "p":
        _readings(world, name, target)
    if name[0] in "ftb" and name in world.first and world.names.transaction:
        _numbers(world, name, target)


def waits(world: World) -> tuple[str, list[tuple[Any, ...]]] | None:
    """Find a table not at rest yet, with some of its rows: of all objects, or of those whose answers can be read."""
    if world.mute and world.quiet:
        rows = world.ask("SELECT table_name, table_key, record_id FROM event_log WHERE status = 'N'")
        rows = [row for row in rows if f"{row[0]}/{row[1]}" not in world.mute]
        return ("log", rows[:3]) if rows else None
    if left := find_left(world.ask):
        table, kept = next(iter(left.items()))
        return table, [*kept[:3]]
    if world.answers_later:
        rows = world.ask("SELECT object, awaiting FROM event_log_association WHERE awaiting IS NOT NULL")
        if rows:
            return "association", rows[:3]
    rows = world.ask("SELECT * FROM event_log WHERE status = 'N'")
    return ("log", rows[:3]) if rows else None


def _changes(world: World) -> dict[int, list[Row]]:
    """Group rows by the first row of their change."""
    found: dict[int, list[Row]] = collections.defaultdict(list)
    for row in world.rows.values():
        found[row.change].append(row)
    return found


def _touched(change: list[Row]) -> bool:
    """Return True if a row of the change was touched by itself."""
    return any(
        row.was_held or row.setbacks or row.gone or row.foreign or row.excused or row.was_shared for row in change
    )


def _torn(world: World) -> set[str]:
    """Find objects with a torn change: a part of it was touched, or may have had no room in memory with the others. The
    rest of it joins the next one, and so moves all others.
    """
    small = world.query_bytes < ROOM_FOR_ALL
    records = sorted(row.record for row in world.rows.values())
    torn = set()
    for change in _changes(world).values():
        numbers = [row.record for row in change]
        # A publisher that takes rows back which waited looks for the rest of a change no further.
        near_rows: int = journal_view.NEAR_ROWS  # type: ignore[attr-defined]  # as the kit has patched it there
        is_far = bisect_right(records, max(numbers)) - bisect_right(records, min(numbers)) > near_rows
        if len(change) > 1 and (small or is_far or _touched(change)):
            torn.add(change[0].object)
    return torn


def not_joined(world: World, name: str) -> set[int]:
    """Find the rows certain for the output's filter: it goes by the first row of a change."""
    filtered = {row.object for row in world.rows.values() if is_filtered(name, row.change)}
    unsure = filtered & _torn(world)
    return {uid for uid, row in world.rows.items() if row.object not in unsure}


def _whole(world: World, name: str, target: Target) -> None:
    """Check that the rows of a change come together."""
    changes, torn = _changes(world), _torn(world)
    for one in target.came:
        whole = tuple(row.uid for row in changes[world.rows[one.uid].change])
        if one.object not in torn and one.beside != whole:
            world.fail("half of a change", name, one.beside, "of", whole)
        world.counts["changes of several rows"] += len(whole) > 1 and one.uid == whole[0]


def _plans(world: World, name: str, target: Target) -> None:
    """Check that the numbers of plans grow at a target, also of those that the log has lost."""
    plans = dict.fromkeys(one.plan for one in target.came)
    for former, later in pairwise(plans):
        if later.partition("-")[0] <= former.partition("-")[0]:
            world.fail("the number of a plan comes again", name, former, later)


def _numbers(world: World, name: str, target: Target) -> None:
    """Check that a transaction's changes are numbered from 1 and the last one flagged, if nobody touched their
    objects.
    """
    touched = {
        row.object
        for row in world.rows.values()
        if row.setbacks or row.gone or row.foreign or row.excused or row.names_no_object or target.not_taken[row.uid]
    }
    came: dict[int, list[Taken]] = {}
    for one in target.came:
        came.setdefault(world.rows[one.uid].transaction, []).append(one)
    spoiled = {row.transaction for row in world.rows.values() if row.object in touched}
    spoiled |= _not_kept_back(world, name)
    for transaction, several in came.items():
        if transaction in spoiled:
            continue
        world.counts["transactions judged"] += 1
        changes = [one for one in several if one.uid == one.beside[0]]
        numbers = [(one.place, one.last) for one in changes]
        if numbers != [(place, place == len(numbers)) for place in range(1, len(numbers) + 1)]:
            world.fail(
                "numbers of a transaction", name, transaction, [(one.uid, one.record) for one in several], numbers
            )
        if name[0] in BY_TABLE:
            _table_numbers(world, name, transaction, changes)


def _not_kept_back(world: World, name: str) -> set[int]:
    """Find transactions with nothing kept back: a row was held, or its table denied, when others went. If it was
    filtered then, nothing was left to be the last.
    """
    held = {row.object for row in world.rows.values() if row.was_held}
    filtered: dict[int, list[Row]] = collections.defaultdict(list)
    not_kept = set()
    for row in world.rows.values():
        if is_filtered(name, row.change):
            if row.object[0] in world.were_denied:
                not_kept.add(row.transaction)
            elif row.object in held:
                filtered[row.transaction].append(row)
    for row in world.rows.values():
        if name not in row.came:
            continue
        when, plan = row.came[name]
        for held_row in filtered.get(row.transaction, ()):
            released = world.released.get(held_row.object)
            if released is None or when < released[0] or (name, plan) in released[1]:
                not_kept.add(row.transaction)
    return not_kept


def _table_numbers(world: World, name: str, transaction: int, several: list[Taken]) -> None:
    """Check that each table's changes are numbered from 1 too, and the last change has the count of each table."""
    counts: dict[str, int] = {}
    for one in several:
        counts[one.collection] = counts.get(one.collection, 0) + 1
        if one.tables != counts:
            world.fail("numbers of a table", name, transaction, one.uid, one.tables, counts)


def _order(world: World, name: str, target: Target) -> None:
    """Check that of no object an earlier row came behind a later one.

    Rows a receiver had and undid come again behind rows it kept, as sent documents keep their ids; rows since then are
    in order with them.
    """
    judged: list[Arrival] = []
    places: list[int] = []
    sure = not_joined(world, name)
    last = {one.uid: place for place, one in enumerate(target.came)}
    for place, one in enumerate(target.came):
        if last[one.uid] != place:
            continue  # it came again, behind a row before it that was not taken
        row = world.rows[one.uid]
        given_up = name in row.excused or (world.max_attempts and one.uid in target.not_taken)
        if row.setbacks or row.gone or row.foreign or given_up:
            continue  # told again; or taken away or given up before it came again behind a row that was not taken
        if one.uid not in sure and (target.repeats[one.uid] or target.not_taken[one.uid]):
            continue  # filtered when it was to come again, with the rest of another change
        undone = target.undone.get(one.uid, 0)
        since = undone if undone <= place else 0  # else it did not come again
        judged.append(Arrival(one.object, one.uid, bisect_left(places, since)))
        places.append(place)
    for at, uid, later in find_overtaken(judged):
        world.fail(OUT_OF_ORDER, name, judged[at].object, uid, "after", later)


def _readings(world: World, name: str, target: Target) -> None:
    """Check that of no object an earlier reading came behind a later one, but in a document planned before it."""
    latest: dict[str, tuple[int, str]] = {}
    for one in target.came:
        read, plan = latest.get(one.object, (0, ""))
        if one.read < read and one.plan >= plan:
            world.fail("an earlier reading", name, one.object, one.uid, one.read, "after", read)
        latest[one.object] = one.read, one.plan


def _letter(world: World, uid: int, row: Row, letter: str) -> None:
    """Check a row's status: the worst answer of the outputs since it was last set back.

    A row without an object is an error, and so are rows that share a number.
    """
    votes = _votes(world, row)
    now = [said for name, said in votes.items() if name in world.outputs()]
    worst = {max(several, key=RANK.index, default="S") for several in (now, [*votes.values()])}
    if world.max_attempts and any(target.not_taken[uid] for target in world.targets.values()):
        worst.add("E")  # given up, perhaps
    if row.names_no_object or len(row.alike) > 1:
        # Those that said so may have been forgotten, and the last one with it.
        worst = {"E", "S"} if world.forgotten and not votes else {"E"}
    if row.skipped:
        worst.add("W")
    elif row.excused and not votes.keys() - world.forgotten:
        worst.add("W")  # nobody else got it
    if world.raises:
        unwritable = [name for name in world.targets if is_unwritable(name, row.change)]
        if unwritable or _may_have_joined_unwritable(world, row):
            worst.add("E")
        lone = not (row.was_shared or row.setbacks or row.was_held or row.excused or world.forgotten)
        if lone and any(name in world.first and uid in not_joined(world, name) for name in unwritable):
            worst = {"E"}
    if any(uid in target.denied for target in world.targets.values()) and (row.setbacks or row.letter or world.deletes):
        worst |= {"S", "E", "W"}  # what was said later may be of the former time, or of a row that has left the log
    if world.counts["a target failed over"]:
        worst |= {"E", "W"}  # what had been said of a row that is sent again counts as well
    if world.counts["both were restored at once"]:
        worst.add("S")  # the log may know only what a target said that has forgotten it, and has said otherwise since
    if all(judge_status(one, worst) for one in letter):
        world.fail("letter", letter, "and not", worst, uid, votes)


def _may_have_joined_unwritable(world: World, row: Row) -> bool:
    """Return True if a row may have come with the rest of another change of its object, unwritable for a format."""
    changes = {one.change for one in world.rows.values() if one.object == row.object}
    return any(
        row.uid not in not_joined(world, name) and any(is_unwritable(name, change) for change in changes)
        for name in world.targets
    )


def _votes(world: World, row: Row) -> dict[str, str]:
    """Find each output's last answer for a row."""
    votes: dict[str, str] = {}
    past = row.past[-1] if row.past else {}
    for name, target in world.targets.items():
        came = [one.status for one in target.came if one.uid == row.uid][past.get(name, 0) :]
        if came:
            votes[name] = came[-1]
    return votes
