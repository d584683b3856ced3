"""The post at a stream: a file of marks keeps its position, and a claim beside that file keeps other publishers away."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final
from uuid import uuid4

from structlog.stdlib import BoundLogger

from eventlog.config.build import stream_of, stream_pipeline_of
from eventlog.config.settings import Config
from eventlog.core.errors import OccupiedError
from eventlog.core.file_lock import Claim
from eventlog.core.seams import Stream, Tenure
from eventlog.core.secrets import masked
from eventlog.daemon.vitals import Vitals
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.marks import EPOCH, LOG, FileMarks, next_epoch

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
        self._tenure: Tenure | None = None

    @property
    def name(self) -> str:
        return f"{NAMES[self._config.source.kind]} of {self._config.source.marks}"

    @property
    def address(self) -> str:
        source = self._config.source
        if source.url:
            from eventlog.sql.connect import read_url, shown_url

            return shown_url(read_url(source.url))
        return masked(source.gbase.path or source.gbase.server)

    @property
    def taken(self) -> bool:
        return self._tenure is not None

    @property
    def tenure(self) -> Tenure | None:
        return self._tenure

    def take(self) -> bool:
        if self._tenure is None and self._claim.take():
            self.close()  # what it knows of the marks is from before
            self._tenure = self._new_tenure()
        return self.taken

    def confirm(self) -> None:
        """The claim ends with the process and no sooner, so there is nobody to ask."""
        if self._tenure is None:
            raise OccupiedError(f"Another publisher may work on the {self.name}.", hint="This one has let go of it.")

    def stand_by(self, vitals: Vitals, journal: BoundLogger) -> None:
        """Who has the claim on a file is the kernel's to know, and what a stream still holds is nobody's."""

    def leave(self, vitals: Vitals) -> None:
        self._let_go()

    def drop(self) -> None:
        self.close()
        self._let_go()

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def guarded(self) -> AbstractContextManager[None]:
        return nullcontext()  # a stream's own errors are in our words already

    def pipeline(self, outputs: Sequence[Output], pulse: Callable[[], None]) -> Pipeline:
        return stream_pipeline_of(self._opened(), self._config, outputs, pulse)

    def settled(self, events: int) -> None:
        """Nobody keeps a stream's rate."""

    def published(self, journal: BoundLogger) -> None:
        """A stream has no database of its own in which statements could be run."""

    def idle(self, vitals: Vitals) -> None:
        """Nobody knows what a stream still holds."""

    def _let_go(self) -> None:
        self._tenure = None
        self._claim.leave()

    def _new_tenure(self) -> Tenure:
        """Which stream this is stands in its marks, and so does the epoch."""
        marks = FileMarks(self._config.source.marks)
        identity = marks.get(LOG) or str(uuid4())
        epoch = next_epoch(marks.get(EPOCH), dt.datetime.now(dt.UTC).replace(tzinfo=None))
        marks.change({LOG: identity, EPOCH: str(epoch)})
        return Tenure(log=identity, name=self.name, epoch=epoch)

    def _opened(self) -> Stream:
        if self._stream is None:
            self._stream = stream_of(self._config, lambda said: self._journal.warning("odd", said=said))
        return self._stream
