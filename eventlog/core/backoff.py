"""How long to wait before another attempt: longer each time, and never all at the same moment."""

from __future__ import annotations

from msgspec import Struct


class Backoff(Struct, frozen=True, kw_only=True):
    """Seconds to wait after the first failure, and the longest wait."""

    first: float = 1.0
    longest: float = 60.0

    def delay(self, attempts: int, chance: float) -> float:
        """Compute the wait after so many failures; `chance` from 0 to 1 spreads it over its upper half."""
        doublings = min(max(attempts - 1, 0), 64)  # from here on a float has long passed any limit
        return float(min(self.longest, self.first * 2.0**doublings)) * (0.5 + chance / 2)
