"""Random histories by their seeds: python -m tests.publisher [--processes] FROM TO [URL].

Those of the publisher, whose others are models, on the database of this URL; with --processes those of processes that
are killed, frozen and asked for things, on SQLite.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.hardening.ledger.seeds import run_processes
from tests.publisher.running import history, opened


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.publisher", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--processes", action="store_true")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.end)
    with TemporaryDirectory(prefix="eventlog-histories-") as folder:
        if chosen.processes:
            for said in run_processes(seeds, Path(folder)):
                sys.stdout.write(f"{said}\n")
            return
        total, began = Counter[str](), perf_counter()
        engine = opened(chosen.url or f"sqlite:///{folder}/log.db")
        for seed in seeds:
            total.update(history(seed, engine))
            total["histories"] += 1
        sys.stdout.write(f"{dict(total)} {perf_counter() - began:.1f} s\n")
        engine.dispose()


if __name__ == "__main__":
    main()
