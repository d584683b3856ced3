"""Is this checkout as quick as another one? Each contestant runs there and here in turn, so that whatever else the
machine does meets both. The other one must have been set up by its own ./dev.

python -m bench.against CHECKOUT NAME [--runs N] [--only WORDS] [--quick] [--cpu]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent
PYTHON = Path(".venv/bin/python")
HEAD = "| contestant | there, ms | here, ms | of the quickest runs | of each two in turn | lowest and highest |"


class Checkout:
    """A benchmark that stands ready in a checkout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._questions: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout
        self.names: list[str] = json.loads(self._answer())

    def seconds(self, contestant: str) -> float:
        self._questions.write(f"{contestant}\n")
        self._questions.flush()
        return float(self._answer())

    def _answer(self) -> str:
        answer = self._answers.readline()
        if not answer:
            raise SystemExit("The benchmark has ended too early; what it said stands above.")
        return answer


@contextmanager
def ready(root: Path, name: str, size: str, clock: str) -> Iterator[Checkout]:
    command = [str(root / PYTHON), str(ROOT / "bench/turns.py"), name, size, clock]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Checkout(process)


def compared(there: Checkout, here: Checkout, contestant: str, runs: int) -> str:
    """A line of the table: ratios above 1 say that this checkout is quicker."""
    for checkout in (there, here):
        checkout.seconds(contestant)
    seconds: dict[Checkout, list[float]] = {there: [], here: []}
    for number in range(runs):
        # Every second time the other way round, so that nobody always comes after the other one.
        for checkout in (there, here) if number % 2 == 0 else (here, there):
            seconds[checkout].append(checkout.seconds(contestant))
    ratios = [before / after for before, after in zip(seconds[there], seconds[here], strict=True)]
    quickest_there, quickest_here = min(seconds[there]), min(seconds[here])
    cells = [
        contestant,
        f"{quickest_there * 1000:.2f}",
        f"{quickest_here * 1000:.2f}",
        f"{quickest_there / quickest_here:.2f}",
        f"**{statistics.median(ratios):.2f}**",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("name")
    parser.add_argument("--runs", type=int, default=7, help="how often each contestant runs (default 7)")
    parser.add_argument("--only", default="", help="contestants that have this in their names")
    parser.add_argument("--quick", action="store_true", help="small data")
    parser.add_argument(
        "--cpu", action="store_true", help="CPU seconds of the benchmark's processes: for a loaded machine"
    )
    arguments = parser.parse_args()
    other = arguments.checkout.resolve()
    if not (other / PYTHON).exists():
        parser.error(f"{other} has no {PYTHON}: run `./dev run true` there once")
    size, clock = "quick" if arguments.quick else "whole", "cpu" if arguments.cpu else "wall"
    with ExitStack() as both:
        there, here = (both.enter_context(ready(root, arguments.name, size, clock)) for root in (other, ROOT))
        print(f"{HEAD}\n| --- | ---: | ---: | ---: | ---: | --- |", flush=True)
        for contestant in here.names:
            if contestant in there.names and arguments.only in contestant:
                print(compared(there, here, contestant, arguments.runs), flush=True)
        for missing in sorted({*there.names} ^ {*here.names}):
            print(f"Only one of them has {missing}.", file=sys.stderr)


if __name__ == "__main__":
    main()
