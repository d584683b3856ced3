"""Documents on their way to a receiver that judges each of them, and cannot be asked what it has.

Law: without an answer that can be read a document keeps its plan, its id and its body, whatever
becomes of others. A readable "again" parks its own rows, and frees what was never sent of their
objects; all else behind them waits as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from eventlog.core.model import EVERY_ROW, Outcome, Position, Status
from eventlog.core.seams import Sink
from eventlog.delivery.lanes import Turns, deliver
from eventlog.publisher.new_rows import touch
from eventlog.publisher.row_outcomes import choose_worst, end_retries
from eventlog.publisher.selection import Unanswered
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.turn_report import ConsumerSettings

ANSWERED_DOCUMENTS: Final = 50
"""Answers on each lane that the journal does not know yet; after a crash these are sent again."""

Enter = Callable[[Sequence[OnTheWay], Sequence[OnTheWay], Mapping[Position, Outcome]], None]
"""Enters documents that are over, documents that are freed to be decided anew, and answers."""


def may_go(unanswered: Unanswered, now: int) -> list[int]:
    """List the documents free to be sent now, in order.

    None is sent behind a waiting one, or behind a row to be retried.
    """
    going: list[int] = []
    blocked: set[str] = set()
    for number, document in enumerate(unanswered.documents):
        if document.due > now or touch(blocked, document.objects) or document.is_behind(unanswered.again):
            if unanswered.stops:
                break
            blocked.update(document.objects)
        else:
            going.append(number)
    return going


class HandOver:
    """Sends documents in their order, side by side where the receiver has several lanes.

    By its strictness a document that comes again stops all behind it, or only those of its objects.
    """

    def __init__(
        self,
        sink: Sink,
        waiting: Sequence[OnTheWay],
        *,
        going: Collection[int],
        unsent: set[tuple[str, int]],
        settings: ConsumerSettings,
        confirm: Callable[[], None],
        pulse: Callable[[], None],
        enter: Enter,
    ) -> None:
        """Take waiting documents, the numbers of those to send now, and the keys of those never
        sent.
        """
        self.answered = 0
        self._sink = sink
        self._waiting = waiting
        self._going = going
        self._unsent = unsent
        self._settings = settings
        self._stops = settings.stops
        # All lanes stand still while the journal is written: as often as one lane alone would be.
        self._unentered_most = ANSWERED_DOCUMENTS * max(1, len(sink.capabilities.lanes))
        self._confirm = confirm
        self._pulse = pulse
        self._enter = enter
        self.complaint: str | None = None
        """What was wrong with the last answer that nobody could read."""
        self._unread: set[int] = set()
        self._finished: set[int] = set()
        self._over: list[OnTheWay] = []
        self._freed: list[OnTheWay] = []
        self._answers: dict[Position, Outcome] = {}
        self._blocked: set[str] = set()
        """Objects of which a document waits or comes again."""
        self._all_blocked = False

    @property
    def unread(self) -> list[OnTheWay]:
        """List documents with an unreadable answer."""
        return [self._waiting[number] for number in sorted(self._unread)]

    def run(self) -> None:
        """Send all free documents; after a failure nothing more is sent, and answers so far count."""
        documents = [document.again() for document in self._waiting]
        if self._sink.capabilities.announce is not None:
            self._sink.capabilities.announce(documents)
        lanes = self._sink.capabilities.lanes
        if len(lanes) > 1 and len(documents) > 1:
            # One that speaks of a whole table goes alone, as one of which nobody knows the objects.
            objects = [frozenset(document.objects) for document in self._waiting]
            turns = Turns([frozenset[str]() if EVERY_ROW in names else names for names in objects])
            plans = [document.plan for document in self._waiting]
            deliver(lanes[: len(documents)], documents, plans, turns, self._holds, self._take)
            return
        for number, document in enumerate(documents):
            if not self._holds(number):
                self._take(number, self._sink.commit(self._waiting[number].plan, [document]))

    def enter_answers(self) -> None:
        """Enter the answers so far."""
        over, freed, answers = self._over, self._freed, self._answers
        self._over, self._freed, self._answers = [], [], {}
        if over or freed:
            self._enter(over, freed, answers)

    def _holds(self, number: int) -> bool:
        """Return True if a document is not sent now."""
        if number in self._finished or number not in self._going:
            return True
        document = self._waiting[number]
        if self._all_blocked or touch(self._blocked, document.objects):
            self._block(document)
            return True
        # The last moment to see that another publisher has the lock.
        self._confirm()
        self._unsent.discard(document.key)
        return False

    def _take(self, number: int, outcomes: Sequence[Outcome]) -> None:
        document = self._waiting[number]
        # Before anything is freed: nothing has to wait behind what is given up.
        outcomes = [end_retries(self._settings.max_attempts, outcome, document.attempts) for outcome in outcomes]
        if any(outcome.unread for outcome in outcomes):
            self.complaint = outcomes[0].note
            self._unread.add(number)
            self._block(document)
            self._pulse()
            return
        self._finished.add(number)
        self.answered += 1
        self._over.append(document)
        self._answers = choose_worst([*self._answers.values(), *outcomes])
        if any(outcome.status is Status.NEW for outcome in outcomes):
            self._free_behind(number)
            self._block(document)
        if any(self._settings.strictness.ends(outcome.status) for outcome in outcomes):
            self._all_blocked = True
        if len(self._over) >= self._unentered_most:
            self.enter_answers()
        self._pulse()

    def _block(self, document: OnTheWay) -> None:
        """Block everything behind a document of its objects, or everything at all."""
        self._blocked.update(document.objects)
        self._all_blocked = self._all_blocked or self._stops

    def _free_behind(self, number: int) -> None:
        """Free documents behind one to be retried and never sent: its objects', or all if nothing
        may overtake.

        It is read again, behind that one.
        """
        names = set(self._waiting[number].objects)
        for later in range(number + 1, len(self._waiting)):
            document = self._waiting[later]
            is_unsent = document.key in self._unsent and later not in self._finished
            if is_unsent and (self._stops or touch(names, document.objects)):
                names.update(document.objects)
                self._unsent.discard(document.key)
                self._finished.add(later)
                self._freed.append(document)
