"""Batch after batch: while the documents of one wait for the disk, the next is decided and the one after it read.

Law: a batch reaches no output before everything of the one ahead of it is settled: until then its documents may be on
the disk, but under names that nobody looks at. Where something stays, or fails,
what was made ready behind it is forgotten and read again, so that no later change overtakes an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import EventlogError
from eventlog.core.model import Event, Outcome, Reason, exceptional
from eventlog.core.seams import Batch
from eventlog.core.tracing import end
from eventlog.delivery.lanes import haste
from eventlog.delivery.pipeline import Pipeline, Report, Work, read_timed

AGAIN_SECONDS: Final = 30.0
"""Seconds for which a look holds: reading what every table looks like may take seconds where there are thousands."""

Cause = tuple[str | None, str | None]
"""The table_name and the column_name of a row that could not be read."""


class Looks:
    """When tables were looked at because of what."""

    def __init__(self) -> None:
        self._at: dict[Cause, float] = {}

    def cover(self, causes: AbstractSet[Cause]) -> bool:
        """Whether there was a look because of each of these not long ago: what they name is not there."""
        since = monotonic() - AGAIN_SECONDS
        return bool(causes) and all(self._at.get(cause, since) > since for cause in causes)

    def note(self, causes: AbstractSet[Cause]) -> None:
        """Tables are looked at now because of these."""
        now = monotonic()
        self._at = {cause: at for cause, at in self._at.items() if at > now - AGAIN_SECONDS} | dict.fromkeys(
            causes, now
        )


def causes_of(events: Sequence[Event], outcomes: Sequence[Outcome]) -> frozenset[Cause]:
    """What the rows name that could not be read."""
    invalid = {outcome.position for outcome in exceptional(outcomes) if outcome.reason is Reason.INVALID}
    if not invalid:
        return frozenset()
    return frozenset((event.table, event.column) for event in events if event.position in invalid)


class Ready(Struct, frozen=True, kw_only=True):
    """A batch whose documents are made, and the one after it, on its way from the source."""

    work: Work
    following: Future[Batch] | None = None


class ReadAhead:
    """Takes batches round a pipeline, one after the other or hand in hand; it follows the `former` one, if there was one."""

    def __init__(self, pipeline: Pipeline, former: ReadAhead | None = None) -> None:
        self.pipeline = pipeline
        self.looks: Looks = Looks() if former is None else former.looks
        self._ready: Ready | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._hurrying = ExitStack()

    def go_round(self, *, ahead: bool) -> Report:
        """Publishes one batch; `ahead` lets it begin with what follows."""
        ready, self._ready = self._ready or self._begun(ahead=ahead), None
        if isinstance(ready, Report):
            self.pipeline = replace(self.pipeline, fresh=False)  # who rests does not see tables change
            return ready
        causes = causes_of(ready.work.batch.rows, ready.work.outcomes)
        if self.looks.cover(causes):
            self.pipeline = replace(self.pipeline, fresh=True)
        try:
            report = self._together(ready) if ready.following is not None else self.pipeline.finish(ready.work)
            self.pipeline = replace(self.pipeline, fresh=False)
            if report.stale:
                self.looks.note(causes)
            return report
        finally:
            if self._ready is None:
                self.forget()

    def forget(self) -> None:
        """Lets go of what was made ready; none of it has reached anybody."""
        if self._ready is not None:
            end(self._ready.work.span, forgotten=1)
        self._ready = None
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        self._hurrying.close()

    def _begun(self, *, ahead: bool) -> Ready | Report:
        """The next batch from the source, or what there is to say when there is none."""
        batch = read_timed(lambda: self.pipeline.source.read(self.pipeline.limit))
        if not batch.events:
            return Report(later=batch.later)
        outdated = self.pipeline.source.capabilities.outdated
        if outdated is not None and outdated():
            return Report(stale=True)
        following = self._following(batch) if ahead and not (batch.repeated or batch.notes or batch.attempts) else None
        return Ready(work=self._made(batch, None, encoded=following is not None), following=following)

    def _together(self, ready: Ready) -> Report:
        """Finishes one batch while the next is made."""
        assert self._threads is not None
        assert ready.following is not None
        ahead, work = ready.following, ready.work
        finishing = self._threads.submit(self.pipeline.finish, work, lambda: work.followed_by(ahead.result()))
        following: Ready | None = None
        try:
            following = self._next(ready)
        except EventlogError:
            pass  # what is wrong with the next batch is said when its turn comes
        finally:
            report = finishing.result()
        self._ready = following if self.pipeline.goes_on(report) else None
        return report

    def _next(self, ready: Ready) -> Ready | None:
        """The batch after this one, made as far as it can be; None when there is none or it must be looked at again."""
        assert ready.following is not None
        batch = ready.following.result()
        if not batch.events:
            return None
        following = self._following(ready.work.batch, batch)
        work = self._made(ready.work.followed_by(batch), ready.work, encoded=True)
        return Ready(work=work, following=following)

    def _made(self, batch: Batch, after: Work | None, *, encoded: bool) -> Work:
        work = self.pipeline.decided(batch, after)
        if encoded:
            for delivery in work.deliveries:
                delivery.encode(self.pipeline.catalog if batch.catalog is None else batch.catalog)
                delivery.prepare()
        return work

    def _following(self, *handed_out: Batch) -> Future[Batch] | None:
        """The batch after these, while it pays: a source that gave less than was asked for, and does not say so, has no more."""
        pipeline = self.pipeline
        read_ahead, limit, last = pipeline.source.capabilities.read_ahead, pipeline.limit, handed_out[-1]
        if read_ahead is None or limit <= 0 or not (last.more or limit <= len(last.events)):
            return None
        if any(output.answers for output in pipeline.outputs):
            return None  # what a receiver says of one batch may hold the next
        if self._threads is None:
            self._threads = ThreadPoolExecutor(2, thread_name_prefix="eventlog-read-ahead")
            self._hurrying.enter_context(haste())
        return self._threads.submit(read_timed, lambda: read_ahead(limit, handed_out))
