"""Mutates files, or everything that bench/mutation/areas.py names, and says which faults no test noticed."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.mutation import code, statements
from bench.mutation.areas import Area, chosen
from bench.mutation.report import Found, judged, keep, told
from eventlog.core.errors import UsageError
from tests.publisher import finding

GOAL = 0.95


def main() -> int:
    """Exits with 1 when less than the goal was killed of what was tried."""
    arguments = _arguments()
    if arguments.journal is not None:
        return 1 if finding.main(arguments.journal) else 0
    if arguments.judge:
        keep([])
        return 0
    try:
        areas = chosen(arguments.paths)
    except UsageError as error:
        print(error)
        return error.exit_code
    found = []
    for area, files in areas.items():
        one = _tried(area, files, arguments)
        print(told(one), flush=True)
        found.append(one)
        if arguments.keep:
            keep([one])
    return 1 if any(one.share < GOAL for one in found) else 0


def _tried(area: Area, files: list[str], arguments: argparse.Namespace) -> Found:
    with tempfile.TemporaryDirectory(prefix="eventlog-mutants-") as folder:
        if area.is_sql:
            mutants, tried = statements.mutants_of(area, files, arguments.sample)
        else:
            mutants, tried = code.mutants_of(area, files, arguments.sample, Path(folder), arguments.jobs)
    return judged(area.name, mutants, tried)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders; all without a name")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="N mutants of an area at even distances; 0: all"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="mutants at the same time (2)")
    parser.add_argument("--keep", action="store_true", help="keep the figures: bench/results, bench/mutation/README.md")
    parser.add_argument(
        "--journal",
        nargs="*",
        metavar="WORD",
        help="instead: the faults of tests/publisher/faults.py whose names have one of these words, or all; random"
        " histories must find each",
    )
    parser.add_argument("--judge", action="store_true", help="only judge the kept survivors anew, by equivalent.toml")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
