"""The source of every captured stream: images of committed transactions in batches, and a place
that survives a crash.

A reader gives the transactions of one kind of stream, from any place on. The source cuts them into
batches, notes each batch before it is handed out, and knows after a restart from where to read,
what is settled and what waits.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.backoff import Backoff
from eventlog.core.durable_files import write_file
from eventlog.core.errors import DataError, EventlogError, SourceError
from eventlog.core.model import Captured, Image, Outcome, Position, Reason, Status, exceptional
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch
from eventlog.sources.marks import as_text
from eventlog.sources.notes import split_counted

PLACE: Final = "stream"
"""What the mark is called that holds the whole place, so that it changes as a whole."""

NOT_THERE_YET_SECONDS: Final = 1.0
"""When to look again for images that wait, if the stream has not come to them after a restart."""

_FAILED: Final = frozenset({Status.ERROR, Status.FATAL})


class StreamPiece(Struct, frozen=True, kw_only=True):
    """Images of one transaction, or of several that ended before `commit`, and the catalog that
    describes them.

    `commit` is where the last of them ended. `begin` is where to read from once all of this is
    settled; None where the transaction goes on in the next piece. `since` is where to read from to
    find it again, if nothing is settled yet.
    """

    images: Sequence[Image]
    catalog: Catalog
    commit: int
    begin: int | None
    since: int | None = None


class StreamReader(Protocol):
    """One kind of stream, read from a place on."""

    may_change: bool
    """Whether it may be read otherwise later, as a table of which rows are taken, or to which some
    come late.
    """

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        """What was committed from that place on, in the order of the commits.

        None whenever nothing is there now.

        Of a stream that may change None says that all there is was given: what is missing then is
        gone. Place 0 is the beginning, or now, where a stream has no beginning. After an error it
        is called anew.
        """

    def settled(self, images: Sequence[Captured], failed: frozenset[int], begin: int) -> None:
        """These images are settled, durably.

        All that ended before `begin` is too, but for the commits that failed.
        """

    def close(self) -> None:
        """Gives back what it holds."""


class WaitingImage(Struct, frozen=True, kw_only=True):
    """An image that its receiver did not take, and how often it was offered.

    Never, where its transaction goes on.
    """

    position: Position
    attempts: int


class StreamPlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a stream was published.

    `begin` is where to read from, as the stream's reader knows places. Images up to `upto` are
    settled, but for those that wait. `in_hand` is the last position of a batch that was handed out,
    `commits` are those of its transactions, where a late one might come between them. `failed` are
    the commits of transactions of which something failed and more may come.
    """

    begin: int = 0
    upto: Position = ()
    waiting: tuple[WaitingImage, ...] = ()
    in_hand: Position = ()
    commits: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    notes: Mapping[str, str] = {}

    @property
    def attempts(self) -> dict[Position, int]:
        """How often each image was offered that waits."""
        return {image.position: image.attempts for image in self.waiting}

    def waits(
        self,
        staying: Iterable[Position],
        left: Collection[Position],
    ) -> tuple[WaitingImage, ...]:
        """What waits when these images stay, each offered once more, but for those that are left
        for the next batch.
        """
        before = self.attempts
        waiting = []
        for position in staying:
            attempts = before.get(position, 0)
            if position not in left:
                attempts += 1
            waiting.append(WaitingImage(position=position, attempts=attempts))
        return tuple(waiting)


def read_place(text: str | None) -> StreamPlace:
    """Reads the mark; without one the stream was never read."""
    if text is None:
        return StreamPlace()
    try:
        return msgspec.json.decode(text, type=StreamPlace)
    except msgspec.DecodeError as error:
        hint = "Restore the file of marks; without it the stream is read from its beginning."
        raise DataError(
            f"The mark {PLACE} does not hold the place of a stream: {error}.",
            hint=hint,
        ) from error


class StreamMarks(Protocol):
    """The marks of a stream."""

    def get(self, name: str) -> str | None:
        """The mark's text, or None when there is none."""

    def change(self, changes: Mapping[str, str | None]) -> None:
        """Makes or replaces marks and takes away those with None, all at once.

        Durable when it returns.
        """


class FileMarks:
    """Marks of a source that has no database to write to: one JSON file, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marks = self._read()

    def get(self, name: str) -> str | None:
        """The mark's text, or None when there is none."""
        return self._marks.get(name)

    def all(self) -> dict[str, str]:
        """Every mark by its name."""
        return dict(self._marks)

    def change(self, changes: Mapping[str, str | None]) -> None:
        """Makes or replaces marks and takes away those with None, all at once.

        Durable when it returns.
        """
        marks = {**self._marks, **changes}
        self._write({name: value for name, value in marks.items() if value is not None})

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SourceError(f"The marks in {self.path} cannot be read: {error.strerror}.") from error
        except msgspec.DecodeError as error:
            hint = "Restore the file; without it the source starts from the beginning and repeats what was published."
            raise DataError(f"{self.path} does not hold marks: {error}.", hint=hint) from error

    def _write(self, marks: dict[str, str]) -> None:
        try:
            write_file(self.path, msgspec.json.format(msgspec.json.encode(marks)) + b"\n")
        except OSError as error:
            raise SourceError(f"The marks in {self.path} cannot be written: {error.strerror}.") from error
        self._marks = marks


class StreamSource:
    """Reads a stream and settles its images.

    Until a batch is settled the same one is handed out, also after a crash.

    `clock` counts seconds, for the time that images wait which were not taken.
    """

    def __init__(
        self,
        reader: StreamReader,
        marks: StreamMarks,
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._reader = reader
        self._marks = marks
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._place = read_place(marks.get(PLACE))
        self._pieces: Iterator[StreamPiece | None] | None = None
        self._piece: StreamPiece | None = None
        self._images: deque[Image] = deque()
        self._gathered: list[Image] = []
        self._waiting: list[Image] = []
        self._catalog: Catalog | None = None
        self._batch: Batch | None = None
        self._begin = self._place.begin
        self._since = 0
        self._due = float("-inf")
        self._amid = False

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else what waits for another attempt, else the next
        images.
        """
        if self._batch is not None:
            notes, counted = split_counted(self._place.notes)
            return replace(self._batch, repeated=True, notes=notes, counted=counted)
        if any(image.attempts for image in self._place.waiting):
            return self._again()
        return self._next(limit)

    def note(self, notes: Mapping[str, str]) -> None:
        self._keep(replace(self._place, notes={**self._place.notes, **notes}))

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Goes on behind the batch, durable when it returns.

        Images with status NEW stay and are offered again.
        """
        if not batch.events:
            return
        others = list(exceptional(outcomes))
        new = {outcome.position for outcome in others if outcome.status is Status.NEW}
        staying = [image for image in batch.events if isinstance(image, Image) and image.position in new]
        left = {outcome.position for outcome in others if outcome.reason is Reason.GOES_ON}
        waiting = self._place.waits([image.position for image in staying], left)
        begin = self._begin
        if waiting:  # after a restart they are found again in the stream, so it is read from there
            begin = self._place.begin
        upto = max(self._place.upto, batch.events[-1].position)
        failed = {*self._place.failed}
        failed |= {outcome.position[0] for outcome in others if outcome.status in _FAILED}
        # Of a transaction of which nothing more can come, nobody asks again whether it failed.
        going_on = failed & {upto[0], *(image.position[0] for image in waiting)}
        settled = StreamPlace(begin=begin, upto=upto, waiting=waiting, failed=tuple(sorted(going_on)))
        self._keep(replace(settled, notes=notes or {}))
        self._batch = None
        # Images that were left for the next batch go on with it; one that was not taken has to wait.
        attempts = max((image.attempts for image in waiting), default=0)
        self._waiting, self._gathered = [], staying
        if attempts:
            self._waiting, self._gathered = staying, []
            spread = random.random()  # noqa: S311  # spreads attempts, hides nothing
            self._due = self._clock() + self._backoff.delay(attempts, spread)
        # After the marks, for the reader may take off what is settled: the other way round a crash
        # between the two would leave nothing to read again.
        self._reader.settled(batch.events, frozenset(failed), begin)

    def close(self) -> None:
        """Ends the session, or closes the file."""
        self._forget()
        self._reader.close()

    def _again(self) -> Batch:
        """What waits, when its time has come.

        After a restart it is first found again in the stream.
        """
        later = self._due - self._clock()
        if later > 0:
            return Batch(events=(), later=later)
        last = max(self._place.attempts)
        while len(self._waiting) < len(self._place.waiting):
            piece = self._next_piece()
            if piece is None and not self._reader.may_change:
                return Batch(events=(), later=NOT_THERE_YET_SECONDS)
            if piece is None or (self._images and self._images[0].position > last):
                break  # somebody took it out of the stream
            if self._images:
                self._catalog = piece.catalog
            while self._images and self._images[0].position <= last:
                self._waiting.append(self._images.popleft())
            self._pass(piece)
        if not self._waiting:
            self._keep(replace(self._place, waiting=(), in_hand=(), commits=(), notes={}))
            return Batch(events=())
        return self._handed(self._waiting)

    def _next(self, limit: int) -> Batch:
        """The next images of one catalog: as many as were in hand before a crash, else up to the
        limit.
        """
        upto = self._place.in_hand
        found = not upto
        # Images that the last batch has left are gathered already, and must not leave the next one
        # without room.
        limit = limit and limit + len(self._place.waiting)
        while upto or not limit or len(self._gathered) < limit:
            piece = self._next_piece()
            if piece is None:
                found = found or self._reader.may_change
                break
            if self._gathered and self._images and not upto and not self._fits(piece.catalog):
                break
            room = limit - len(self._gathered) if limit and not upto else None
            self._take(piece, upto, room)
            if upto and (self._images or (self._gathered and self._gathered[-1].position == upto)):
                found = True
                break
        if not found:
            return Batch(events=())
        if self._gathered:
            events, self._gathered = self._gathered, []
            return self._handed(events)
        if upto:  # somebody took all of it out of the stream
            self._keep(replace(self._place, upto=max(self._place.upto, upto), in_hand=(), commits=(), notes={}))
            return self._next(limit)
        if self._begin > self._place.begin:  # transactions without images are behind us
            self._keep(replace(self._place, begin=self._begin))
            self._reader.settled((), frozenset(), self._begin)
        return Batch(events=())

    def _fits(self, catalog: Catalog) -> bool:
        """Whether images that these tables describe may come into one batch with those that were
        gathered.

        What the last batch has left goes with any whose tables look the same to it: alone it would
        have no end to tell.
        """
        former = self._catalog
        if catalog is former:
            return True
        if former is None or len(self._gathered) > len(self._place.waiting):
            return False
        return all(former.find(one.table) == catalog.find(one.table) for one in self._gathered)

    def _take(self, piece: StreamPiece, upto: Position, room: int | None) -> None:
        """Moves images of a piece into the batch, and the place behind it where a transaction ends
        with them.
        """
        images = self._images
        count = len(images)
        if upto:
            count = sum(1 for _ in takewhile(lambda image: image.position <= upto, images))
        elif room is not None:
            count = min(room, count)
        if count:
            self._catalog = piece.catalog
        self._gathered += [images.popleft() for _ in range(count)]
        self._pass(piece)

    def _pass(self, piece: StreamPiece) -> None:
        """Leaves a piece of which nothing is left."""
        if not self._images:
            self._piece = None
            self._amid = piece.begin is None
            if piece.begin is not None:
                self._begin = piece.begin

    def _handed(self, events: Sequence[Image]) -> Batch:
        """Notes the batch before it is handed out."""
        place = self._place
        attempts = {position: count for position, count in place.attempts.items() if count}
        notes, counted = split_counted(place.notes)
        self._batch = Batch(
            events=events,
            catalog=self._catalog,
            repeated=bool(place.in_hand or attempts),
            notes=notes,
            counted=counted,
            attempts=attempts,
            going_on=self._going_on(events[-1]),
        )
        begin = place.begin or self._since
        # What began now is found again where its first transaction began.
        self._begin = self._begin or begin
        commits = dict.fromkeys(event.position[0] for event in events) if self._reader.may_change else ()
        self._keep(replace(place, begin=begin, in_hand=events[-1].position, commits=tuple(commits)))
        return self._batch

    def _going_on(self, last: Image) -> frozenset[int]:
        """The transaction of the last image of a batch, where more of its images follow:
        transactions come one after the other.
        """
        goes_on = bool(self._images) and self._images[0].position[0] == last.position[0]
        if last.transaction is None or not (goes_on or self._amid):
            return frozenset()
        return frozenset([last.transaction.mark])

    def _keep(self, place: StreamPlace) -> None:
        if place != self._place:
            self._marks.change({PLACE: as_text(place)})
            self._place = place

    def _next_piece(self) -> StreamPiece | None:
        """The piece that comes next, which stays until it is empty.

        None when there is nothing at the moment.

        What was gathered before a failure is handed out first: the failure comes again.
        """
        if self._piece is not None:
            return self._piece
        try:
            if self._pieces is None:
                self._pieces = self._reader.pieces(self._place.begin)
            piece = next(self._pieces)
        except EventlogError:
            self._pieces = None
            if self._gathered and not self._place.in_hand:
                return None
            self._forget()
            raise
        if piece is not None:
            self._since = self._since or piece.since or 0
            self._piece, self._images = piece, deque(self._unsettled(piece))
        return piece

    def _unsettled(self, piece: StreamPiece) -> Sequence[Image]:
        """The images of a piece that are not settled: of a transaction that is read again some may
        be.

        One that came late among those in hand is left out, for the batch in hand stays the same.
        """
        place = self._place
        if place.commits and (piece.commit,) <= place.in_hand and piece.commit not in place.commits:
            return ()
        upto = place.upto
        if not upto or piece.commit > upto[0]:
            return piece.images
        waiting = place.attempts
        return [image for image in piece.images if image.position > upto or image.position in waiting]

    def _forget(self) -> None:
        """Lets go of what was read and not handed out."""
        self._pieces = self._piece = None
        self._images.clear()
        self._gathered = []
        self._waiting = []
        self._amid = False
        self._begin = self._place.begin
