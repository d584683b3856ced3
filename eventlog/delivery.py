"""One output's share of a batch: documents are planned durably, handed over, and the receiver's answers collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from eventlog.abreast import Crew
from eventlog.model import Change, Document, Outcome, Position, Refusal, Status
from eventlog.precedence import Front, Turns
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
        if crew is not None:
            self._side_by_side(documents, crew, pulse)
            return
        size = 1 if self.output.answers else len(documents)
        for start in range(0, len(documents), size):
            ready = self._due(start, documents[start : start + size])
            if ready:
                self.taken = self._take(start, ready, self.output.sink.write(ready)) or self.taken
            pulse()

    def _side_by_side(self, documents: Sequence[Document], crew: Crew, pulse: Callable[[], None]) -> None:
        """Documents of different objects go at the same time; what was taken is told as far as nothing before it is open."""
        verdicts = self._verdicts
        skipping = verdicts.strictness.on_retry == "object"
        front = Front(self.taken)

        def holds(number: int) -> bool:
            held = not self._due(number, documents[number : number + 1])
            if held and skipping:
                front.passed(number, None)
            return held

        def take(number: int, outcomes: Sequence[Outcome]) -> None:
            taken = self._take(number, documents[number : number + 1], outcomes)
            if taken is not None or skipping:
                front.passed(number, taken)
            self.taken = front.last
            pulse()

        crew.deliver(documents, Turns([verdicts.objects(document) for document in documents]), holds, take)

    def _due(self, first: int, documents: Sequence[Document]) -> list[Document]:
        """Those that nothing holds, of documents of which the first has that number among those that were planned."""
        numbered = enumerate(documents, self._handed + first)
        return [document for number, document in numbered if not self._verdicts.holds(number, document)]

    def _take(
        self, first: int, documents: Sequence[Document], outcomes: Sequence[Outcome]
    ) -> tuple[str, Position] | None:
        """Takes in what was said of documents, the first of which has that number among those that were planned.

        The last one that does not have to come again, and where its last event stands.
        """
        said: dict[Position, Outcome] = {}
        for outcome in outcomes:
            keep_worse(said, outcome)
        self.documents += len(documents)
        if not said:
            self._verdicts.done.extend(chain.from_iterable(map(covered, documents)))
        else:
            for number, document in enumerate(documents, self._handed + first):
                self._verdicts.judge(number, document, said)
        return _last_taken(documents, said)

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


def _last_taken(documents: Sequence[Document], said: Mapping[Position, Outcome]) -> tuple[str, Position] | None:
    for document in reversed(documents):
        events = list(covered(document))
        if all(said[position].status is not Status.NEW for position in events if position in said):
            return document.id, max(events)
    return None


def _called(identity: str, documents: Iterable[Document]) -> list[Document]:
    """The documents, one of them under this id: there is one only, unless its changes have become more meanwhile."""
    found = list(documents)
    if found and all(document.id != identity for document in found):
        found[-1] = replace(found[-1], id=identity)
    return found
