"""Batch after batch: while the documents of one wait for the disk, the next is decided and the one after it read.

Law: a batch reaches no output before everything of the one ahead of it is settled: until then its documents may be on
the disk, but under names that nobody looks at. Where something stays, or fails,
what was made ready behind it is forgotten and read again, so that no later change overtakes an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import EventlogError
from eventlog.core.seams import Batch
from eventlog.delivery.interpreter_tuning import haste
from eventlog.delivery.looks import Looks, causes_of
from eventlog.delivery.pipeline import Pipeline, Report, Work


class Ready(Struct, frozen=True, kw_only=True):
    """A batch whose documents are made, and the one after it, on its way from the source."""

    work: Work
    following: Future[Batch] | None = None


class Relay:
    """Takes batches round a pipeline, one after the other or hand in hand; it follows the `former` one, if there was one."""

    def __init__(self, pipeline: Pipeline, former: Relay | None = None) -> None:
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
        self._ready = None
        self._take_back()  # before the threads end, for one of them may be waiting until workers take their shares
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        self._take_back()
        self._hurrying.close()

    def close(self) -> None:
        """Ends threads and processes."""
        self.forget()
        if self.pipeline.workers is not None:
            self.pipeline.workers.close()

    def _begun(self, *, ahead: bool) -> Ready | Report:
        """The next batch from the source, or what there is to say when there is none."""
        batch = self.pipeline.source.read(self.pipeline.limit)
        if not batch.events:
            return Report(later=batch.later)
        outdated = self.pipeline.source.capabilities.outdated
        if outdated is not None and outdated():
            return Report(stale=True)
        self._hand_out(batch)
        following = self._following(batch) if ahead and not (batch.repeated or batch.notes or batch.attempts) else None
        return Ready(work=self._made(batch, None, encoded=following is not None), following=following)

    def _together(self, ready: Ready) -> Report:
        """Finishes one batch while the next is made."""
        assert self._threads is not None
        assert ready.following is not None
        finishing = self._threads.submit(self.pipeline.finish, ready.work, ready.following.result)
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
        work = self._made(batch, ready.work, encoded=True)
        return Ready(work=work, following=following)

    def _made(self, batch: Batch, after: Work | None, *, encoded: bool) -> Work:
        work = self.pipeline.decided(batch, after)
        if encoded:
            for delivery in work.deliveries:
                delivery.encode(self.pipeline.catalog if batch.catalog is None else batch.catalog)
                delivery.stage()
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
            self._threads = ThreadPoolExecutor(2, thread_name_prefix="eventlog-relay")
            self._hurrying.enter_context(haste())
        return self._threads.submit(self._read_ahead, read_ahead, limit, handed_out)

    def _read_ahead(
        self, read_ahead: Callable[[int, Sequence[Batch]], Batch], limit: int, handed_out: Sequence[Batch]
    ) -> Batch:
        batch = read_ahead(limit, handed_out)
        self._hand_out(batch)
        return batch

    def _take_back(self) -> None:
        if self.pipeline.workers is not None:
            self.pipeline.workers.forget()

    def _hand_out(self, batch: Batch) -> None:
        if self.pipeline.workers is not None:
            self.pipeline.workers.hand_out(batch)
