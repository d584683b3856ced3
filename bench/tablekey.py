"""How many table keys can be parsed in a second."""

from __future__ import annotations

from functools import partial

from bench.measure import Benchmark, Contestant, Target, Timings

PROMISED = 1_000_000


def benchmark(*, quick: bool) -> Benchmark:
    """Simple keys as nearly every log has them, and the two forms that take the longer way."""
    number = 10_000 if quick else 1_000_000
    simple = [f"idu={n}" for n in range(number)]
    compound = [f"idu={n}+idg={n % 100}" for n in range(number // 10)]
    quoted = [f'idu="{n}, \\"{n}\\""' for n in range(number // 10)]
    return Benchmark(
        name="tablekey",
        question="what does it cost to parse a table_key?",
        unit="key",
        contestants=[
            Contestant(name="str.partition", run=partial(_partition, simple), units=number, floor=True),
            Contestant(name="simple: `idu=1`", run=partial(_parse, simple), units=number),
            Contestant(name="compound: `idu=1+idg=2`", run=partial(_parse, compound), units=len(compound)),
            Contestant(name="quoted", run=partial(_parse, quoted), units=len(quoted)),
        ],
        targets=_targets,
    )


def _targets(timings: Timings) -> list[Target]:
    rate = timings["simple: `idu=1`"].rate
    promise = f"{PROMISED:,} simple keys/s on one core"
    return [Target(promise=promise, measured=f"{rate:,.0f} keys/s", reached=rate >= PROMISED)]


def _partition(keys: list[str]) -> None:
    for key in keys:
        key.partition("=")


def _parse(keys: list[str]) -> None:
    from eventlog.core.tablekey import parse

    for key in keys:
        parse(key)
