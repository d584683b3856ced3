"""Coalescing piece by piece: of each column a few events tell its net effect, and of the others the position is enough."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

from eventlog.core.model import Change, Event, Outcome, Position, Reason, Row
from eventlog.core.rules.coalesce import coalesce
from eventlog.core.rules.join import UPDATE_FIELD, multiple_attributes, saying_something
from eventlog.core.rules.meaning import MEANING, STATUS
from eventlog.core.rules.screen import Screened, Subject

Tell = Callable[[Change], str | None]
"""Takes a change; the answer is why it cannot be published, or None."""

AT_ONCE = 50_000
"""Outcomes that are handed out together."""


class Fold:
    """The net effect of a lifetime in the making. Positions are those of a log: one number each."""

    def __init__(self, subject: Subject, tell: Tell) -> None:
        self._subject = subject
        self._tell = tell
        self._multiple = multiple_attributes(subject)
        self._positions = array("q")
        self._telling: dict[object, dict[str, Event]] = {}

    def take(self, screened: Screened, events: list[Event], row: Row | None) -> Iterator[list[Outcome]]:
        """Takes the next of the remaining events; those that say nothing end here."""
        saying = saying_something(screened, events)
        for event in saying:
            self._positions.append(event.position[0])
            self._keep(event)
        yield [screened.outcomes[event.position] for event in events if event.position in screened.outcomes]

    def end(self, screened: Screened, row: Row | None) -> Iterator[list[Outcome]]:
        """Tells the net effect; all of its events end alike."""
        telling = {event.position: event for kept in self._telling.values() for event in kept.values()}
        events = [telling[position] for position in sorted(telling)]
        note = None
        for change in coalesce(screened, self._subject, events, row):
            note = self._tell(change)
        cancelled = screened.outcomes.get(events[0].position) if events else None
        for start in range(0, len(self._positions), AT_ONCE):
            positions = [(number,) for number in self._positions[start : start + AT_ONCE]]
            yield [_alike(cancelled, position) or ended(position, note) for position in positions]
        self._positions, self._telling = array("q"), {}

    def _keep(self, event: Event) -> None:
        """Keeps the first and last event of a column, and one of each sort that makes a difference to `coalesce`."""
        kept = self._telling.setdefault(event.position if event.column in self._multiple else event.column, {})
        kept.setdefault("first", event)
        kept["last"] = event
        if event.kind != UPDATE_FIELD:
            kept.setdefault("other", event)
        if MEANING[event.kind].reset:
            kept.setdefault("reset", event)


def ended(position: Position, note: str | None) -> Outcome:
    """How an event ends whose change was told: published, or refused with a note."""
    if note is None:
        return Outcome(position=position)
    return Outcome(position=position, status=STATUS[Reason.REFUSED], reason=Reason.REFUSED, note=note)


def _alike(outcome: Outcome | None, position: Position) -> Outcome | None:
    if outcome is None:
        return None
    return Outcome(position=position, status=outcome.status, reason=outcome.reason, note=outcome.note)
