"""What versions up to migration 0006 keep in marks: read by itself, for the code that wrote it may
be gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec import Struct, field

from eventlog.core.errors import DataError, InstallError, shortened
from eventlog.core.model import Count, CutTransaction, Outcome, Position, Reason, Status
from eventlog.core.secrets import masked
from eventlog.sql.names import LogNames

VANISHED_NOTE = "the object did not exist when the event was first read."
ABOUT_ALL = ("decided", "counted")
"""Notes that are about no output by itself."""

T = TypeVar("T")
FormerPositions = str | tuple[Position, ...]

_run = re.compile(r"(-?\d+)(?:\.\.(-?\d+))?").fullmatch


class FormerPlanned(Struct, frozen=True, array_like=True):
    """A document that may be at an output."""

    id: str
    positions: FormerPositions
    plan: str = ""
    cut: tuple[CutTransaction, ...] = ()


class FormerProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The note of an output about the batch in hand."""

    done: FormerPositions = ""
    planned: tuple[FormerPlanned, ...] = ()
    answers: tuple[Outcome, ...] = ()
    told: Mapping[int, int] = {}


class FormerDecided(Struct, frozen=True, kw_only=True):
    """What was decided about the batch with the tables in sight."""

    vanished: tuple[Position, ...] = ()
    superseded: tuple[tuple[Position, Position], ...] = ()


class FormerCounted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much of each unfinished transaction outputs have had."""

    told: Mapping[str, Mapping[int, int]] = {}


class FormerOutcome(Struct, frozen=True, array_like=True):
    """The outcome of several rows at outputs that are ahead of others."""

    status: Status
    reason: Reason
    note: str | None
    numbers: str


class FormerLag(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a lagging output is: its notes, and how often rows were offered to it."""

    in_hand: str = ""
    notes: Mapping[str, str] = {}
    attempts: Mapping[int, int] = {}
    waited: bool = False


class OpenDocument(Struct, frozen=True, kw_only=True):
    """A document that may be at an output: the rows behind it, and how those of them end that
    others superseded.
    """

    plan: str
    id: str
    records: tuple[int, ...]
    outcomes: tuple[Outcome, ...] = ()
    cut: tuple[CutTransaction, ...] = ()


class FormerOutput(Struct, kw_only=True):
    """One output: the rows that it has, documents that it may have, and its outcomes.

    `owed` are the rows that outputs in step have and this one has not; None says that it is in step
    itself.
    """

    name: str
    owed: set[int] | None = None
    has: set[int] = field(default_factory=set)
    documents: list[OpenDocument] = []
    outcomes: Mapping[int, Outcome] = {}
    published: Mapping[int, Count] = {}
    attempts: Mapping[int, int] = {}
    paused: str | None = None


def read_marks(connection: sa.Connection, names: LogNames) -> dict[str, str]:
    """Every mark by its name."""
    marks = sa.table(names.marks, sa.column("name"), sa.column("value"), schema=names.schema)
    query = sa.select(marks.c.name, marks.c.value)
    return {str(name): str(value or "") for name, value in connection.execute(query)}


def numbers_in(text: str) -> set[int]:
    """The numbers of a mark such as `60..62,70`."""
    numbers: set[int] = set()
    # "".split(",") would be one empty part.
    for part in text.split(",") if text else ():
        match = _run(part)
        if match is None:
            raise _unreadable(f"{shortened(text)!r} is not a list of numbers.")
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return numbers


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as stretches without gaps, ascending."""
    ordered = sorted(numbers)
    ends = [index for index, (left, right) in enumerate(pairwise(ordered), 1) if right != left + 1]
    stretches = pairwise([0, *ends, len(ordered)])
    # Of no numbers at all the only stretch is empty.
    return [(ordered[first], ordered[last - 1]) for first, last in stretches if first < last]


def as_json(value: object) -> str:
    """A value as marks and the journal's tables have it."""
    return msgspec.json.encode(value).decode()


def read_as(text: str | None, kind: type[T], default: T) -> T:
    """The value of a mark; DataError where it cannot be read."""
    try:
        if not text:
            return default
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise _unreadable(str(error)) from error


def _unreadable(what: str) -> DataError:
    problem = f"A mark of the log cannot be read: {what}"
    return DataError(problem, hint="Restore the table of marks from a backup.")


def marks_after(marks: Mapping[str, str], begin: str) -> dict[str, str]:
    """The marks whose names begin so, by the rest of their names."""
    own = [(name, text) for name, text in marks.items() if name.startswith(begin)]
    return {name.removeprefix(begin): text for name, text in own}


def former_outputs(marks: Mapping[str, str]) -> list[FormerOutput]:
    """The outputs of the publisher that had the log last, and others that rows wait for."""
    notes, owed, lags = (marks_after(marks, begin) for begin in ("note: ", "owed: ", "lagging: "))
    # Names hold no secrets any more; of two that became one, the note that was so already counts.
    unmasked = {name: text for name, text in notes.items() if masked(name) == name}
    notes = {masked(name): text for name, text in notes.items()} | unmasked
    served = read_as(marks.get("served"), list[str], [])
    if not served:  # a version that did not say which outputs it has
        served = [*read_as(marks.get("outputs"), dict[str, Any], {}), *notes]
    strange = set(notes).difference(served, owed, ABOUT_ALL)
    if strange:
        note = f"a note of the output {min(strange)}, which the last publisher did not have"
        message = f"The current batch has {note}."
        hint = "Let the former version publish all that waits, stop it, and upgrade then."
        raise InstallError(message, hint=hint)
    in_step = [name for name in dict.fromkeys(served) if name not in (*owed, *ABOUT_ALL)]
    outputs = [_output(name, notes, None) for name in in_step]
    for name, text in owed.items():
        lag = read_as(lags.get(name), FormerLag, FormerLag())
        outputs.append(_output(name, lag.notes, numbers_in(text)))
        outputs[-1].attempts = lag.attempts
    for output in outputs:
        output.paused = marks.get(f"paused: {output.name}")
    return outputs


def _output(name: str, notes: Mapping[str, str], owed: set[int] | None) -> FormerOutput:
    """An output as its note about the batch in hand says."""
    decided = read_as(notes.get("decided"), FormerDecided, FormerDecided())
    counted = read_as(notes.get("counted"), FormerCounted, FormerCounted())
    progress = read_as(notes.get(name), FormerProgress, FormerProgress())
    winners = {loser[0]: winner for loser, winner in decided.superseded}
    vanished = {position[0] for position in decided.vanished}
    outcomes = {answer.position[0]: answer for answer in progress.answers}
    for number, winner in winners.items():
        outcome = Outcome(position=(number,), reason=Reason.SUPERSEDED, winner=winner)
        outcomes.setdefault(number, outcome)
    for number in vanished:
        outcome = Outcome(
            position=(number,),
            status=Status.WARNING,
            reason=Reason.VANISHED,
            note=VANISHED_NOTE,
        )
        outcomes.setdefault(number, outcome)
    done = set(_numbers(progress.done))
    has = vanished | done | {loser for loser, winner in winners.items() if winner[0] in done}
    # An output without a note had what the transactions before the batch had.
    published: dict[int, Count] = dict(counted.told.get(name, {}))
    if name in notes:
        published = dict(progress.told)
    documents: list[OpenDocument] = []
    seen = set(has)
    for planned in progress.planned:
        covered = [number for number in _numbers(planned.positions) if number not in seen]
        # Rows that one of these superseded end with it.
        losers = [loser for loser, winner in winners.items() if winner[0] in covered]
        losers = [loser for loser in losers if loser not in seen]
        records = tuple(dict.fromkeys([*covered, *losers]))
        seen.update(records)
        document = OpenDocument(
            plan=planned.plan,
            id=planned.id,
            records=records,
            outcomes=tuple(outcomes[number] for number in losers),
            cut=planned.cut,
        )
        documents.append(document)
    # The journal counts what a document tells once it is known to be there.
    for open_document in reversed(documents):
        published.update({part.id: part.before for part in open_document.cut})
    return FormerOutput(
        name=name,
        owed=owed,
        has=has,
        documents=documents,
        outcomes=outcomes,
        published={transaction: count for transaction, count in published.items() if count},
    )


def _numbers(positions: FormerPositions) -> list[int]:
    if isinstance(positions, str):
        return sorted(numbers_in(positions))
    return [position[0] for position in positions]
