"""The full run of the hardening tests: `python -m tests.hardening [PART|all] [--kills N] [--minutes N] …`.

Fuzzing and the model get as many times CI's examples as they are told minutes; the soak lasts `--minutes` and keeps its figures.
Sample schemas are worked on with as many seeds as minutes, from `--seed` on. The ledger makes `--handovers` of all kinds, and kills besides;
with `--outputs faulty` each of three outputs
is away now and then. `mutants` are publishers with a fault that it has to find.
"""

from __future__ import annotations

import argparse
import os
import sys

import pytest

QUIET = ("-q", "-p", "no:cacheprovider")
MUTANTS = 20
"""Publishers with a fault that the ledger has to find, of each kind."""

GROUPS = ("local", "http", "kafka", "mixed", "faulty", "faulty-kafka", "campaign")
"""Of outputs, as covering.py has them; pytest must be the first to import that."""

PARTS = {
    "model": ("test_model.py",),
    "fuzz": ("test_fuzz.py",),
    "faults": ("test_network.py", "test_network_sinks.py", "test_disk.py", "test_threads.py"),
    "ledger": ("ledger/test_ledger.py::test_nothing_is_lost_whatever_comes_after_what",),
    "mutants": ("ledger/test_ledger_checking.py",),
    "attack": ("registry/test_random_attacker.py",),
    "schemas": ("schemas/test_schemas.py",),
    "soak": ("test_soak.py",),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the parts that are named, with as much of each as is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening", description=__doc__)
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--handovers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outputs", default="", choices=GROUPS, help="of the ledger: this group alone, all without")
    parser.add_argument("--minutes", type=float, default=30.0)
    chosen = parser.parse_args(arguments)
    amounts = {"soak": 1, "mutants": MUTANTS}
    os.environ["EVENTLOG_LEDGER"] = f"{chosen.seed} {chosen.handovers} {chosen.kills} {chosen.outputs}"
    os.environ["EVENTLOG_SCHEMAS"] = f"{chosen.seed} {max(2, round(chosen.minutes))}"
    worst = 0
    for part in PARTS if chosen.part == "all" else [chosen.part]:
        os.environ["EVENTLOG_HARDENING"] = str(amounts.get(part, max(1, round(chosen.minutes))))
        if part == "soak":
            os.environ["EVENTLOG_SOAK"] = str(chosen.minutes * 60)
        worst = max(worst, int(pytest.main([*QUIET, *[f"tests/hardening/{file}" for file in PARTS[part]]])))
    return worst


if __name__ == "__main__":
    sys.exit(main())
