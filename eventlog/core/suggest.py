"""What somebody probably meant, for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint: the nearest known name, or all of them."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"Did you mean {near[0]}?" if near else f"There are {', '.join(names)}."
