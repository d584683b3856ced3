"""Where a publisher works: a log or a stream, who may publish it, and what else is to be done there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from structlog.stdlib import BoundLogger

from eventlog.core.seams import Tenure
from eventlog.daemon.vitals import Vitals
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.log.wakeup import Wakeup


class Post(Protocol):
    """One publisher has it at a time; everybody else stands by."""

    @property
    def name(self) -> str:
        """What is published there, for messages and the journal."""

    @property
    def address(self) -> str:
        """Where it is, without a password."""

    @property
    def taken(self) -> bool:
        """Whether this publisher has it."""

    @property
    def wakeup(self) -> Wakeup | None:
        """What notices waiting events between two intervals."""

    @property
    def tenure(self) -> Tenure | None:
        """Which log this publisher may write to outputs for, and since which epoch; None while it has it not."""

    def take(self) -> bool:
        """Whether this publisher has it now."""

    def confirm(self) -> None:
        """OccupiedError when this publisher has it no more; to be called before anything is written to an output.

        It asks nobody, unless this publisher may have slept for longer than its lease.
        """

    def stand_by(self, vitals: Vitals, journal: BoundLogger) -> None:
        """Another publisher has it: says who, and whether that one does its work."""

    def leave(self, vitals: Vitals) -> None:
        """Enters the last figures and gives it to whoever waits."""

    def drop(self) -> None:
        """Lets go of connections, which may be broken, and with them of the post."""

    def close(self) -> None:
        """Gives back what it holds."""

    def guarded(self) -> AbstractContextManager[None]:
        """What goes wrong inside is told in our words."""

    def pipeline(self, outputs: Sequence[Output], pulse: Callable[[], None]) -> Pipeline:
        """The way of its batches as its tables look now."""

    def settled(self, events: int) -> None:
        """So many events will not be offered again."""

    def published(self, journal: BoundLogger) -> None:
        """Documents went out in this cycle."""

    def idle(self, vitals: Vitals) -> None:
        """Nothing is waiting, or nothing can be delivered: time to take figures."""
