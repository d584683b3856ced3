"""What came of it: how many mutants were killed, and which survived although nobody says that they make no difference."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

EQUIVALENT = Path("bench/mutation/equivalent.toml")
RESULTS = Path("bench/results/mutation/mutation.json")
PAGE = Path("bench/mutation/README.md")
BEGINS, ENDS = "<!-- mutation: written by `./dev mutate --keep` -->\n", "<!-- end -->\n"


End = Literal["killed", "slow", "survived", "unreached", "unknown"]
"""A test failed, never came to an end, or noticed nothing; no test came to the code; or nobody knows what happened."""


class Mutant(Struct, frozen=True, kw_only=True):
    """One fault: the lines that it takes away and those that it puts in their place."""

    file: str
    removed: str
    added: str
    end: End

    @property
    def killed(self) -> bool:
        """Whether somebody who runs the tests would notice."""
        return self.end in ("killed", "slow")


class Known(Struct, frozen=True, kw_only=True):
    """A mutant that does what the code does, with the reason."""

    file: str
    removed: str
    added: str
    why: str

    def matches(self, mutant: Mutant) -> bool:
        return (self.file, self.removed, self.added) == (mutant.file, mutant.removed, mutant.added)


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of mutants that do what the code does: without what `pattern` finds, both are the same text."""

    pattern: str
    why: str

    def matches(self, mutant: Mutant) -> bool:
        return self._without(mutant.removed) == self._without(mutant.added)

    def _without(self, text: str) -> str:
        return re.sub(self.pattern, "", text)


class Equivalent(Struct, frozen=True, kw_only=True):
    """What stands in equivalent.toml."""

    mutant: list[Known] = []
    kind: list[Kind] = []

    def explains(self, mutant: Mutant) -> bool:
        """Whether somebody has said why this mutant makes no difference; one that no test reaches may well make one."""
        known = any(one.matches(mutant) for one in self.mutant) or any(one.matches(mutant) for one in self.kind)
        return known and mutant.end == "survived"


class Found(Struct, frozen=True, kw_only=True):
    """An area's figures: mutants there are, tried, killed, and equivalent ones among those that were tried.

    `slow` are those among the killed that a limit of time ended.
    """

    area: str
    date: dt.date
    mutants: int
    tried: int
    killed: int
    slow: int = 0
    equivalent: int
    survivors: list[Mutant]

    @property
    def share(self) -> float:
        """Killed, of those that make a difference."""
        return self.killed / max(1, self.tried - self.equivalent)


def judged(area: str, mutants: int, tried: Sequence[Mutant]) -> Found:
    """The figures of the mutants that were tried."""
    known = equivalent()
    survivors = [one for one in tried if not one.killed]
    unexplained = [one for one in survivors if not known.explains(one)]
    return Found(
        area=area,
        date=dt.datetime.now(dt.UTC).date(),
        mutants=mutants,
        tried=len(tried),
        killed=len(tried) - len(survivors),
        slow=sum(one.end == "slow" for one in tried),
        equivalent=len(survivors) - len(unexplained),
        survivors=unexplained,
    )


def equivalent() -> Equivalent:
    """The mutants that are known to make no difference."""
    return msgspec.convert(tomllib.loads(EQUIVALENT.read_text()), Equivalent)


def judged_again(found: Found) -> Found:
    """The same figures, when survivors have been explained since."""
    known = equivalent()
    survivors = [one for one in found.survivors if not known.explains(one)]
    explained = len(found.survivors) - len(survivors)
    return replace(found, equivalent=found.equivalent + explained, survivors=survivors)


def told(found: Found) -> str:
    """The figures, and each survivor as a difference."""
    head = f"{found.area}: {found.killed} of {found.tried - found.equivalent} killed ({found.share:.1%})"
    lines = [f"{head}, {found.slow} of them by a limit of time; {found.equivalent} equivalent, {found.mutants} in all"]
    for one in found.survivors:
        lines += [f"  {one.file}: {one.end}", *_marked("-", one.removed), *_marked("+", one.added)]
    return "\n".join(lines)


def keep(found: Sequence[Found]) -> None:
    """Puts figures in the place of former ones, in the results and on the page."""
    kept = msgspec.json.decode(RESULTS.read_bytes(), type=list[Found]) if RESULTS.exists() else []
    news = {one.area: judged_again(one) for one in [*kept, *found]}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(list(news.values())), indent=1) + b"\n")
    before, rest = PAGE.read_text().split(BEGINS)
    _, after = rest.split(ENDS)
    PAGE.write_text(before + BEGINS + table(list(news.values())) + ENDS + after)


def table(found: Sequence[Found]) -> str:
    """The figures for people."""
    lines = ["", "| area | mutants | tried | make no difference | killed of the others | on |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | --- |")
    for one in found:
        share = f"{one.killed} of {one.tried - one.equivalent}, {one.share:.1%}"
        lines.append(f"| {one.area} | {one.mutants} | {one.tried} | {one.equivalent} | {share} | {one.date} |")
    return "\n".join([*lines, "", ""])


def _marked(mark: str, text: str) -> list[str]:
    return [f"    {mark} {line}" for line in text.splitlines()]
