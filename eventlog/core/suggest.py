"""What somebody probably meant, for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Write a hint: the nearest known name, or all of them."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"Did you mean {near}?"
    verb = "is" if len(names) == 1 else "are"
    return f"There {verb} {', '.join(names)}."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the most similar known name, ignoring case; None when none is near."""
    # In reverse, so that of names that differ in case alone the first one stays.
    folded = {name.casefold(): name for name in sorted(known, reverse=True)}
    matches = get_close_matches(name.casefold(), sorted(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None
