"""When a table is compared again: some time after its last proof, sooner after a failure, and only
in the window. Pure.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from eventlog.compare.pace import Window
from eventlog.core.proofs import LastProof

RETRY_SECONDS: Final = 300.0
"""Seconds after which a proof is tried again that did not come to its end."""

ROUND_PART: Final = 20
"""Rounds in the time from one proof to the next, at most: each looks at the tables anew, and a
little late is no harm.
"""

LOOK_SECONDS: Final = 3600.0
"""The longest time between two rounds, where that is no more than they may be apart: somebody may
track tables.
"""

DAY_SECONDS: Final = 86_400


class Schedule(Struct, frozen=True, kw_only=True):
    """So many seconds from one proof to the next, within a window of the day if there is one."""

    every: float
    window: Window | None = None

    def due_at(self, last: LastProof) -> float:
        """Compute when it is due again, in seconds since 1970; at once where it was never tried."""
        if not last.tried:
            return 0.0
        failed = last.failed_at is not None and last.failed_at >= (last.at or 0.0)
        if not failed:
            return last.tried + self.every
        # Never later than it would be due anyway.
        return last.tried + min(self.every, RETRY_SECONDS)

    def due(self, proofs: Iterable[LastProof], now: float) -> list[LastProof]:
        """List the due ones, oldest first; a time in the future comes from a wrong clock."""
        due_now = [proof for proof in proofs if self.due_at(proof) <= now or proof.tried > now]
        return sorted(due_now, key=lambda proof: min(proof.tried, now))

    def sleep(self, proofs: Iterable[LastProof], now: float) -> float:
        """Return seconds until the next round."""
        waits = [self.due_at(proof) - now for proof in proofs]
        # Not less: a table that is overdue outside the window would make rounds without end.
        return max(min([*waits, self.every, LOOK_SECONDS]), self.every / ROUND_PART)

    def find_closed_seconds(self, local: dt.datetime) -> float:
        """Return seconds until the window opens; 0 while it is open."""
        if self.window is None:
            return 0.0
        return max(0, self.window.wait(local.hour * 60 + local.minute) * 60 - local.second)

    def next_at(self, last: LastProof, now: float) -> float:
        """Compute when it will be compared, at the earliest."""
        at = max(self.due_at(last), now)
        return at + self.find_closed_seconds(dt.datetime.fromtimestamp(at))

    def is_old(self, last: LastProof, now: float) -> bool:
        """Return True if the last proof is older than two of them are apart; while the window is closed
        nobody expects one.
        """
        shut = 0
        if self.window is not None:
            # Modulo a day: a window may reach over midnight.
            shut = DAY_SECONDS - (self.window.end - self.window.begin) * 60 % DAY_SECONDS
        return last.at is not None and now - last.at > 2 * self.every + shut
