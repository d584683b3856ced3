"""The last proof of a table at an output: what it found, for all who tell of it."""

from __future__ import annotations

from msgspec import Struct

from eventlog.core.plural import count_words


class LastProof(Struct, frozen=True, kw_only=True):
    """When a table was last compared with what an output holds of it, what differed, and how long
    it took.

    `at` is None as long as it never came to an end. `error` says why the attempt at `failed_at` did
    not; the rest is of the proof before. Times are seconds since 1970. `note` says what is not
    compared. With `more` the comparison was ended at so many differences.
    """

    output: str
    table: str
    at: float | None = None
    seconds: float = 0.0
    rows: int = 0
    missing: int = 0
    extra: int = 0
    value: int = 0
    double: int = 0
    waiting: int = 0
    more: bool = False
    note: str = ""
    error: str = ""
    failed_at: float | None = None

    @property
    def differing(self) -> int:
        """Count the differing objects."""
        return self.missing + self.extra + self.value + self.double

    @property
    def equal(self) -> bool:
        """Return True if the last complete proof found no difference."""
        return self.at is not None and not self.differing and not self.more

    @property
    def tried(self) -> float:
        """Return the time of the last try; 0 before the first."""
        return max(self.at or 0.0, self.failed_at or 0.0)

    @property
    def by_kind(self) -> dict[str, int]:
        """Count the differing objects by kind of difference."""
        return {"missing": self.missing, "extra": self.extra, "value": self.value, "double": self.double}

    @property
    def verdict(self) -> str:
        """Sum up the result in a few words."""
        if self.at is None:
            return "not compared yet"
        if self.equal:
            return "equal"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.by_kind.items() if count)
        objects = count_words(self.differing, "object differs", "objects differ")
        return f"{'at least ' if self.more else ''}{objects} ({kinds})"
