"""Decides rows of a log that a stream was captured into: each has an image, which is whole.

Outputs are told of a change by its place in the stream, which names documents; the journal knows it
by its row. `Numbers` leads from the one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Document, Event, Image, Outcome, Outcomes, Position, Transaction
from eventlog.core.rules import Decision, Round
from eventlog.core.rules.definitions import DefinitionSpan
from eventlog.core.rules.meaning import together
from eventlog.core.schema import Catalog
from eventlog.publisher.decide import Decider, Encoded, Part
from eventlog.publisher.whole import GoingOn
from eventlog.sources.stream.captured import CapturedImages


class Numbers(Struct, frozen=True, kw_only=True):
    """The rows of images by their positions in the stream, and the transactions by what rows call them."""

    rows: Mapping[Position, Position]
    transactions: Mapping[int, int]

    def of_rows(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """What was said of images, as it is said of their rows."""
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
        positions, said = part.decision.outcomes.positions, part.decision.outcomes.others
        outcomes = Outcomes(
            [self.rows[position] for position in positions],
            {outcome.position: outcome for outcome in self.of_rows(said.values())},
        )
        return replace(part, decision=Decision(changes, outcomes))

    def encoded(self, encoded: Encoded, *, asked: bool) -> Encoded:
        """What is said of rows, which are left, and which documents cover. What goes out stays as outputs know it."""
        said = {outcome.position: outcome for outcome in self.of_rows(encoded.said.values())}
        left = frozenset(self.rows[position] for position in encoded.left)
        documents = [self.covers(document, asked=asked) for document in encoded.documents]
        return replace(encoded, documents=documents, outgoing=encoded.documents, said=said, left=left, numbers=self)


class ImageDecider(Decider):
    """Asks the rules what the images of rows amount to, each by the tables of its time."""

    def __init__(self, round_: Round, log: CapturedImages) -> None:
        super().__init__(round_)
        self._log = log

    def of_rows(self, events: Sequence[Event], answers: Sequence[Outcome]) -> Sequence[Outcome]:
        rows = {self._log.image(event)[0].position: event.position for event in events}
        return Numbers(rows=rows, transactions={}).of_rows(answers)

    def _parts(self, asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
        return parts_of_images(asked, groups, self._log)


def parts_of_images(asked: Round, groups: Sequence[Sequence[Event]], log: CapturedImages) -> list[Part]:
    """What groups of rows amount to, each by itself and by the tables of its time."""
    rows: dict[Position, Position] = {}
    transactions: dict[int, int] = {}
    parts: list[Part] = []
    numbers = Numbers(rows=rows, transactions=transactions)
    for group in groups:
        images: list[tuple[int, Image]] = []
        last: Transaction | None = None
        for event in sorted(group, key=attrgetter("position")):
            image, catalog = log.image(event)
            rows[image.position] = event.position
            # Rows of one transaction share it, and nearly always stand together.
            if event.transaction is not last:
                last = event.transaction
                if last is not None and image.transaction is not None:
                    transactions[last.mark] = image.transaction.mark
            images.append((catalog, image))
        for catalog, of_catalog in groupby(images, key=itemgetter(0)):
            parts.append(_part(asked, log, catalog, [image for _, image in of_catalog], numbers))
    if not parts:
        parts.append(_part(asked, log, 0, [], numbers))
    return parts


def _part(asked: Round, log: CapturedImages, number: int, images: Sequence[Image], numbers: Numbers) -> Part:
    catalog = log.catalogs.find(number) if number else Catalog()
    decision = together(replace(asked, catalog=catalog).decide_groups([images]))
    return Part(decision=decision, span=DefinitionSpan(events=(), catalog=catalog), numbers=numbers)
