"""The GBase source: the images that a session or captured files give, for the one source of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from eventlog.core.backoff import Backoff
from eventlog.core.errors import ConfigError
from eventlog.core.model import Captured
from eventlog.core.schema import Catalog
from eventlog.sources.gbase.feeds import Feed, FileFeed, SessionFeed
from eventlog.sources.gbase.frames import Framer
from eventlog.sources.gbase.images import ImageMaker
from eventlog.sources.gbase.reader import Item, RecordReader
from eventlog.sources.gbase.records import Record
from eventlog.sources.gbase.settings import GbaseSettings
from eventlog.sources.marks import FileMarks
from eventlog.sources.stream.source import StreamPiece, StreamSource
from eventlog.sources.stream.spill import spill_to


class GbaseReader:
    """Reads a feed. Places are sequence numbers, and the stream is read from the earliest transaction that was open."""

    may_change = False  # a log is what it is; nothing for a while says nothing

    def __init__(
        self,
        feed: Feed,
        settings: GbaseSettings,
        known: Catalog | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._feed = feed
        self._settings = settings
        self._known = known
        self._report = report

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        """What the feed gives from that record on; None whenever it has nothing at the moment."""
        self._feed.open(begin)
        settings = self._settings
        framer = Framer(largest=settings.largest_record, skip_schemes=settings.skip_schemes)
        folder = Path(settings.spill) if settings.spill else None
        records = RecordReader(settings, self._report, spill_to(Item, folder))
        maker = ImageMaker(settings, records, self._known)
        while True:
            beats = records.met[Record.TIMEOUT]
            chunk = self._feed.read()
            for committed in records.read(framer.feed(chunk)):
                yield from maker.pieces(committed)
            if not chunk or (self._feed.live and records.met[Record.TIMEOUT] > beats):
                yield None

    def settled(self, images: Sequence[Captured], failed: frozenset[int], begin: int) -> None:
        """A server keeps its logs whatever was read of them."""

    def close(self) -> None:
        self._feed.close()


def gbase_source(
    settings: GbaseSettings,
    known: Catalog | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
    backoff: Backoff | None = None,
) -> StreamSource:
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
    return StreamSource(GbaseReader(feed, settings, known, report), FileMarks(Path(settings.marks)), backoff=backoff)
