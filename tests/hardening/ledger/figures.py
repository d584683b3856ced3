"""The figures of a long run of the ledger, kept with the other results when there was nothing to say of any run."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.machine import Machine, this_machine
from tests.hardening.deaths import RESULTS
from tests.hardening.ledger.covering import Case
from tests.hardening.ledger.runs import Report


class Figures(Struct, frozen=True, kw_only=True):
    """What a long run did. `outputs` says how many handovers each one saw."""

    day: dt.date
    machine: Machine
    seed: int
    minutes: float
    runs: int
    handovers: dict[str, int]
    outputs: dict[str, int]
    databases: dict[str, int]
    versions: int
    rows: int
    longest_takeover_seconds: float
    findings: int


class Tally:
    """What was done so far."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.runs = self.versions = self.rows = self.findings = 0
        self._began = time.monotonic()
        self._handovers: Counter[str] = Counter()
        self._outputs: Counter[str] = Counter()
        self._databases: Counter[str] = Counter()
        self._longest = 0.0

    def add(self, case: Case, report: Report) -> None:
        """Counts a run."""
        self.runs += 1
        self.versions += len(report.ledger)
        self.rows += len(report.log)
        self.findings += len(report.findings)
        self._handovers.update(case.cell.handovers)
        self._outputs.update({output: len(case.cell.handovers) for output in case.cell.outputs})
        self._databases[case.database.split(" ", maxsplit=1)[0]] += len(case.cell.handovers)
        self._longest = max([self._longest, *report.takeovers])

    def figures(self) -> Figures:
        """All of it."""
        return Figures(
            day=dt.datetime.now(tz=dt.UTC).date(),
            machine=this_machine(),
            seed=self.seed,
            minutes=round((time.monotonic() - self._began) / 60, 1),
            runs=self.runs,
            handovers=dict(sorted(self._handovers.items())),
            outputs=dict(sorted(self._outputs.items())),
            databases=dict(sorted(self._databases.items())),
            versions=self.versions,
            rows=self.rows,
            longest_takeover_seconds=self._longest,
            findings=self.findings,
        )


def keep(found: Figures, folder: Path = RESULTS) -> Path:
    """Writes the figures to the other results."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ledger.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return path
