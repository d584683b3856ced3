"""Runs the benchmarks that are named, or all of them, and prints what they found as Markdown; keeps what pages quote."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from bench import readme
from bench.machine import Machine, this_machine
from bench.measure import QUICK_RUNS, RUNS, Benchmark, measure
from bench.names import NAMES, chosen
from bench.peers.fetched import fetch
from bench.plots import draw_result
from bench.report import Report, markdown, report, save


def main() -> int:
    """Exits with 1 when a target was not reached; --quick only tries whether the benchmarks run."""
    arguments = _arguments()
    if arguments.fetch:
        return fetch()
    machine = this_machine()
    missed = False
    for name in chosen(arguments.names):
        benchmark = load(name, quick=arguments.quick)
        found = _run(benchmark, QUICK_RUNS if arguments.quick else arguments.runs, machine)
        print(markdown(found), end="\n\n", flush=True)
        if not arguments.quick:
            if name in readme.QUOTED:
                draw_result(found, save(found).with_suffix(".svg"))
                readme.write()
            missed |= not all(target.reached for target in found.targets)
    return 1 if missed else 0


def load(name: str, *, quick: bool) -> Benchmark:
    """The benchmark of that name; its module makes the data only now."""
    made = import_module(f"bench.{name}").benchmark(quick=quick)
    assert isinstance(made, Benchmark)
    return made


def _run(benchmark: Benchmark, runs: int, machine: Machine) -> Report:
    return report(benchmark, measure(benchmark.contestants, runs), machine)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of {', '.join(NAMES)}, or what stands before a point; all without a name",
    )
    parser.add_argument("--quick", action="store_true", help="small data, one run, no result kept: does it run at all?")
    parser.add_argument("--fetch", action="store_true", help="get the peers that are packages (200 MB) into a cache")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often each contestant runs (default {RUNS})")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if not chosen([name])]
    if unknown:
        parser.error(f"there is no benchmark {min(unknown)}; there are {', '.join(NAMES)}")
    if arguments.runs < RUNS and not arguments.quick:
        parser.error(f"a figure takes {RUNS} runs or more; to try things out there is --quick")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
