"""The figures of a long run of the ledger, kept with the other results after each case, so that it can be gone on with."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from bench.machine import Machine, this_machine
from tests.hardening.ledger.covering import Case
from tests.hardening.ledger.runs import Report
from tests.hardening.quantity import RESULTS

LONGEST: Final = 3_000
"""Characters that are kept of what is to be said of a case."""


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a long run is to do; the same seed gives the same cases."""

    seed: int
    handovers: int
    kills: int
    cases: int
    outputs: str = ""
    """A group of outputs, where only that one was asked for."""

    @property
    def path(self) -> Path:
        """Where the figures of this run are kept, finished or not."""
        of = f"{self.outputs}." if self.outputs else ""
        return RESULTS / f"ledger.{of}seed-{self.seed}.{self.handovers}-handovers.{self.kills}-kills.json"


class Figures(Struct, frozen=True, kw_only=True):
    """What a long run did so far: so many of its `runs`, in their order. `outputs` says how many handovers each one saw.

    `wrong` says of cases with findings which they were, and what was found.
    """

    day: dt.date
    machine: Machine
    asked: Asked
    minutes: float = 0.0
    runs: int = 0
    handovers: dict[str, int] = {}
    outputs: dict[str, int] = {}
    databases: dict[str, int] = {}
    versions: int = 0
    rows: int = 0
    longest_takeover_seconds: float = 0.0
    findings: int = 0
    wrong: list[str] = []


class Mutant(Struct, frozen=True, kw_only=True):
    """A publisher that did one thing wrong once, in a run of so many versions; whether that was found."""

    kind: str
    seed: int
    found: bool
    versions: int


class Mutants(Struct, frozen=True, kw_only=True):
    """How many there were of each kind, and how many of them were found."""

    day: dt.date
    machine: Machine
    runs: dict[str, int]
    found: dict[str, int]
    versions: int


class Tally:
    """Counts cases, and keeps the figures in a file after each; goes on from those that are there of the same run."""

    def __init__(self, asked: Asked, path: Path) -> None:
        self.path = path
        self.figures = begun(asked, path)
        self._since = time.monotonic()

    def add(self, case: Case, report: Report) -> None:
        """Counts a case."""
        wrong = [f"{case}, {case.cell}: {report}"[:LONGEST]] if report.findings else []
        self._keep(case, report, wrong)

    def broken(self, case: Case, error: Exception) -> None:
        """Counts a case that has not come to its end."""
        self._keep(case, None, [f"{case}, {case.cell}: {error!r}"[:LONGEST]])

    def _keep(self, case: Case, report: Report | None, wrong: list[str]) -> None:
        before, now, size = self.figures, time.monotonic(), len(case.cell.handovers)
        takeovers = [] if report is None else report.takeovers
        self.figures = msgspec.structs.replace(
            before,
            day=dt.datetime.now(tz=dt.UTC).date(),
            minutes=round(before.minutes + (now - self._since) / 60, 2),
            runs=before.runs + 1,
            handovers=_more(before.handovers, Counter(case.cell.handovers)),
            outputs=_more(before.outputs, dict.fromkeys(case.cell.outputs, size)),
            databases=_more(before.databases, {case.database.split(" ", maxsplit=1)[0]: size}),
            versions=before.versions + (0 if report is None else len(report.ledger)),
            rows=before.rows + (0 if report is None else len(report.log)),
            longest_takeover_seconds=max([before.longest_takeover_seconds, *takeovers]),
            findings=before.findings + (1 if report is None else len(report.findings)),
            wrong=[*before.wrong, *wrong],
        )
        self._since = now
        write(self.figures, self.path)


def begun(asked: Asked, path: Path) -> Figures:
    """The figures of this run as far as it came before; those of nothing where it is new, or was finished."""
    if path.exists():
        found = msgspec.json.decode(path.read_bytes(), type=Figures)
        if found.asked == asked and found.runs < asked.cases:
            return found
    return Figures(day=dt.datetime.now(tz=dt.UTC).date(), machine=this_machine(), asked=asked)


def write(figures: Struct, path: Path) -> None:
    """Keeps figures as the other results are kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


def told(mutants: Sequence[Mutant]) -> Mutants:
    """The figures of these runs."""
    return Mutants(
        day=dt.datetime.now(tz=dt.UTC).date(),
        machine=this_machine(),
        runs=dict(sorted(Counter(one.kind for one in mutants).items())),
        found=dict(sorted(Counter(one.kind for one in mutants if one.found).items())),
        versions=sum(one.versions for one in mutants),
    )


def _more(before: dict[str, int], also: dict[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(before) + Counter(also)).items()))


MUTANTS: Final = RESULTS / "ledger.mutants.json"
"""Publishers that did one thing wrong: how many, and how many of them were found."""
