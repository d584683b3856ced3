"""Lines of work of a publisher: each output fails, waits and goes on whatever others do."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Flag
from time import monotonic
from typing import Final

from msgspec.structs import replace

from eventlog.core.errors import ChangedError, MachineError, SourceError
from eventlog.core.seams import Tenure
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.scheduling import Failures
from eventlog.delivery.report import Report
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider

MOST_LOOKS: Final = 3
"""How often it looks at the tables again when it cannot read: they may go on changing meanwhile."""


class Line:
    """One line of work: the turns of one output, as the publisher's thread sees them."""

    def __init__(
        self,
        consumer: Consumer,
        vitals: PublisherHealth,
        look_again: Callable[[Decider], Decider],
    ) -> None:
        self.name = consumer.name
        self.consumer = consumer
        self._vitals = vitals
        self._look_again = look_again
        self.failures = Failures()
        self.again_at = 0.0
        """When it is tried again that has failed, by the monotonic clock."""
        self.trouble: MachineError | None = None
        """What was wrong the last time; None once it goes on."""
        self.is_behind = False
        """The others go on without it, and that was logged."""
        self.rests = False
        """It had nothing to do in its last turn."""
        self.took_all = False
        """Nothing was left for it when its last turn began."""
        self.has_worked = False
        """It has had a turn that ended well."""
        self.is_paused = False
        """Somebody had paused it by its last turn."""
        self.held_up = False
        """It waits for another output that is too far behind."""
        self.wanted = Flag()
        """Somebody has found that there may be something to do, while it was at work."""
        self.later_at: float | None = None
        """When rows come again that wait for another attempt, by the monotonic clock."""

    def may_go(self) -> bool:
        """Return True if it may have a turn now."""
        return not self.held_up and (self.trouble is None or monotonic() >= self.again_at)

    def turn(self, tenure: Tenure) -> Report:
        """Run one turn. Look at the tables again before unreadable rows are given up."""
        began, looks = monotonic(), MOST_LOOKS
        while True:
            decider = self.consumer.decider
            try:
                turn = self.consumer.turn(tenure)
            except SourceError as error:
                # A lost connection is waited out: to look at the tables would not mend it.
                if looks <= 0 or (error.may_pass and not isinstance(error, ChangedError)):
                    raise
            except MachineError as error:
                # What an output took before it failed counts in the figures.
                done = self.consumer.so_far()
                done = replace(done, complaint=str(error), seconds=monotonic() - began)
                self._vitals.note_turn(self.name, done, failed=True)
                raise
            else:
                if turn.stale is None:
                    break
                if looks <= 0:
                    # Whoever writes the marks of tables could keep it looking without an end.
                    message = f"The tables changed during each of {MOST_LOOKS + 1} looks; it is tried again later."
                    raise ChangedError(message)
                decider.looks.note(turn.stale)
            looks -= 1
            self.consumer.decider = self._look_again(decider)
        turn = replace(turn, seconds=monotonic() - began)
        if turn.documents or turn.complaint is not None:
            self._vitals.note_turn(self.name, turn)
        self.rests, self.took_all = not turn.moved, turn.took_all
        self.is_paused = turn.paused
        self.later_at = None if turn.later is None else monotonic() + turn.later
        # Whoever keeps the report does not keep the rows.
        return replace(turn, delivered=())
