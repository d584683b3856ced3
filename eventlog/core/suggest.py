"""What somebody probably meant, for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint: the nearest known name, or all of them."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"Did you mean {near}?"
    return f"There {'is' if len(names) == 1 else 'are'} {', '.join(names)}."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, upper and lower case aside; None when none is near."""
    folded = {one.casefold(): one for one in sorted(known, reverse=True)}
    near = get_close_matches(name.casefold(), sorted(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None
