"""Puts faults into the journal, and says whether random histories find them: python -m tests.publisher.finding [WORDS]"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.publisher.fault import JOURNAL, ROOT, JournalFault
from tests.publisher.faults import FAULTS, is_current

HISTORIES = 500
NO_FAULT = JournalFault("no fault at all", JOURNAL, "", "")
OF_PYTHON = ("AttributeError", "ImportError", "IndexError", "NameError", "SyntaxError", "TypeError")
"""What a fault ends with that is no journal's: it would be found by anybody."""


def found_by(fault: JournalFault, folder: Path) -> str:
    """Run the histories against the package with this fault, and return their failure; empty if they find nothing."""
    shutil.rmtree(folder / "eventlog", ignore_errors=True)
    shutil.copytree(ROOT / "eventlog", folder / "eventlog", ignore=shutil.ignore_patterns("__pycache__"))
    if fault.right:
        path = folder / fault.path
        path.write_text(path.read_text(encoding="utf-8").replace(fault.right, fault.wrong), encoding="utf-8")
    argv = ["", "0", str(HISTORIES)]
    script = (
        f"import runpy, sys; sys.path[:0] = {[str(folder), str(ROOT)]!r}; sys.argv = {argv!r};"
        " runpy.run_module('tests.publisher', run_name='__main__')"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=3600)
    if run.returncode == 0:
        return ""
    lines = [line for line in run.stderr.splitlines() if line and not line.startswith((" ", "(", "\t"))]
    return next((line for line in lines if line.startswith("AssertionError")), lines[-1] if lines else "?")


def judged(fault: JournalFault, folder: Path) -> tuple[bool, str]:
    """Judge a fault: True if the histories find it, and their failure."""
    if not is_current(fault):
        return False, "THE TEXT DOES NOT STAND THERE ONCE"
    said = found_by(fault, folder)
    if said.startswith(OF_PYTHON):
        return False, f"NO FAULT OF A JOURNAL: {said}"
    return bool(said), said or "NOT FOUND"


def tell(what: str, said: str) -> None:
    sys.stdout.write(f"{what:70} {said[:110]}\n")
    sys.stdout.flush()


def main(words: Sequence[str]) -> int:
    """Try the faults with one of these words in their names, or all; return how many were not found.

    The histories must find nothing without a fault: otherwise they would find any.
    """
    missed = 0
    tried = [fault for fault in FAULTS if not words or any(word in fault.what for word in words)]
    with tempfile.TemporaryDirectory(prefix="eventlog-faults-") as folder:
        if said := found_by(NO_FAULT, Path(folder)):
            tell(NO_FAULT.what, said)
            return 1
        for fault in tried:
            found, said = judged(fault, Path(folder))
            missed += not found
            tell(fault.what, said)
    sys.stdout.write(f"{len(tried)} faults, {missed} not found\n")
    return missed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
