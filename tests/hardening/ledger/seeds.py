"""Runs by their seeds, with publishers that are killed, frozen and asked for things, on SQLite."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from eventlog.sql.connect import connect
from tests.hardening.ledger.runs import LOCAL, Cell, Run
from tests.hardening.ledger.team import HANDOVERS

HISTORIES = ("late", "hold", "release", "requeue", "pause", "big")
WAYS = [name for name in HANDOVERS if name != "cut"]
"""SQLite has no sessions that could be cut."""


def run_processes(seeds: Iterable[int], folder: Path) -> Iterator[str]:
    """Run them one after the other, and say what each came to; AssertionError for one with a finding."""
    for seed in seeds:
        dice = random.Random(seed)
        cell = Cell(outputs=LOCAL, handovers=dice.choices(WAYS, k=6), histories=HISTORIES, seed=seed, objects=150)
        own = folder / str(seed)
        own.mkdir()
        engine = connect(f"sqlite:///{own}/log.db", may_create=True)
        report = Run(cell, engine, own).report()
        engine.dispose()
        assert not report.findings, f"{cell}: {report}"
        yield f"{cell}: {report}"
