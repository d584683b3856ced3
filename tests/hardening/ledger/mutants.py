"""Publishers that do one thing wrong in a run, and results with one thing wrong: the ledger has to find each of them."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.model import Document
from tests.hardening.ledger.checking import Seen, Shown


def faulty(kind: str, flag: str, seed: int) -> None:
    """Makes the files sink of this process do something wrong with one of the documents, once for each `flag`."""
    from eventlog.sinks.files import FileSink

    dice = random.Random(seed)
    commits = itertools.count(dice.randrange(2))
    real: Callable[..., Any] = FileSink.commit

    def commit(self: FileSink, plan: str, documents: Sequence[Document]) -> Any:
        if documents and next(commits) > 0 and _first(Path(flag)):
            return real(self, plan, WRONGS[kind](list(documents), dice))
        return real(self, plan, documents)

    setattr(FileSink, "commit", commit)  # noqa: B010  # a plain assignment is refused: a method is no variable


def _first(flag: Path) -> bool:
    """Whether nobody has come here before."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _dropped(documents: list[Any], dice: random.Random) -> list[Any]:
    del documents[dice.randrange(len(documents))]
    return documents


def _doubled(documents: list[Any], dice: random.Random) -> list[Any]:
    """One of them once more, under another id."""
    one = dice.choice(documents)
    return [*documents, replace(one, id=f"{one.id}-again")]


WRONGS: Final[dict[str, Callable[[list[Any], random.Random], list[Any]]]] = {"drop": _dropped, "double": _doubled}


def wrong(shown: Shown, kind: str, dice: random.Random) -> Shown:
    """What a reader would have found, had one change been lost, come twice, or come before the one ahead of it."""
    seen = list(shown.seen)
    if kind == "swap":
        return replace(shown, seen=_swapped(seen, dice))
    number = dice.randrange(len(seen))
    if kind == "drop":
        del seen[number]
    else:
        seen.insert(dice.randrange(number + 1, len(seen) + 1), seen[number])
    return replace(shown, seen=seen)


def _swapped(seen: list[Seen], dice: random.Random) -> list[Seen]:
    """Two changes of an object in each other's places."""
    places: dict[tuple[str, int], list[int]] = {}
    for number, one in enumerate(seen):
        places.setdefault(one.place, []).append(number)
    several: Sequence[list[int]] = [numbers for numbers in places.values() if len(numbers) > 1]
    mine = dice.choice(several)
    step = dice.randrange(len(mine) - 1)
    former, later = mine[step], mine[step + 1]
    seen[former], seen[later] = seen[later], seen[former]
    return seen
