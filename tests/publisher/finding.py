"""Puts faults into the journal, and says whether random histories find them.

python -m tests.publisher.finding [--processes | --histories N] [WORDS]: those with one of these words in their names,
or all. `python -m tests.publisher` makes the histories, with models or of processes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.publisher.fault import ROOT, JournalFault
from tests.publisher.faults import FAULTS

HISTORIES = 300
"""Within so many histories each fault is to be found."""
PROCESSES = ("--processes", "1", "6")
"""Which histories of processes are run."""

NO_FAULT = "no fault at all"
OF_PYTHON = ("AttributeError", "ImportError", "IndexError", "NameError", "SyntaxError", "TypeError")
"""What a fault ends with that is no journal's: it would be found by anybody."""


def find_fault(fault: JournalFault | None, folder: Path, histories: Sequence[str]) -> str:
    """Run the histories of a copy with this fault, and return their failure; empty if they find nothing."""
    shutil.copytree(ROOT / "eventlog", folder / "eventlog", ignore=shutil.ignore_patterns("__pycache__"))
    if fault is not None:
        (folder / fault.path).write_text(fault.change(), encoding="utf-8")
    command = [sys.executable, "-m", "tests.publisher", *histories]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=3600)
    shutil.rmtree(folder / "eventlog")
    if run.returncode == 0:
        return ""
    lines = [line for line in run.stderr.splitlines() if line and not line.startswith((" ", "(", "\t"))]
    return next((line for line in lines if line.startswith("AssertionError")), lines[-1] if lines else "?")


def judge_fault(fault: JournalFault, folder: Path, histories: Sequence[str]) -> tuple[bool, str]:
    """Judge a fault: True if the histories find it, and their failure."""
    try:
        said = find_fault(fault, folder, histories)
    except ValueError as error:
        return False, f"NO PLACE FOR IT: {error}"
    if said.startswith(OF_PYTHON):
        return False, f"NO FAULT OF A JOURNAL: {said}"
    return bool(said), said or "NOT FOUND"


def tell(what: str, said: str) -> None:
    sys.stdout.write(f"{what:70} {said[:110]}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults; return how many were not found.

    The histories must find nothing without a fault: otherwise they would find any.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.publisher.finding", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--histories", type=int, default=HISTORIES)
    chosen = parser.parse_args(arguments)
    histories, missed = PROCESSES if chosen.processes else ("0", str(chosen.histories)), 0
    tried = [fault for fault in FAULTS if not chosen.words or any(word in fault.what for word in chosen.words)]
    with tempfile.TemporaryDirectory(prefix="eventlog-faults-") as name:
        folder = Path(name)
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        if said := find_fault(None, folder, histories):
            tell(NO_FAULT, said)
            return 1
        for fault in tried:
            found, said = judge_fault(fault, folder, histories)
            missed += not found
            tell(fault.what, said)
    sys.stdout.write(f"{len(tried)} faults, {missed} not found\n")
    return missed


if __name__ == "__main__":
    sys.exit(bool(main()))
