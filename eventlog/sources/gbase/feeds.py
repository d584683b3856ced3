"""Where the bytes of a stream come from: captured files, which may grow, or a session on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from eventlog.sources.gbase.files import chunks_of
from eventlog.sources.gbase.session import Driver, Session
from eventlog.sources.gbase.settings import GbaseSettings


class Feed(Protocol):
    """Bytes of one stream, from a sequence number on or from an earlier place; what was seen before is told apart."""

    live: bool
    """Whether a timeout in the stream says that there is nothing at the moment; in a file it says that there was."""

    def open(self, start: int) -> None:
        """Begins at the record with that sequence number, or before it; 0 is the beginning of a file, or now."""

    def read(self) -> bytes:
        """The next bytes; none when there is nothing at the moment."""

    def close(self) -> None:
        """Gives back what it holds."""


class FileFeed:
    """A file or a folder of captured bytes, read from its beginning; what is appended meanwhile is read too."""

    live = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks: Iterator[bytes] = iter(())
        self._read = 0

    def open(self, start: int) -> None:
        self._read = 0
        self._chunks = chunks_of(self._path)

    def read(self) -> bytes:
        for chunk in self._chunks:
            self._read += len(chunk)
            return chunk
        return self._appended()

    def close(self) -> None:
        self._chunks = iter(())

    def _appended(self) -> bytes:
        """What came behind what was read, in the same file or in a new one."""
        skipped = 0
        self._chunks = chunks_of(self._path)
        for chunk in self._chunks:
            if skipped + len(chunk) > self._read:
                fresh = chunk[self._read - skipped :] if skipped < self._read else chunk
                self._read += len(fresh)
                return fresh
            skipped += len(chunk)
        return b""


class SessionFeed:
    """A session on a server, opened anew wherever the stream is to begin."""

    live = True

    def __init__(
        self, connect: Callable[[], Driver], settings: GbaseSettings, report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._report = report
        self._driver: Driver | None = None
        self._session: Session | None = None

    def open(self, start: int) -> None:
        self.close()
        self._driver = self._connect()
        self._session = Session(self._driver, self._settings, start, self._report)

    def read(self) -> bytes:
        assert self._session is not None
        return self._session.read()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        if self._driver is not None:
            self._driver.close()
        self._session = self._driver = None
