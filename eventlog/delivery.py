"""One output's share of a batch: documents are planned durably, handed over, and the receiver's answers collected.

Law: no later change of an object overtakes one that its receiver wants to get again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eventlog.model import Change, Document, Outcome, Position, Reason, Refusal, RowId, Status
from eventlog.progress import Planned, Positions, Progress, read_positions, write_positions
from eventlog.rules.meaning import STATUS
from eventlog.schema import Catalog
from eventlog.seams import Format, Sink, Staging

SEVERITY = {Status.SUCCESS: 0, Status.WARNING: 1, Status.ERROR: 2, Status.NEW: 3, Status.FATAL: 4}
"""Of several answers for one event the worst counts; asking for another time is worse than an error."""

CHUNK = 1000
"""Documents handed to a sink at once: enough to share the cost of a sync, few enough to keep memory flat."""

ANSWERED_CHUNK = 50
"""Documents planned at once where each is answered: after a crash so many are sent again at most."""


class Output(Struct, frozen=True, kw_only=True):
    """Where documents go: a format and the sink that takes it.

    `name` is what its notes are called and must stay the same; `answers` says that a receiver judges each document.
    """

    format: Format
    sink: Sink
    name: str = "output"
    answers: bool = False


class Strictness(Struct, frozen=True, kw_only=True):
    """What an answer that is no success stops: everything, or only the object that it speaks of."""

    on_retry: Literal["stop", "object"] = "stop"
    on_error: Literal["continue", "halt"] = "continue"


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
        self.answers: dict[Position, Outcome] = {answer.position: answer for answer in former.answers}
        self.documents = 0
        self.taken: tuple[str, Position] | None = None
        self._pieces = pieces
        self._former = former
        self._strictness = strictness
        self._after = former.after if former.planned else output.sink.last() if after is None else after
        self._ready: list[Document] | None = None
        self._planned: list[Document] = []
        self._done: list[Position] = []
        self._waiting: list[Planned] = []
        self._blocked: set[RowId] = set()
        self._ended = False
        self._rows: dict[Position, RowId] = {}

    @property
    def end(self) -> str:
        """The id of the last document, as far as they are encoded."""
        return self._ready[-1].id if self._ready else self._after

    @property
    def complaint(self) -> str | None:
        """The last that the output or its format had against a change of this batch."""
        bad = (Status.ERROR, Status.FATAL)
        said = [one for one in self.answers.values() if one.status in bad or one.reason is Reason.RETRY]
        return (said[-1].note or str(said[-1].reason)) if said else None

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
            self._refuse(refusal)

    def run(self, catalog: Catalog | None, note: Callable[[], None], pulse: Callable[[], None]) -> None:
        """Delivers everything; `note` makes the progress of all outputs durable, `pulse` is called again and again."""
        documents = self._encoded(catalog) if self._ready is None else iter(self._ready)
        size = ANSWERED_CHUNK if self.output.answers else CHUNK
        while chunk := list(islice(documents, size)):
            self._planned = chunk
            self._plan(chunk, note)
            for start in range(0, len(chunk), 1 if self.output.answers else size):
                self._hand_over(chunk[start : start + 1] if self.output.answers else chunk)
                pulse()
            self._planned = []
            self._after = chunk[-1].id

    def _plan(self, documents: Sequence[Document], note: Callable[[], None]) -> None:
        """Makes the plan durable; a sink that can gets the documents ready meanwhile, because both wait for a disk."""
        sink = self.output.sink
        if isinstance(sink, Staging) and not (self._ended or self._blocked):
            sink.stage(documents)
        note()

    def progress(self) -> Progress:
        """How far this output is, for the note about it."""
        planned = [Planned(document.id, write_positions(_covered(document))) for document in self._planned]
        return Progress(
            done=self.done(),
            planned=(*self._waiting, *planned),
            answers=tuple(answer for answer in self.answers.values() if answer.status is not Status.NEW),
            after=self._after,
        )

    def done(self) -> Positions:
        """The events that are durable at this output, in this batch or before."""
        if not self._done:
            return self._former.done
        return write_positions([*read_positions(self._former.done), *self._done])

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
                self._refuse(item)

    def _refuse(self, refusal: Refusal) -> None:
        status = STATUS[Reason.REFUSED]
        for position in refusal.positions:
            keep_worse(
                self.answers,
                Outcome(position=position, status=status, reason=Reason.REFUSED, note=refusal.note),
            )

    def _hand_over(self, documents: Sequence[Document]) -> None:
        """Gives documents to the sink, without those that would overtake what has to be sent again."""
        ready = documents if not (self._ended or self._blocked) else [d for d in documents if not self._holds(d)]
        if not ready:
            return
        said: dict[Position, Outcome] = {}
        for outcome in self.output.sink.write(ready):
            keep_worse(said, outcome)
        self.documents += len(ready)
        self._note_taken(ready, said)
        if not said:
            self._done.extend(chain.from_iterable(map(_covered, ready)))
            return
        for document in ready:
            self._judge(document, said)

    def _note_taken(self, documents: Sequence[Document], said: Mapping[Position, Outcome]) -> None:
        """Remembers the last document that does not have to come again, and where its last event stands."""
        for document in reversed(documents):
            covered = list(_covered(document))
            if all(said[position].status is not Status.NEW for position in covered if position in said):
                self.taken = document.id, max(covered)
                return

    def _judge(self, document: Document, said: dict[Position, Outcome]) -> None:
        """Takes in what was said of a document, change by change."""
        again: list[Position] = []
        for positions in document.covers.values():
            answers = [answer for position in positions if (answer := said.get(position)) is not None]
            if not self._settles(positions, answers):
                again.extend(positions)
            else:
                self._done.extend(positions)
            if answers:  # all events of a change end alike
                worst = max(answers, key=lambda answer: SEVERITY[answer.status])
                for position in positions:
                    keep_worse(self.answers, replace(worst, position=position))
        if again:
            self._waiting.append(Planned(document.id, write_positions(again)))

    def _settles(self, positions: Sequence[Position], answers: Sequence[Outcome]) -> bool:
        """Whether these answers are the last word about a change; notes what they stop."""
        row = self._row(positions[0])
        statuses = {answer.status for answer in answers}
        if Status.FATAL in statuses or (Status.ERROR in statuses and self._strictness.on_error == "halt"):
            self._ended = True
        if Status.NEW in statuses:
            self._blocked.add(row)
            self._ended = self._ended or self._strictness.on_retry == "stop"
            return False
        if row in self._blocked and Status.FATAL not in statuses:
            # The receiver took it before an earlier change of the object: only a repeat leaves the right state there.
            self._hold(positions)
            return False
        return True

    def _holds(self, document: Document) -> bool:
        """Whether a document has to wait, and everything of its objects behind it."""
        rows = {self._row(position) for position in _covered(document)}
        if not self._ended and rows.isdisjoint(self._blocked):
            return False
        self._blocked |= rows
        self._hold(list(_covered(document)))
        return True

    def _hold(self, positions: Iterable[Position]) -> None:
        for position in positions:
            keep_worse(
                self.answers,
                Outcome(
                    position=position, status=Status.NEW, reason=Reason.HELD, note="an earlier change comes first."
                ),
            )

    def _row(self, position: Position) -> RowId:
        """The object of a change; looked up only once somebody has answered."""
        if not self._rows:
            for piece in self._pieces:
                self._rows |= {mine: change.row for change in piece.changes for mine in change.positions}
        return self._rows[position]


def keep_worse(answers: dict[Position, Outcome], outcome: Outcome) -> None:
    """Adds an answer unless a worse one is there."""
    earlier = answers.get(outcome.position)
    if earlier is None or SEVERITY[outcome.status] > SEVERITY[earlier.status]:
        answers[outcome.position] = outcome


def _covered(document: Document) -> Iterator[Position]:
    return chain.from_iterable(document.covers.values())


def _called(identity: str, documents: Iterable[Document]) -> list[Document]:
    """The documents, one of them under this id: there is one only, unless its changes have become more meanwhile."""
    found = list(documents)
    if found and all(document.id != identity for document in found):
        found[-1] = replace(found[-1], id=identity)
    return found
