"""The post at a stream: a file of marks keeps its position, and a claim beside that file keeps other publishers away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from structlog.stdlib import BoundLogger

from eventlog.claim import Claim
from eventlog.config import Config
from eventlog.daemon.vitals import Vitals
from eventlog.delivery import Output
from eventlog.pipeline import Pipeline
from eventlog.seams import Stream
from eventlog.streams import stream_of, stream_pipeline_of

NAMES: Final = {"gbase": "CDC stream", "linter": "replication queue"}


class StreamPost:
    """What a publisher does at a stream besides publishing it."""

    wakeup = None
    """Streams are looked at after every interval."""

    def __init__(self, config: Config, journal: BoundLogger) -> None:
        self._config = config
        self._journal = journal
        self._stream: Stream | None = None
        self._claim = Claim(Path(f"{config.source.marks}.lock"))

    @property
    def name(self) -> str:
        return f"{NAMES[self._config.source.kind]} of {self._config.source.marks}"

    @property
    def address(self) -> str:
        source = self._config.source
        if source.url:
            from eventlog.sql.connect import read_url

            return read_url(source.url).render_as_string(hide_password=True)
        return source.gbase.path or source.gbase.server

    @property
    def taken(self) -> bool:
        return self._claim.taken

    def take(self) -> bool:
        return self._claim.take()

    def leave(self, vitals: Vitals) -> None:
        self._claim.leave()

    def drop(self) -> None:
        self.close()
        self._claim.leave()

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def guarded(self) -> AbstractContextManager[None]:
        return nullcontext()  # a stream's own errors are in our words already

    def pipeline(
        self, outputs: Sequence[Output], pulse: Callable[[], None], former: Pipeline | None = None
    ) -> Pipeline:
        return stream_pipeline_of(self._opened(), self._config, outputs, pulse)

    def settled(self, events: int) -> None:
        """Nobody keeps a stream's rate."""

    def published(self, journal: BoundLogger) -> None:
        """A stream has no database of its own in which statements could be run."""

    def idle(self, vitals: Vitals) -> None:
        """Nobody knows what a stream still holds."""

    def _opened(self) -> Stream:
        if self._stream is None:
            self._stream = stream_of(self._config, lambda said: self._journal.warning("odd", said=said))
        return self._stream
