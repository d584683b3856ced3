"""The GBase source: images of committed transactions in batches, with a place in the stream that survives a crash.

After a restart the stream is read again from the earliest transaction that was open, and what was settled is left out.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.backoff import Backoff
from eventlog.core.errors import ConfigError, DamageError, MachineError
from eventlog.core.model import Image, Outcome, Position, Status, exceptional
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch, SourceCapabilities
from eventlog.sources.gbase.feeds import Feed, FileFeed, SessionFeed
from eventlog.sources.gbase.frames import Framer
from eventlog.sources.gbase.images import ImageMaker
from eventlog.sources.gbase.place import MARK, Place, read_place, write_place
from eventlog.sources.gbase.reader import Item, RecordReader
from eventlog.sources.gbase.records import Record
from eventlog.sources.gbase.settings import GbaseSettings
from eventlog.sources.marks import FileMarks
from eventlog.sources.stream.spill import spill_to


class _Piece(Struct, frozen=True):
    """Images with their catalog. `begin` is where to read from once they are settled, if a transaction ends here.

    `since` is where to read from to find them again.
    """

    images: deque[Image]
    catalog: Catalog
    begin: int | None
    since: int | None


class GbaseSource:
    """Reads a feed and settles its images. Until a batch is settled the same one is handed out, also after a crash."""

    capabilities = SourceCapabilities()

    def __init__(
        self,
        feed: Feed,
        settings: GbaseSettings,
        marks: FileMarks,
        known: Catalog | None = None,
        *,
        report: Callable[[str], None] = lambda _: None,
        backoff: Backoff | None = None,
    ) -> None:
        self._feed = feed
        self._settings = settings
        self._marks = marks
        self._known = known
        self._report = report
        self._backoff = backoff or Backoff()
        self._place = read_place(marks.get(MARK))
        self._pieces: Iterator[_Piece | None] | None = None
        self._ahead: deque[_Piece] = deque()
        self._gathered: list[Image] = []
        self._waiting: list[Image] = []
        self._catalog: Catalog | None = None
        self._batch: Batch | None = None
        self._begin = self._place.begin
        self._since = 0
        self._due = float("-inf")

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else what waits for another attempt, else the next images."""
        if self._batch is not None:
            return replace(self._batch, repeated=True, notes=self._place.notes)
        if self._place.waiting and (self._place.retried or not self._place.in_hand):
            return self._again()
        return self._next(limit)

    def note(self, notes: Mapping[str, str]) -> None:
        """Keeps notes with the batch in hand, durable when it returns."""
        self._keep(replace(self._place, notes={**self._place.notes, **notes}))

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
        following: Batch | None = None,
    ) -> None:
        """Goes on behind the batch, durable when it returns; images with status NEW stay and are offered again."""
        if not batch.events:
            return
        named = {outcome.position for outcome in exceptional(outcomes) if outcome.status is Status.NEW}
        staying = [image for image in batch.events if image.position in named]
        place = self._place
        waiting = place.waits(image.position for image in staying)
        upto = max(place.upto, batch.events[-1].position)
        begin = place.begin if waiting else self._begin
        self._keep(Place(begin=begin, upto=upto, waiting=waiting, notes=notes or {}))
        self._batch = None
        self._waiting = [image for image in staying if isinstance(image, Image)]
        if waiting:
            attempts = max(one.attempts for one in waiting)
            self._due = monotonic() + self._backoff.delay(attempts, random.random())  # noqa: S311  # spreads attempts, hides nothing

    def close(self) -> None:
        """Ends the session, or closes the file."""
        self._forget()
        self._feed.close()

    def _again(self) -> Batch:
        """What waits, when its time has come; after a restart it is first found again in the stream."""
        later = self._due - monotonic()
        if later > 0:
            return Batch(events=(), later=later)
        last = max(self._place.attempts)
        while len(self._waiting) < len(self._place.waiting):
            piece = self._piece()
            if piece is None:
                return Batch(events=(), later=1.0)
            if piece.images and piece.images[0].position > last:
                break  # somebody took it out of the stream
            self._catalog = piece.catalog if piece.images else self._catalog
            while piece.images and piece.images[0].position <= last:
                self._waiting.append(piece.images.popleft())
            self._pass(piece)
        if not self._waiting:
            self._keep(replace(self._place, waiting=(), in_hand=(), retried=False))
            return Batch(events=())
        return self._handed(self._waiting, retried=True)

    def _next(self, limit: int) -> Batch:
        """The next images of one catalog: as many as were in hand before a crash, else up to the limit."""
        upto = self._place.in_hand
        complete = not upto
        while upto or not limit or len(self._gathered) < limit:
            piece = self._piece()
            if piece is None:
                break
            if self._gathered and piece.images and piece.catalog is not self._catalog:
                break
            self._take(piece, upto, limit - len(self._gathered) if limit and not upto else None)
            if upto and (piece.images or (self._gathered and self._gathered[-1].position == upto)):
                complete = True
                break
        if not self._gathered or not complete:
            return Batch(events=())
        events, self._gathered = self._gathered, []
        return self._handed(events, retried=False)

    def _take(self, piece: _Piece, upto: Position, room: int | None) -> None:
        """Moves images of a piece into the batch, and the place behind it where a transaction ends with them."""
        images = piece.images
        count = len(images) if room is None else min(room, len(images))
        if upto:
            count = sum(1 for _ in takewhile(lambda image: image.position <= upto, images))
        if count:
            self._catalog = piece.catalog
        self._gathered += [images.popleft() for _ in range(count)]
        self._pass(piece)

    def _pass(self, piece: _Piece) -> None:
        """Leaves a piece of which nothing is left."""
        if not piece.images:
            self._ahead.popleft()
            if piece.begin is not None:
                self._begin = piece.begin

    def _handed(self, events: Sequence[Image], *, retried: bool) -> Batch:
        """Notes the batch before it is handed out."""
        place = self._place
        repeated = bool(place.in_hand)
        self._batch = Batch(
            events=events, catalog=self._catalog, repeated=repeated, notes=place.notes, attempts=place.attempts
        )
        begin = place.begin or self._since
        self._begin = self._begin or begin  # what began now is found again where its first transaction began
        self._keep(replace(place, begin=begin, in_hand=events[-1].position, retried=retried))
        return self._batch

    def _keep(self, place: Place) -> None:
        if place != self._place:
            self._marks.set(MARK, write_place(place))
            self._place = place

    def _piece(self) -> _Piece | None:
        """The piece that comes next, which stays until it is empty; None when there is nothing at the moment.

        What was gathered before a failure is handed out first: the failure comes again.
        """
        if self._ahead:
            return self._ahead[0]
        try:
            if self._pieces is None:
                self._feed.open(self._place.begin)
                self._pieces = self._read_pieces()
            found = next(self._pieces)
        except (MachineError, DamageError):
            self._pieces = None
            if self._gathered and not self._place.in_hand:
                return None
            self._forget()
            raise
        if found is not None:
            self._since = self._since or found.since or 0
            self._ahead.append(found)
        return found

    def _read_pieces(self) -> Iterator[_Piece | None]:
        """What the feed gives that is not settled; None whenever it has nothing at the moment."""
        settings = self._settings
        framer = Framer(largest=settings.largest_record, skip_schemes=settings.skip_schemes)
        folder = Path(settings.spill) if settings.spill else None
        records = RecordReader(settings, self._report, spill_to(Item, folder))
        maker = ImageMaker(settings, records, self._known)
        upto = self._place.upto
        waiting = self._place.attempts
        while True:
            beats = records.met[Record.TIMEOUT]
            chunk = self._feed.read()
            for committed in records.read(framer.feed(chunk)):
                for stretch in maker.stretches(committed):
                    images = stretch.images
                    if stretch.commit <= (upto[0] if upto else -1):
                        images = [one for one in images if one.position > upto or one.position in waiting]
                    begin = (stretch.open or stretch.commit) if stretch.complete else None
                    yield _Piece(deque(images), stretch.catalog, begin, committed.since)
            if not chunk or (self._feed.live and records.met[Record.TIMEOUT] > beats):
                yield None

    def _forget(self) -> None:
        """Lets go of what was read and not handed out."""
        self._pieces = None
        self._ahead.clear()
        self._gathered = []
        self._waiting = []
        self._begin = self._place.begin


def gbase_source(
    settings: GbaseSettings,
    known: Catalog | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
    backoff: Backoff | None = None,
) -> GbaseSource:
    """The source that the settings describe: captured files if they name a path, else a server."""
    from eventlog.sources.gbase.drivers import driver_of

    if settings.dirty:  # a line that is still being written would look like one with rubbish behind it
        hint = (
            "Convert them with `eventlog convert --from gbase`; what is published must hold the bytes that were read."
        )
        raise ConfigError("source.gbase.dirty is for finished files, and a publisher's may grow.", hint=hint)
    feed: Feed = (
        FileFeed(Path(settings.path)) if settings.path else SessionFeed(lambda: driver_of(settings), settings, report)
    )
    return GbaseSource(feed, settings, FileMarks(Path(settings.marks)), known, report=report, backoff=backoff)
