"""Runs the contestants of a benchmark one at a time, whenever it is told to: for bench/against.py, in any checkout.

Reads a contestant's name from each line, and answers with the seconds that it took, or its processes with `cpu`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    # The packages of the checkout in which it was begun, not of the one that this file is in.
    sys.path[0] = str(Path.cwd())
    name, size, clock = sys.argv[1:]
    # Who prints something while it runs prints no answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contestants = import_module(f"bench.{name}").benchmark(quick=size == "quick").contestants
    by_name = {one.name: one for one in contestants if not getattr(one, "once", False)}
    print(json.dumps([*by_name]), file=answers, flush=True)
    for line in sys.stdin:
        took = (_cpu_seconds if clock == "cpu" else _seconds)(by_name[line.rstrip("\n")])
        print(took, file=answers, flush=True)


def _seconds(contestant: Any) -> float:
    contestant.prepare()
    gc.collect()
    began = time.perf_counter()
    own = contestant.run()
    seconds = time.perf_counter() - began
    contestant.done()
    return own if isinstance(own, float) else seconds


def _cpu_seconds(contestant: Any) -> float:
    from bench.cputime import TreeTime

    contestant.prepare()
    gc.collect()
    spent = TreeTime()
    contestant.run()
    seconds = spent.stop()
    contestant.done()
    return seconds


if __name__ == "__main__":
    main()
