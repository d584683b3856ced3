"""What came of it: how many mutants were killed, and which survived although nobody says that they make no difference."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

EQUIVALENT = Path("bench/mutation/equivalent.toml")
RESULTS = Path("bench/results/mutation/mutation.json")
PAGE = Path("CONTRIBUTING.md")
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


class Found(Struct, frozen=True, kw_only=True):
    """An area's figures: mutants there are, tried, killed, and equivalent ones among those that were tried.

    `slow` are those among the killed that a limit of time ended.
    """

    area: str
    date: dt.date
    mutants: int
    tried: int
    killed: int
    slow: int
    equivalent: int
    survivors: list[Mutant]

    @property
    def share(self) -> float:
        """Killed, of those that make a difference."""
        return self.killed / max(1, self.tried - self.equivalent)


def judged(area: str, mutants: int, tried: Sequence[Mutant]) -> Found:
    """The figures of the mutants that were tried."""
    known = msgspec.convert(tomllib.loads(EQUIVALENT.read_text()).get("mutant", []), list[Known])
    survivors = [one for one in tried if not one.killed]
    unexplained = [one for one in survivors if not any(entry.matches(one) for entry in known)]
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
    news = {one.area: one for one in [*kept, *found]}
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
