"""The full run of the hardening tests: `python -m tests.hardening [PART|all] [--kills N] [--minutes N] [--seed N]`.

Fuzzing and the model get as many times CI's examples as they are told minutes; the soak lasts `--minutes` and keeps its
figures. Sample schemas are worked on with as many seeds as minutes, from `--seed` on. The ledger makes `--kills`, and as
many handovers of all kinds.
"""

from __future__ import annotations

import argparse
import os
import sys

import pytest

QUIET = ("-q", "-p", "no:cacheprovider")
PARTS = {
    "model": ("test_model.py",),
    "fuzz": ("test_fuzz.py",),
    "faults": ("test_disk.py", "test_threads.py"),
    "ledger": ("ledger/test_ledger.py::test_nothing_is_lost_whatever_comes_after_what",),
    "schemas": ("schemas/test_schemas.py",),
    "soak": ("test_soak.py",),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the parts that are named, with as much of each as is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening", description=__doc__)
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0)
    chosen = parser.parse_args(arguments)
    os.environ["EVENTLOG_LEDGER"] = f"{chosen.seed} {chosen.kills}"
    os.environ["EVENTLOG_SCHEMAS"] = f"{chosen.seed} {max(2, round(chosen.minutes))}"
    os.environ["EVENTLOG_HARDENING"] = str(max(1, round(chosen.minutes)))
    worst = 0
    for part in PARTS if chosen.part == "all" else [chosen.part]:
        if part == "soak":
            os.environ["EVENTLOG_SOAK"] = str(chosen.minutes * 60)
        worst = max(worst, int(pytest.main([*QUIET, *[f"tests/hardening/{file}" for file in PARTS[part]]])))
    return worst


if __name__ == "__main__":
    sys.exit(main())
