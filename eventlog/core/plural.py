"""Numbers with their words. Pure."""

from __future__ import annotations


def counted(count: int, word: str = "row", words: str | None = None) -> str:
    """A number with its word: 1 row, 2 rows. `words` are several, where an s does not make them."""
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def duration(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None:
        return "unknown"
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
