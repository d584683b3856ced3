"""The GBase source: the images that a session on a server or captured files give, for the one
source of streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from eventlog.core.errors import ConfigError
from eventlog.core.model import Captured
from eventlog.core.schema import Catalog
from eventlog.sources.gbase.drivers import driver_of
from eventlog.sources.gbase.files import chunks_of
from eventlog.sources.gbase.images import ImageMaker
from eventlog.sources.gbase.reader import Item, RecordReader
from eventlog.sources.gbase.records import CdcRecord, Framer
from eventlog.sources.gbase.session import CaptureSession, Driver
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.source import StreamPiece
from eventlog.sources.stream.spill import spill_to


class Feed(Protocol):
    """Bytes of one stream, from a sequence number on or from an earlier place.

    What was seen before is told apart.
    """

    live: bool
    """Whether a timeout in the stream says that there is nothing at the moment.

    In a file it says that there was.
    """

    def open(self, start: int) -> None:
        """Begins at the record with that sequence number, or before it; 0 is the beginning of a
        file, or now.
        """

    def read(self) -> bytes:
        """Read the next bytes; none if there are none at the moment."""

    def close(self) -> None:
        """Gives back what it holds."""


class FileFeed:
    """A file or a folder of captured bytes, read from its beginning.

    What is appended meanwhile is read too.
    """

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks: Iterator[bytes] = iter(())
        self._read = 0

    def open(self, start: int) -> None:
        self._read = 0
        self._chunks = chunks_of(self._path, grows=True)

    def read(self) -> bytes:
        for chunk in self._chunks:
            self._read += len(chunk)
            return chunk
        # What came behind what was read, in the same file or in a new one: the former iterator has
        # ended, and gives nothing of that.
        skipped = 0
        self._chunks = chunks_of(self._path, grows=True)
        for chunk in self._chunks:
            if skipped + len(chunk) > self._read:
                fresh = chunk[max(0, self._read - skipped) :]
                self._read += len(fresh)
                return fresh
            skipped += len(chunk)
        return b""

    def close(self) -> None:
        self._chunks = iter(())


class SessionFeed:
    """A session on a server, opened anew wherever the stream is to begin."""

    live = True

    def __init__(
        self, connect: Callable[[], Driver], settings: GBaseSettings, report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._report = report
        self._driver: Driver | None = None
        self._session: CaptureSession | None = None

    def open(self, start: int) -> None:
        self.close()
        self._driver = self._connect()
        self._session = CaptureSession(self._driver, self._settings, start, self._report)

    def read(self) -> bytes:
        assert self._session is not None
        return self._session.read()

    def close(self) -> None:
        session, driver = self._session, self._driver
        self._session = self._driver = None
        # The session first: it is ended by calls through the driver.
        for part in (session, driver):
            if part is None:
                continue
            try:
                part.close()
            except Exception as error:  # noqa: BLE001 - each driver has errors of its own
                # As on a connection that is lost, which is opened anew.
                self._report(f"The session was not ended in order: {str(error).rstrip('.')}.")


class GBaseReader:
    """Reads a feed. Places are sequence numbers, and the stream is read from the earliest
    transaction that was open.
    """

    def __init__(
        self,
        feed: Feed,
        settings: GBaseSettings,
        known: Catalog | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._feed = feed
        self._settings = settings
        self._known = known
        self._report = report

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        """Yield pieces from that record on; None while the feed has nothing."""
        self._feed.open(begin)
        settings = self._settings
        framer = Framer(largest=settings.largest_record, skip_schemes=settings.skip_schemes)
        folder = Path(settings.spill) if settings.spill else None
        records = RecordReader(settings, self._report, spill_to(Item, folder), live=self._feed.live)
        maker = ImageMaker(settings, records, self._known)
        while True:
            # A server says by a timeout in the stream that there is nothing at the moment.
            beats = records.met[CdcRecord.TIMEOUT]
            chunk = self._feed.read()
            for committed in records.read(framer.feed(chunk)):
                yield from maker.pieces(committed)
            if not chunk or (self._feed.live and records.met[CdcRecord.TIMEOUT] > beats):
                yield None

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """Do nothing: a server keeps its logs regardless."""

    def close(self) -> None:
        self._feed.close()


def gbase_reader(
    settings: GBaseSettings, known: Catalog | None = None, *, report: Callable[[str], None] = lambda _: None
) -> GBaseReader:
    """Reads what the settings describe: captured files if they name a path, else a server."""
    # A line that is still being written would look like one with rubbish behind it.
    if settings.dirty:
        hint = "Convert them with `eventlog convert gbase`; what is published must hold the bytes that were read."
        raise ConfigError(
            "source.gbase.dirty is for finished files, and a publisher's may grow.",
            hint=hint,
        )
    feed: Feed = SessionFeed(lambda: driver_of(settings), settings, report)
    if settings.path:
        feed = FileFeed(Path(settings.path))
    return GBaseReader(feed, settings, known, report)
