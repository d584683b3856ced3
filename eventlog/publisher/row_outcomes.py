"""How rows end: what a receiver answered for a document, and the worst outcome of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from eventlog.core.model import SEVERITY, Outcome, Position, Reason, Status
from eventlog.delivery.answers import keep_worse
from eventlog.publisher.new_rows import touch
from eventlog.publisher.tables import Detail, OnTheWay


def worst_of(number: int, several: Sequence[Outcome], outputs: int) -> Outcome | None:
    """Choose a row's end from its outputs' outcomes; None where it was simply published."""
    if outputs == 1 and len(several) == 1 and several[0].position == (number,):
        return several[0]  # by far the most common
    # That policies left it out ends a row only where they did so for every output, and that an
    # output was given up for good only where nobody else got it.
    without = [answer for answer in several if answer.reason in (Reason.FILTERED, Reason.FORGOTTEN)]
    counted = several
    if len(without) != outputs:
        counted = [answer for answer in several if answer not in without]
    if not counted:
        return None
    worst = max(counted, key=lambda answer: SEVERITY[answer.status])
    return replace(worst, position=(number,))


Answers = Mapping[Position, Outcome]
"""Outcomes of events, by their positions."""


def choose_worst(outcomes: Iterable[Outcome]) -> dict[Position, Outcome]:
    """Choose the worst outcome of each event."""
    worst: dict[Position, Outcome] = {}
    for outcome in outcomes:
        keep_worse(worst, outcome.position, outcome)
    return worst


POSITION: Final = attrgetter("position")


def judge(
    sent: OnTheWay,
    detail: Detail,
    answers: Mapping[int, Outcome],
    objects: Mapping[int, str],
    most_attempts: int,
) -> tuple[dict[int, Outcome], dict[int, Outcome]]:
    """Judge the answer to a document, change by change: all events of a change end alike.

    Return how its rows end, and why which of them come again.
    """
    ended = {outcome.position[0]: outcome for outcome in detail.said}
    # Silence is success.
    if not answers:
        return ended, {}
    again: dict[int, Outcome] = {}
    covers = sent.covers or {}
    changes = [[position[0] for position in positions] for positions in covers.values()]
    blocked: set[str] = set()
    for records in changes or [[record] for record in detail.records]:
        spoken = [answers[record] for record in records if record in answers]
        worst = max(spoken, key=lambda outcome: SEVERITY[outcome.status], default=None)
        if worst is not None:
            worst = end_retries(most_attempts, worst, sent.attempts)
        # What the receiver took of an object behind a change that it did not take comes again, too:
        # only a repeat leaves the right state there.
        names = {objects[record] for record in records if record in objects}
        if (worst is not None and worst.status is Status.NEW) or touch(names, blocked):
            waiting = worst
            if waiting is None:
                waiting = Outcome(position=(records[0],), status=Status.NEW, reason=Reason.HELD)
            again.update(dict.fromkeys(records, waiting))
            blocked |= names
        elif worst is not None:
            for record in records:
                keep_worse(ended, record, replace(worst, position=(record,)))
    for outcome in detail.said:  # what a row superseded waits with it
        loser = outcome.position[0]
        if outcome.winner is not None and outcome.winner[0] in again:
            again[loser] = again[outcome.winner[0]]
    return {record: outcome for record, outcome in ended.items() if record not in again}, again


def end_retries(most_attempts: int, outcome: Outcome, attempts: int) -> Outcome:
    """Turn a receiver's answer "again" into an error after so many attempts; 0 is never.

    A document that was only held up is not counted.
    """
    if outcome.status is not Status.NEW or outcome.reason is Reason.HELD:
        return outcome
    if not most_attempts or attempts + 1 < most_attempts:
        return outcome
    note = f"Given up after {most_attempts} attempts. {outcome.note or ''}".rstrip()
    return replace(outcome, status=Status.ERROR, reason=Reason.REFUSED, note=note, unread=False)
