"""Numbers with their words. Pure."""

from __future__ import annotations


def count_words(count: int, word: str = "row", words: str | None = None) -> str:
    """Write a number with its word: 1 row, 2 rows. `words` is the plural where an s does not make it; it
    may include a verb.
    """
    if count != 1:
        word = words or f"{word}s"
    return f"{count:,} {word}"


def duration(seconds: float | None) -> str:
    """Write a duration as people say it."""
    if seconds is None:
        return "unknown"
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:  # one of a unit would be too rough
            return f"{seconds / size:.0f} {unit}"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s"
