"""Why tables were looked at anew: rows that named something unknown; for the same reason it is not done again so soon."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import Final

from eventlog.core.model import Event, Outcome, Reason, exceptional

AGAIN: Final = 30.0
"""Seconds for which a look holds: reading what every table looks like may take seconds where there are thousands."""

Cause = tuple[str | None, str | None]
"""The table_name and the column_name of a row that could not be read."""


class Looks:
    """When tables were looked at because of what."""

    def __init__(self) -> None:
        self._at: dict[Cause, float] = {}

    def cover(self, causes: AbstractSet[Cause]) -> bool:
        """Whether there was a look because of each of these not long ago: what they name is not there."""
        since = monotonic() - AGAIN
        return bool(causes) and all(self._at.get(cause, since) > since for cause in causes)

    def note(self, causes: AbstractSet[Cause]) -> None:
        """Tables are looked at now because of these."""
        now = monotonic()
        self._at = {cause: at for cause, at in self._at.items() if at > now - AGAIN} | dict.fromkeys(causes, now)


def causes_of(events: Sequence[Event], outcomes: Sequence[Outcome]) -> frozenset[Cause]:
    """What the rows name that could not be read."""
    invalid = {outcome.position for outcome in exceptional(outcomes) if outcome.reason is Reason.INVALID}
    if not invalid:
        return frozenset()
    return frozenset((event.table, event.column) for event in events if event.position in invalid)
