"""How rows end: what a receiver said of a document, and the worst that outputs have said of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import SEVERITY, Event, Outcome, Position, Reason, Status
from eventlog.publisher.tables import Detail, OnTheWay


def worst_of(number: int, several: Sequence[Outcome], outputs: int) -> Outcome | None:
    """What a row ends with; None where it was simply published. Left out by policies it is only where all say so."""
    filtered = [one for one in several if one.reason is Reason.FILTERED]
    counted = several if len(filtered) == outputs else [one for one in several if one not in filtered]
    if not counted:
        return None
    worst = max(counted, key=lambda one: SEVERITY[one.status])
    return replace(worst, position=(number,))


def by_position(outcomes: Iterable[Outcome]) -> dict[Position, Outcome]:
    """The worst that was said of each event."""
    found: dict[Position, Outcome] = {}
    for outcome in outcomes:
        former = found.get(outcome.position)
        if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
            found[outcome.position] = outcome
    return found


def by_number(outcomes: Iterable[Outcome]) -> dict[int, Outcome]:
    """The worst that was said of the rows with each number; what a database cannot tell apart ends alike."""
    found: dict[int, Outcome] = {}
    for outcome in outcomes:
        former = found.get(outcome.position[0])
        if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
            found[outcome.position[0]] = outcome
    return found


def of_shared_numbers(events: Iterable[Event], said: Mapping[Position, Outcome]) -> dict[Position, Outcome]:
    """What rows end with that have one number together, because a database cannot tell which of them is meant.

    A row that was published is not called an error for its neighbour's sake.
    """
    positions: dict[int, list[Position]] = {}
    for event in events:
        positions.setdefault(event.position[0], []).append(event.position)
    found: dict[Position, Outcome] = {}
    for number, alike in positions.items():
        bad = [said[one] for one in alike if one in said and said[one].status in (Status.ERROR, Status.FATAL)]
        waits = any(one in said and said[one].status is Status.NEW for one in alike)
        if len(alike) == 1 or not bad or len(bad) == len(alike) or waits:
            continue
        note = f"{len(alike)} rows have this record_id, and {len(bad)} of them could not be published: {bad[0].note}"
        joined = Outcome(position=(number,), status=Status.WARNING, reason=bad[0].reason, note=note)
        found |= {one: replace(joined, position=one) for one in alike}
    return found


class Judged(Struct, frozen=True):
    """What was said of a document: how its rows end, and which of them come again, with the reason."""

    said: Mapping[int, Outcome]
    again: Mapping[int, Outcome]


def judge(
    one: OnTheWay, detail: Detail, answers: Mapping[int, Outcome], objects: Mapping[int, str], most_attempts: int
) -> Judged:
    """What was said of a document, change by change: all events of a change end alike, and silence is success.

    What the receiver took of an object behind a change that it did not take comes again: only a repeat leaves the
    right state there.
    """
    ended = by_number(detail.said)
    again: dict[int, Outcome] = {}
    changes = [[position[0] for position in covered] for covered in (one.covers or {}).values()]
    blocked: set[str] = set()
    for records in changes or [[record] for record in detail.records]:
        spoken = [answers[record] for record in records if record in answers]
        worst = max(spoken, key=lambda outcome: SEVERITY[outcome.status], default=None)
        if worst is not None and worst.status is Status.NEW:
            worst = given_up(most_attempts, worst, one.attempts)
        names = {objects[record] for record in records if record in objects}
        if (worst is not None and worst.status is Status.NEW) or names & blocked:
            waiting = worst or Outcome(position=(records[0],), status=Status.NEW, reason=Reason.HELD)
            again.update(dict.fromkeys(records, waiting))
            blocked |= names
        elif worst is not None:
            for record in records:
                former = ended.get(record)
                if former is None or SEVERITY[worst.status] > SEVERITY[former.status]:
                    ended[record] = replace(worst, position=(record,))
    for outcome in detail.said:  # what a row superseded waits with it
        loser = outcome.position[0]
        if outcome.winner is not None and outcome.winner[0] in again:
            again[loser] = again[outcome.winner[0]]
    return Judged({record: outcome for record, outcome in ended.items() if record not in again}, again)


def given_up(most_attempts: int, outcome: Outcome, attempts: int) -> Outcome:
    """What a receiver asked for once more; an error where it was offered often enough. 0 is never."""
    if not most_attempts or attempts + 1 < most_attempts:
        return outcome
    note = f"Given up after {most_attempts} attempts. {outcome.note or ''}".rstrip()
    return replace(outcome, status=Status.ERROR, reason=Reason.REFUSED, note=note, unread=False)
