"""The queue of an output: documents that go again, rows that wait, and the rows that it has ahead of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eventlog.delivery.output import Output
from eventlog.publisher.blocked_rows import park_unread
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.journal_view import View
from eventlog.publisher.selection import EVERY_ROW_SECONDS, NOTHING_SENT, Take, Unanswered, take
from eventlog.publisher.sending import may_go
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.turn_report import ConsumerSettings


class Ready(Struct, frozen=True, kw_only=True):
    """What an output may get now: documents to be sent again, or the rows of a take, or nothing."""

    documents: Sequence[OnTheWay] = ()
    going: Sequence[int] = ()
    """The numbers of the documents that go now."""
    taken: Take | None = None
    later: float | None = None
    """In how many seconds rows come that wait for a time."""


class OutputQueue:
    """Looks what one output may get."""

    def __init__(self, journal: Journal, output: Output, settings: ConsumerSettings) -> None:
        self._journal = journal
        self._output = output
        self._settings = settings

    def look(self, view: View, decider: Decider, now: int) -> Ready:
        """Find what goes now; nothing new where a receiver's answer stops everything."""
        name, unanswered = self._output.name, NOTHING_SENT
        going: Sequence[int] = ()
        # A target that can be asked has been. Elsewhere documents may be at the receiver.
        if not self._output.sink.capabilities.resolves and (documents := view.list_planned(name)):
            unanswered = Unanswered(documents, view.come_again(name), self._settings.stops)
            going = may_go(unanswered, now)
        until = view.find_last_retry(name) if self._settings.stops else None
        again = Ready(documents=unanswered.documents, going=going)
        if going and until is None:
            return again
        # Nothing goes before what a receiver wants again, where one answer stops all.
        due = [document.due for document in unanswered.documents if unanswered.stops]
        if max([until or 0, *due]) <= now:
            taken = take(
                view,
                name,
                now=now,
                limit=self._settings.limit,
                identities=decider.identities,
                unanswered=unanswered,
                untried=self._journal.faults.list_untried(now),
            )
            if not taken.is_empty:
                return Ready(taken=taken)
        # What comes again goes first where it stops all, unless it waits itself.
        if going and (until or now) <= now:
            return again
        times = [document.due for document in unanswered.documents]
        waited = (until, view.soonest(name), self._journal.faults.find_next_try(name))
        times += [time for time in waited if time is not None]
        # What is due already waits for one of the others, or for somebody: it is looked at again.
        look_again = now + round(EVERY_ROW_SECONDS * 1000) if times else None
        later = min([time for time in times if time > now], default=look_again)
        # The journal goes by milliseconds.
        return Ready(later=None if later is None else (later - now) / 1000)

    def parks_unread(self, decider: Decider, now: int) -> bool:
        """Park new rows without reading their values; return True if they were the majority."""
        with self._journal.reading() as view:
            memory, name = view.memory, self._output.name
            if memory.output(name).paused or not memory.any_parked:
                return False
            # With "stop" one answer holds up everything, and nothing may pass it unread either.
            if self._settings.stops and ((view.find_last_retry(name) or 0) > now or view.list_planned(name)):
                return False
        return park_unread(self._journal, decider, self._settings.limit)
