"""One output's share of a batch: documents are planned durably, handed over, and the receiver's
answers collected.

Law: a document goes out under a plan that was noted before, and a plan is repeated whole: the same
documents under the same identity, before anything that is new. So a target recognises a repeat by
the plan, and never by the order of ids.

How each output stands: what it took last and what went wrong there, in a mark of the log for others
to see.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, groupby
from threading import Thread

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.counting import Told, counted, told_after
from eventlog.core.model import Captured, Change, Document, Outcome, Position, Refusal, Status
from eventlog.core.schema import Catalog
from eventlog.core.seams import Countable, Format, Lane, Sink, encode
from eventlog.core.secrets import masked
from eventlog.core.tracing import Span, step
from eventlog.delivery.answers import Answers, Strictness, covered, keep_worse
from eventlog.delivery.lanes import Front, LaneThreads, Turns
from eventlog.sources.marks import value_of
from eventlog.sources.notes import Planned, Positions, Progress, once_each, read_positions, write_positions

__all__ = ["Delivery", "Output", "Piece", "Strictness", "keep_worse"]

CHUNK_DOCUMENTS = 1000
"""Documents handed to a sink at once: enough to share the cost of a sync, few enough to keep memory flat."""

CHUNK_BYTES = 16 * 1024 * 1024
"""A chunk ends where its documents have so many bytes together."""

CHUNK_EVENTS = 50_000
"""A chunk ends where its documents cover so many events, for those of some formats have no bytes yet."""

ANSWERED_DOCUMENTS = 50
"""Documents planned at once on each connection where each is answered: after a crash so many are sent again at most."""


def nothing() -> None:
    """What is called where nobody wants to be told."""


class Output(Struct, frozen=True, kw_only=True):
    """Where documents go: a format and the sink that takes it.

    `name` is what its notes are called; under `former_names` they may still stand of a batch that
    was begun before it got this one. `answers` says that a receiver judges each document, `whole`
    that transactions are told in one piece.
    """

    format: Format
    sink: Sink
    name: str = "output"
    former_names: tuple[str, ...] = ()
    answers: bool = False
    whole: bool = False


class Piece(Struct, frozen=True, kw_only=True):
    """Changes for documents of their own; `planned` is the document that they stood in when they were planned before."""

    changes: Sequence[Change]
    planned: Planned | None = None


class Chunk(Struct, frozen=True, kw_only=True):
    """Documents that go out under one plan. The first has this number among those of the delivery."""

    plan: str
    first: int
    documents: Sequence[Document]


class Delivery:
    """Hands the pieces to one output. What stands in `said` and `progress()` is true at any moment, errors included."""

    def __init__(
        self,
        output: Output,
        pieces: Sequence[Piece],
        former: Progress,
        strictness: Strictness,
        told: Told | None = None,
    ) -> None:
        self.output = output
        self.told: Told = told or {}
        """How much of each unfinished transaction is told when all of this is delivered."""
        self._told: Told = self.told
        self._written: list[Countable] | None = None
        self.documents = 0
        self.seconds = 0.0
        """How long it took to hand everything over."""
        self.taken: tuple[str, Position] | None = None
        self.events: Sequence[Captured] = ()
        """The batch that this is a share of, as soon as it is handed over."""
        self.span: Span | None = None
        """That of the batch, where it is traced."""
        self.said = Answers(former.answers, strictness, [piece.changes for piece in pieces])
        self._repeated = [(piece, piece.planned) for piece in pieces if piece.planned is not None and piece.changes]
        self._new = [piece for piece in pieces if piece.planned is None]
        self._former = former
        self._after = former.after if self._repeated else output.sink.last()
        self._planned = [planned for _, planned in self._repeated]
        self.away: Sequence[Planned] = [one for one in former.planned if one not in self._planned]
        """What was planned before of rows that are held now, or cannot be read back: it may have
        gone out, and comes again under that plan.
        """

    def write(self, catalog: Catalog | None) -> Sequence[Countable]:
        """What the format writes of what is new, for a format that counts: what it refuses is in no transaction."""
        self._written = []
        if not self.output.format.counts:
            return self._written
        refuses = self.output.sink.capabilities.refuses
        for item in self.output.format.writer(catalog)(chain.from_iterable(piece.changes for piece in self._new)):
            note = None if refuses is None or isinstance(item, Refusal) else refuses(item)
            refused = item if note is None else Refusal(positions=item.positions, note=note)
            if isinstance(refused, Refusal):
                self.said.refuse(refused)
            else:
                self._written.append(item)
        return self._written

    def count(self, left: Collection[Position], going_on: frozenset[int]) -> None:
        """Leaves changes for the next batch, and gives each of the others its number in its transaction."""
        if left:
            self._new = [
                replace(piece, changes=[one for one in piece.changes if one.positions[-1] not in left])
                for piece in self._new
            ]
        if self._written is None or not self.output.format.counts:
            self._written = None
            return
        staying = [one for one in self._written if one.positions[-1] in left] if left else []
        now = [one for one in self._written if one.positions[-1] not in left] if left else self._written
        later = {one.transaction for one in staying if one.transaction is not None}
        self._written, self.told = counted(now, self.told, going_on | later)

    def run(
        self,
        catalog: Catalog | None,
        note: Callable[[], None],
        pulse: Callable[[], None] = nothing,
        confirm: Callable[[], None] = nothing,
    ) -> None:
        """Delivers everything; `note` makes the progress of all outputs durable, `pulse` is called
        again and again.

        `confirm` is called before each hand-over, and fails when somebody else may deliver by now.
        """
        self._recognise()
        lanes = self._lanes()
        size = min(ANSWERED_DOCUMENTS * max(1, len(lanes)), CHUNK_DOCUMENTS) if self.output.answers else CHUNK_DOCUMENTS
        with ExitStack() as crews:
            crew: LaneThreads | None = None
            ended = False
            for chunk in self._chunks(catalog, size):
                if self.said.ended:  # nothing more is sent, so nothing more is planned either
                    if not ended:
                        note()  # what was answered must not be asked again after a crash
                        ended = True
                    self._due(chunk)
                    continue
                self._plan(chunk, note)
                if crew is None and len(lanes) > 1 and len(chunk.documents) > 1:
                    crew = crews.enter_context(LaneThreads(lanes[: len(chunk.documents)]))
                with step(self.span, "write", output=self.output.name, documents=len(chunk.documents)):
                    self._deliver(chunk, crew, pulse, confirm)
                self._planned = self._later(chunk.plan)

    def progress(self) -> Progress:
        """How far this output is, for the note about it."""
        done, waiting = self.done(), self.said.waiting
        planned = (*waiting, *self._planned, *self.away)
        return Progress(
            done=done,
            planned=once_each(planned, done) if waiting or self.away else planned,
            answers=tuple(answer for answer in self.said.answers.values() if answer.status is not Status.NEW),
            after=self._after,
            told=self._told,
        )

    def done(self) -> Positions:
        """The events that are durable at this output, in this batch or before."""
        done = self.said.done
        if done:
            return write_positions([*read_positions(self._former.done), *done])
        return self._former.done

    def _recognise(self) -> None:
        """Notes what a target has of the former plan, also of rows that were held since and are not
        in this batch.

        Otherwise they would come again, under a plan of their own, once somebody releases them.
        What it does not have is planned anew then, because its numbers have gone on meanwhile.
        """
        sink = self.output.sink
        if not sink.capabilities.resolves:
            return
        for plan, planned in groupby(self._former.planned, lambda one: one.plan):
            found = sink.resolve(plan)
            there = [one for one in planned if plan and found.has(one.id)]
            self.said.done.extend(chain.from_iterable(read_positions(one.positions) for one in there))
        self.away = ()

    def _lanes(self) -> Sequence[Lane]:
        """The ways to a receiver that judges each document; none where documents are handed over together."""
        if self.output.answers:
            return self.output.sink.capabilities.lanes
        return ()

    def _chunks(self, catalog: Catalog | None, size: int) -> Iterator[Chunk]:
        """First what was planned before, each plan whole and under its former identity, then what is new."""
        number = 0
        for plan, pieces in groupby(self._repeated, lambda piece: piece[1].plan):
            with step(self.span, "encode", output=self.output.name):
                documents = list(self._encoded([piece for piece, _ in pieces], catalog))
            if documents:
                yield Chunk(plan=plan, first=number, documents=documents)
                number += len(documents)
                self._after = documents[-1].id
        if self._repeated:
            # A log that was restored from a backup does not know what its targets got afterwards.
            self._after = max(self._after, self.output.sink.last())
        news = self._news(catalog)
        while documents := self._next_chunk(news, size):
            if cut := [part for one in documents for part in one.cut]:
                self._told = told_after(self._told, cut)
            yield Chunk(plan=secrets.token_hex(8), first=number, documents=documents)
            number += len(documents)
            self._after = documents[-1].id

    def _next_chunk(self, news: Iterator[Document], size: int) -> list[Document]:
        """The next documents."""
        with step(self.span, "encode", output=self.output.name):
            return _chunk(news, size)

    def _later(self, plan: str) -> list[Planned]:
        """What was planned before and comes after this plan: it must not be forgotten should the next hand-over fail."""
        plans = [planned for _, planned in self._repeated]
        places = [place for place, planned in enumerate(plans) if planned.plan == plan]
        return plans[places[-1] + 1 :] if places else []

    def _plan(self, chunk: Chunk, note: Callable[[], None]) -> None:
        """Makes the plan durable; a sink may prepare the documents meanwhile, because both wait for a disk."""
        planned = [Planned(one.id, write_positions(covered(one)), chunk.plan, one.cut) for one in chunk.documents]
        self._planned = [*planned, *self._later(chunk.plan)]
        if not self.output.sink.capabilities.prepares or self.said.stopping:
            note()
            return
        preparing = Preparing(self.output.sink, chunk.plan, chunk.documents)
        try:
            note()
        finally:
            preparing.wait()
        if preparing.failure is not None:
            raise preparing.failure

    def _deliver(
        self, chunk: Chunk, crew: LaneThreads | None, pulse: Callable[[], None], confirm: Callable[[], None]
    ) -> None:
        """Hands over what was planned: side by side, one after the other where each is answered, or all together."""
        if crew is not None:
            self._side_by_side(chunk, crew, pulse, confirm)
            return
        size = 1 if self.output.answers else len(chunk.documents)
        for start in range(0, len(chunk.documents), size):
            part = Chunk(plan=chunk.plan, first=chunk.first + start, documents=chunk.documents[start : start + size])
            ready = self._due(part)
            if ready:
                confirm()
                sent = Chunk(plan=chunk.plan, first=part.first, documents=ready)
                self.taken = self._take(sent, self.output.sink.commit(chunk.plan, ready)) or self.taken
            pulse()

    def _side_by_side(
        self, chunk: Chunk, crew: LaneThreads, pulse: Callable[[], None], confirm: Callable[[], None]
    ) -> None:
        """Documents of different objects go at the same time; what was taken is told as far as nothing before it is open."""
        said = self.said
        skipping = said.strictness.on_retry == "object"
        front = Front(self.taken)

        def one(number: int) -> Chunk:
            return Chunk(plan=chunk.plan, first=chunk.first + number, documents=chunk.documents[number : number + 1])

        def holds(number: int) -> bool:
            held = not self._due(one(number))
            if held and skipping:
                front.passed(number, None)
                self.taken = front.last  # what was taken behind it may be told now
            if not held:
                confirm()
            return held

        def take(number: int, outcomes: Sequence[Outcome]) -> None:
            taken = self._take(one(number), outcomes)
            if taken is not None or skipping:
                front.passed(number, taken)
            self.taken = front.last
            pulse()

        turns = Turns([said.objects(document) for document in chunk.documents])
        crew.deliver(chunk.documents, chunk.plan, turns, holds, take)

    def _due(self, chunk: Chunk) -> list[Document]:
        """Those that nothing holds, of documents of which the first has that number among those that were planned."""
        numbered = enumerate(chunk.documents, chunk.first)
        return [document for number, document in numbered if not self.said.holds(number, document, chunk.plan)]

    def _take(self, chunk: Chunk, outcomes: Sequence[Outcome]) -> tuple[str, Position] | None:
        """Takes in what was said of documents.

        The last one that does not have to come again, and where its last event stands.
        """
        said: dict[Position, Outcome] = {}
        for outcome in outcomes:
            keep_worse(said, outcome)
        self.documents += len(chunk.documents)
        if not said:
            self.said.done.extend(chain.from_iterable(map(covered, chunk.documents)))
        else:
            for number, document in enumerate(chunk.documents, chunk.first):
                self.said.judge(number, document, chunk.plan, said)
        return _last_taken(chunk.documents, said)

    def _news(self, catalog: Catalog | None) -> Iterator[Document]:
        """The documents of what is new; where changes are counted they are written already."""
        if self._written is None:
            return self._encoded(self._new, catalog)
        return self.output.format.bind(self._written, self._after)

    def _encoded(self, pieces: Iterable[Piece], catalog: Catalog | None) -> Iterator[Document]:
        """The documents in order, each under the id that it had before if it had one."""
        after = self._after
        for piece in pieces:
            for document in self._of_piece(piece, catalog, after):
                after = document.id
                yield document

    def _of_piece(self, piece: Piece, catalog: Catalog | None, after: str) -> Iterator[Document]:
        """What was planned as one document stays one, under its id, although its changes may have become more meanwhile."""
        planned, form = piece.planned, self.output.format
        count = None if planned is None or not form.counts else partial(_counted_as_planned, planned)
        for item in encode(form, piece.changes, catalog, after, whole=planned is not None, count=count):
            if not isinstance(item, Document):
                self.said.refuse(item)
            else:
                yield item if planned is None else replace(item, id=planned.id)


class Preparing:
    """A sink that prepares the documents of a plan in a thread of its own."""

    def __init__(self, sink: Sink, plan: str, documents: Sequence[Document]) -> None:
        self.failure: BaseException | None = None
        self._thread = Thread(target=self._run, args=(sink, plan, documents), name="eventlog-prepare")
        self._thread.start()

    def wait(self) -> None:
        """Until it is through; `failure` is what went wrong then."""
        self._thread.join()

    def _run(self, sink: Sink, plan: str, documents: Sequence[Document]) -> None:
        try:
            sink.prepare(plan, documents)
        except BaseException as failure:  # noqa: BLE001  # whatever it is, it is raised by the one who waits for it
            self.failure = failure


def _counted_as_planned(planned: Planned, written: Iterable[Countable]) -> list[Countable]:
    """The changes of a document with the numbers in their transactions that they had when it was planned."""
    told = {part.id: part.before for part in planned.cut}
    return counted(list(written), told, {part.id for part in planned.cut if not part.ends})[0]


def _chunk(documents: Iterator[Document], size: int) -> list[Document]:
    """The next documents: so many at most, and no more once they are large."""
    found: list[Document] = []
    length = events = 0
    for document in documents:
        found.append(document)
        length += len(document.body)
        events += len(document.covers)
        if len(found) >= size or length >= CHUNK_BYTES or events >= CHUNK_EVENTS:
            break
    return found


def _last_taken(documents: Sequence[Document], said: Mapping[Position, Outcome]) -> tuple[str, Position] | None:
    for document in reversed(documents):
        events = list(covered(document))
        if all(said[position].status is not Status.NEW for position in events if position in said):
            return document.id, max(events)
    return None


class OutputState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last document that an output took with its last position, and the last error; times are
    seconds since 1970.

    `documents` have been taken since the publisher began. `failing_since` is the first error behind
    the last document; it says something only while the output fails.
    """

    document: str = ""
    position: Position | None = None
    at: float | None = None
    error: str | None = None
    failed_at: float | None = None
    documents: int = 0
    failing_since: float | None = None

    @property
    def is_failing(self) -> bool:
        """Whether it did not take the last that it was given."""
        return self.failed_at is not None and self.failed_at > (self.at or 0.0)

    @property
    def began_to_fail(self) -> float | None:
        """Since when it fails; None where it does not. Versions before this one have noted the last error alone."""
        if self.is_failing:
            return self.failing_since or self.failed_at
        return None

    @property
    def has_recovered(self) -> bool:
        """Whether it took a document after the last error."""
        return self.failed_at is not None and self.failed_at < (self.at or 0.0)


OutputStates = Mapping[str, OutputState]
"""How the outputs stand, by the names that their notes have."""


def failing(states: OutputStates) -> bool:
    """Whether an output did not take the last that it was given."""
    return any(one.is_failing for one in states.values())


def newest(former: OutputStates, present: OutputStates) -> dict[str, OutputState]:
    """How they stand now; what nobody has seen of an output since is as it was."""
    return {**former, **{name: _over(former.get(name, OutputState()), mine) for name, mine in present.items()}}


def read_output_states(text: str | None) -> dict[str, OutputState]:
    """How they stood when they were noted; nothing where that cannot be read.

    Versions before this one have written passwords of URLs into names and errors.
    """
    found = value_of(text, dict[str, OutputState]) or {}
    return {masked(name): replace(one, error=one.error and masked(one.error)) for name, one in found.items()}


def _over(former: OutputState, present: OutputState) -> OutputState:
    document = former if present.at is None else present
    failure = former if present.failed_at is None else present
    since = failure.failing_since
    if present.at is None and failure is present:  # a publisher that has begun anew goes on failing
        since = former.began_to_fail or since
    return OutputState(
        document=document.document,
        position=document.position,
        at=document.at,
        error=failure.error,
        failed_at=failure.failed_at,
        documents=document.documents,
        failing_since=since,
    )
