"""Rows of a log that a stream was captured into: each has an image, which is whole.

Outputs know a change by its place in the stream, which names documents; the journal knows it
by its row. `ImageNumbers` leads from the one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Document, Outcome, Outcomes, Position
from eventlog.core.rules import Decision
from eventlog.publisher.encode import Encoded, Part
from eventlog.publisher.whole import GoingOn


class ImageNumbers(Struct, frozen=True, kw_only=True):
    """The rows of images by their positions in the stream, and the transactions by what rows call them."""

    rows: Mapping[Position, Position]
    transactions: Mapping[int, int]

    def of_rows(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """The outcomes of images, as those of their rows."""
        rows = self.rows
        return [replace(outcome, position=rows.get(outcome.position, outcome.position)) for outcome in outcomes]

    def covers(self, document: Document, *, asked: bool) -> Document:
        """The document with the rows that it covers: those of each event, which only a target names
        that cannot be `asked` what it has.
        """
        events, row = document.covers, self.rows.__getitem__
        if asked:
            rows = tuple(map(row, chain.from_iterable(events.values())))
            return replace(document, covers={document.id: rows})
        return replace(document, covers={event: tuple(map(row, events[event])) for event in events})

    def going_on(self, going_on: GoingOn) -> GoingOn:
        """The transactions that go on, as images call them."""
        known = self.transactions
        return GoingOn(
            every=frozenset(known[mark] for mark in going_on.every if mark in known),
            soon=frozenset(known[mark] for mark in going_on.soon if mark in known),
        )

    def part(self, part: Part) -> Part:
        """A part of a decision, as it is about rows."""
        changes = [
            replace(change, positions=tuple([self.rows[position] for position in change.positions]))
            for change in part.decision.changes
        ]
        positions, others = part.decision.outcomes.positions, part.decision.outcomes.others
        outcomes = Outcomes(
            [self.rows[position] for position in positions],
            {outcome.position: outcome for outcome in self.of_rows(others.values())},
        )
        return replace(part, decision=Decision(changes, outcomes))

    def encoded(self, encoded: Encoded, *, asked: bool) -> Encoded:
        """Outcomes of rows, which are left, and which documents cover. What goes out stays as outputs know it."""
        outcomes = {outcome.position: outcome for outcome in self.of_rows(encoded.outcomes.values())}
        left = frozenset(self.rows[position] for position in encoded.left)
        documents = [self.covers(document, asked=asked) for document in encoded.documents]
        return replace(
            encoded, documents=documents, outgoing=encoded.documents, outcomes=outcomes, left=left, numbers=self
        )
