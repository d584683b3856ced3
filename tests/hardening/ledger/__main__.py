"""Runs with publishers that are killed, frozen and asked for things, on SQLite: python -m tests.hardening.ledger FROM TO."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from eventlog.sql.connect import connect
from tests.hardening.ledger.runs import LOCAL, Cell, Run
from tests.hardening.ledger.team import HANDOVERS

HISTORIES = ("late", "hold", "release", "requeue", "pause", "big")
WAYS = [name for name in HANDOVERS if name != "cut"]
"""SQLite has no sessions that could be cut."""


def main() -> None:
    begin, end = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(begin, end):
        dice = random.Random(seed)
        cell = Cell(outputs=LOCAL, handovers=dice.choices(WAYS, k=6), histories=HISTORIES, seed=seed, objects=150)
        with TemporaryDirectory(prefix="eventlog-ledger-") as folder:
            engine = connect(f"sqlite:///{folder}/log.db", may_create=True)
            report = Run(cell, engine, Path(folder)).report()
            engine.dispose()
        assert not report.findings, f"{cell}: {report}"
        sys.stdout.write(f"{cell}: {report}\n")


if __name__ == "__main__":
    main()
