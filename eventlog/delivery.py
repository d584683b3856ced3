"""One output's share of a batch: documents are planned durably, handed over, and the receiver's answers collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from eventlog.abreast import Crew
from eventlog.model import Change, Document, Outcome, Position, Refusal, Status
from eventlog.precedence import Turns
from eventlog.progress import Planned, Positions, Progress, read_positions, write_positions
from eventlog.schema import Catalog
from eventlog.seams import Format, Lane, Laned, Sink, Staging
from eventlog.verdicts import SEVERITY, Strictness, Verdicts, covered, keep_worse

__all__ = ["SEVERITY", "Delivery", "Output", "Piece", "Strictness", "keep_worse"]

CHUNK = 1000
"""Documents handed to a sink at once: enough to share the cost of a sync, few enough to keep memory flat."""

ANSWERED_CHUNK = 50
"""Documents planned at once on each connection where each is answered: after a crash so many are sent again at most."""


class Output(Struct, frozen=True, kw_only=True):
    """Where documents go: a format and the sink that takes it.

    `name` is what its notes are called and must stay the same; `answers` says that a receiver judges each document.
    """

    format: Format
    sink: Sink
    name: str = "output"
    answers: bool = False


class Piece(Struct, frozen=True, kw_only=True):
    """Changes for documents of their own; `id` is the one that they had when they were planned before."""

    changes: Sequence[Change]
    id: str | None = None


class Delivery:
    """Hands the pieces to one output. What stands in `answers` and `progress()` is true at any moment, errors included."""

    def __init__(
        self,
        output: Output,
        pieces: Sequence[Piece],
        former: Progress,
        strictness: Strictness,
        after: str | None = None,
    ) -> None:
        self.output = output
        self.documents = 0
        self.taken: tuple[str, Position] | None = None
        self._verdicts = Verdicts(former.answers, strictness, [piece.changes for piece in pieces])
        self._pieces = pieces
        self._former = former
        self._after = former.after if former.planned else output.sink.last() if after is None else after
        self._ready: list[Document] | None = None
        self._planned: list[Document] = []
        self._handed = 0
        self._latest = -1

    @property
    def answers(self) -> Mapping[Position, Outcome]:
        """What was said of events, at any moment."""
        return self._verdicts.answers

    @property
    def complaint(self) -> str | None:
        """The last that the output or its format had against a change of this batch."""
        return self._verdicts.complaint

    @property
    def end(self) -> str:
        """The id of the last document, as far as they are encoded."""
        return self._ready[-1].id if self._ready else self._after

    def encode(self, catalog: Catalog | None) -> None:
        """Makes all documents now, for `run` to deliver later."""
        if self._ready is None:
            self._ready = list(self._encoded(catalog))

    def stage(self) -> None:
        """Lets the sink begin with documents that are made already, long before their turn comes."""
        sink, ready = self.output.sink, self._ready
        if ready and isinstance(sink, Staging) and len(ready) <= CHUNK:
            sink.stage(ready)

    def take(self, documents: Iterable[Document], refusals: Iterable[Refusal]) -> None:
        """Takes documents that were made elsewhere, for `run` to deliver."""
        self._ready = list(documents)
        for refusal in refusals:
            self._verdicts.refuse(refusal)

    def run(self, catalog: Catalog | None, note: Callable[[], None], pulse: Callable[[], None]) -> None:
        """Delivers everything; `note` makes the progress of all outputs durable, `pulse` is called again and again."""
        documents = self._encoded(catalog) if self._ready is None else iter(self._ready)
        lanes = self._lanes()
        size = min(ANSWERED_CHUNK * max(1, len(lanes)), CHUNK) if self.output.answers else CHUNK
        with ExitStack() as crews:
            crew: Crew | None = None
            while chunk := list(islice(documents, size)):
                self._planned = chunk
                self._plan(chunk, note)
                if crew is None and len(lanes) > 1 and len(chunk) > 1:
                    crew = crews.enter_context(Crew(lanes[: len(chunk)]))
                self._deliver(chunk, crew, pulse)
                self._planned = []
                self._after = chunk[-1].id
                self._handed += len(chunk)

    def progress(self) -> Progress:
        """How far this output is, for the note about it."""
        planned = [Planned(document.id, write_positions(covered(document))) for document in self._planned]
        return Progress(
            done=self.done(),
            planned=(*self._verdicts.waiting, *planned),
            answers=tuple(answer for answer in self.answers.values() if answer.status is not Status.NEW),
            after=self._after,
        )

    def done(self) -> Positions:
        """The events that are durable at this output, in this batch or before."""
        done = self._verdicts.done
        return write_positions([*read_positions(self._former.done), *done]) if done else self._former.done

    def _lanes(self) -> Sequence[Lane]:
        """The ways to a receiver that judges each document; none where documents are handed over together."""
        sink = self.output.sink
        return sink.lanes if self.output.answers and isinstance(sink, Laned) else ()

    def _plan(self, documents: Sequence[Document], note: Callable[[], None]) -> None:
        """Makes the plan durable; a sink that can gets the documents ready meanwhile, because both wait for a disk."""
        sink = self.output.sink
        if isinstance(sink, Staging) and not self._verdicts.stopping:
            sink.stage(documents)
        note()

    def _deliver(self, documents: Sequence[Document], crew: Crew | None, pulse: Callable[[], None]) -> None:
        """Hands over what was planned: side by side, one after the other where each is answered, or all together."""
        verdicts = self._verdicts

        def take(number: int, outcomes: Sequence[Outcome]) -> None:
            self._take(self._handed + number, documents[number : number + 1], outcomes)
            pulse()

        if crew is not None:
            turns = Turns([verdicts.objects(document) for document in documents])
            crew.deliver(documents, turns, verdicts.holds, take)
        elif self.output.answers:
            for number, document in enumerate(documents):
                if not verdicts.holds(document):
                    self._take(self._handed + number, [document], self.output.sink.write([document]))
                pulse()
        else:
            self._hand_over(documents)
            pulse()

    def _hand_over(self, documents: Sequence[Document]) -> None:
        """Gives documents to the sink together, without those that would overtake what has to be sent again."""
        ready = [document for document in documents if not self._verdicts.holds(document)]
        if ready:
            self._take(self._handed, ready, self.output.sink.write(ready))

    def _take(self, first: int, documents: Sequence[Document], outcomes: Sequence[Outcome]) -> None:
        """Takes in what was said of documents, of which the first has that number."""
        said: dict[Position, Outcome] = {}
        for outcome in outcomes:
            keep_worse(said, outcome)
        self.documents += len(documents)
        self._note_taken(first, documents, said)
        if not said:
            self._verdicts.done.extend(chain.from_iterable(map(covered, documents)))
            return
        for number, document in enumerate(documents, first):
            self._verdicts.judge(number, document, said)

    def _note_taken(self, first: int, documents: Sequence[Document], said: Mapping[Position, Outcome]) -> None:
        """Remembers the last document that does not have to come again, and where its last event stands."""
        for number in range(first + len(documents) - 1, max(self._latest, first - 1), -1):
            document = documents[number - first]
            events = list(covered(document))
            if all(said[position].status is not Status.NEW for position in events if position in said):
                self.taken, self._latest = (document.id, max(events)), number
                return

    def _encoded(self, catalog: Catalog | None) -> Iterator[Document]:
        """The documents in order, each under the id that it had before if it had one."""
        after = self._after
        for piece in self._pieces:
            documents = self._of_piece(piece, catalog, after)
            for document in documents if piece.id is None else _called(piece.id, documents):
                after = document.id
                yield document

    def _of_piece(self, piece: Piece, catalog: Catalog | None, after: str) -> Iterator[Document]:
        for item in self.output.format.encode(piece.changes, catalog, after):
            if isinstance(item, Document):
                yield item
            else:
                self._verdicts.refuse(item)


def _called(identity: str, documents: Iterable[Document]) -> list[Document]:
    """The documents, one of them under this id: there is one only, unless its changes have become more meanwhile."""
    found = list(documents)
    if found and all(document.id != identity for document in found):
        found[-1] = replace(found[-1], id=identity)
    return found
