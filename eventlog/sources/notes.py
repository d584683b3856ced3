"""How far each output of a stream is with the batch in hand: notes that are durable before a
document is, and survive a crash.

Law: a repeated batch gives every document its former id and only events that were in it, whatever
has happened to the stream meanwhile. So a note says which events a document covers, and a repeat
decides each document's events by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import Captured, Count, CutTransaction, Outcome, Position
from eventlog.sources.marks import as_text, read_runs, write_runs

COUNTED = "counted"
"""The note about transactions that outputs were told a part of, whatever batch is in hand.

Every other note is called like its output.
"""

Positions = str | tuple[Position, ...]
"""Many positions; those of a log are written as stretches, `60..62,70`."""


class Planned(Struct, frozen=True, array_like=True, gc=False):
    """A document that may be at the output already, the events in it, and the plan by which a
    repeat is recognised.

    `cut` are the transactions that it has a part of: a repeat counts them from the same number.
    """

    id: str
    positions: Positions
    plan: str = ""
    cut: tuple[CutTransaction, ...] = ()


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output: the events that are durable there, the documents on their way, and what was
    answered.

    `after` is the id of the document before the first planned one, from which formats go on
    counting. `told` is how much of each unfinished transaction stands in documents up to the last
    planned one.
    """

    done: Positions = ""
    planned: tuple[Planned, ...] = ()
    answers: tuple[Outcome, ...] = ()
    after: str = ""
    told: Mapping[int, Count] = {}


class Counted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What batches leave for those after them: how much each output was told of transactions that
    go on.

    `left` are changes that were not told yet, each by the events in it, which are decided by
    themselves; `away` are those of them that somebody holds since. They must stay what they were:
    told with a later row that is refused, their transaction would have no end.
    """

    told: Mapping[str, Mapping[int, Count]] = {}
    left: tuple[Positions, ...] = ()
    away: tuple[Positions, ...] = ()

    def apart(self, events: Sequence[Captured]) -> list[Sequence[Captured]]:
        """The events of each change that was left, then all others: what was one change stays one."""
        if not self.left and not self.away:
            return [events]
        groups = [read_positions(one) for one in (*self.away, *self.left)]
        place = {position: number for number, group in enumerate(groups) for position in group}
        found: list[list[Captured]] = [[] for _ in range(len(groups) + 1)]
        for event in events:
            found[place.get(event.position, -1)].append(event)
        return [group for group in found if group]

    def covers(self, events: Sequence[Captured]) -> bool:
        """Whether all of these were left."""
        known = {position for one in self.left for position in read_positions(one)}
        return known.issuperset([event.position for event in events])

    def without(self, events: Sequence[Captured]) -> tuple[Positions, ...]:
        """The changes that were left and are not among these events."""
        known = (*self.away, *self.left)
        here = {event.position for event in events} if known else set()
        return tuple([one for one in known if here.isdisjoint(read_positions(one))])


Note = TypeVar("Note", Progress, Counted)


class PlannedPart(Struct, frozen=True, kw_only=True):
    """Events that are decided by themselves, for they are in a `planned` document.

    Those without are in none yet.
    """

    planned: Planned | None = None
    events: Sequence[Captured]


def parts(events: Sequence[Captured], progress: Progress) -> list[PlannedPart]:
    """The events that an output still gets: those of each planned document, in its order, then all
    others.
    """
    done = set(read_positions(progress.done))
    planned = [read_positions(plan.positions) for plan in progress.planned]
    place = {position: number for number, positions in enumerate(planned) for position in positions}
    found: list[list[Captured]] = [[] for _ in range(len(progress.planned) + 1)]
    for event in events:
        if event.position not in done:
            found[place.get(event.position, -1)].append(event)
    noted = [PlannedPart(planned=plan, events=mine) for plan, mine in zip(progress.planned, found, strict=False)]
    return [part for part in (*noted, PlannedPart(events=found[-1])) if part.events]


def once_each(planned: Iterable[Planned], done: Positions) -> tuple[Planned, ...]:
    """The planned documents with each event in the first that has it, without events that are done.

    What waits was planned as well, and may be planned again. An event that stood in two places
    would come at the later one, behind a later change of its object.
    """
    seen = set(read_positions(done))
    documents: list[Planned] = []
    for document in planned:
        positions = read_positions(document.positions)
        left = [position for position in positions if position not in seen]
        seen.update(left)
        if not left:
            continue
        rest = document
        if len(left) < len(positions):
            rest = replace(document, positions=write_positions(left))
        documents.append(rest)
    return tuple(documents)


def read_progress(notes: Mapping[str, str], *names: str) -> Progress:
    """What was noted about an output under its name, else under a former one.

    Nothing when it is new.
    """
    return _read(next((notes[name] for name in names if name in notes), None), Progress)


def read_counted(text: str | None) -> Counted:
    """The note about transactions that go on."""
    return _read(text, Counted)


def write_counted(counted: Counted) -> dict[str, str]:
    """The note as `Source.settle` takes it; nothing where no transaction goes on."""
    told = {output: counts for output, counts in counted.told.items() if counts}
    return {COUNTED: as_text(replace(counted, told=told))} if told or counted.left else {}


def told_before(counted: Counted, notes: Mapping[str, str], *names: str) -> Mapping[int, Count]:
    """How much of each unfinished transaction an output was told, before what it still gets of this
    batch.
    """
    if any(name in notes for name in names):
        return read_progress(notes, *names).told
    return next((counted.told[name] for name in names if name in counted.told), {})


def split_counted(notes: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    """The notes about a batch, and the one that is about none."""
    return {name: text for name, text in notes.items() if name != COUNTED}, notes.get(COUNTED)


def write_positions(positions: Iterable[Position]) -> Positions:
    """Positions in the shortest form."""
    ordered = sorted(positions)
    try:
        return write_runs([number for (number,) in ordered])
    except ValueError:  # of a source whose positions are several numbers
        return tuple(ordered)


def read_positions(positions: Positions) -> list[Position]:
    """What `write_positions` wrote."""
    return [(number,) for number in read_runs(positions)] if isinstance(positions, str) else list(positions)


def _read(text: str | None, kind: type[Note]) -> Note:
    if text is None:
        return kind()
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise _unreadable(error) from error


def _unreadable(error: msgspec.DecodeError) -> DataError:
    hint = "It is in the file of marks; without it documents may be published twice."
    return DataError(f"A note about the current batch cannot be read: {error}.", hint=hint)
