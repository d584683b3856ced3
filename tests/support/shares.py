"""How many examples of a property take part: a property of examples that are all refused, or all empty, holds of nothing.

`@shares(rows=0.5)` above `@given` asks that at least half of the examples meet what the test calls `rows`; the test says
of each example with `met(rows=…)` whether it does. `--hypothesis-show-statistics` shows the shares.

Examples of one run resemble each other, so a run may miss a share that is there: only a property that misses it in several
runs, counted together, has failed. Where a run's examples are always the same, each of these has a seed of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, TypeVar

from hypothesis import event, seed, settings

Test = TypeVar("Test", bound=Callable[..., Any])

FEW: Final = 40
"""Of fewer examples, as a quick run or the repetition of a failure has them, nothing can be said."""
RUNS: Final = 20
"""How often a property that misses a share is asked, all its examples together: so often that chance has no say any more."""

_met: ContextVar[Counter[str] | None] = ContextVar("met", default=None)
_ALL: Final = ""


def shares(**least: float) -> Callable[[Test], Test]:
    """Asks for the least share of examples that meet each of these."""

    def asking(test: Test) -> Test:
        @wraps(test)
        def counted(*args: Any, **kwargs: Any) -> Any:
            found: Counter[str] = Counter()
            before = _met.set(found)
            try:
                for run in range(RUNS):
                    if run and settings().derandomize:
                        seed(run)(test)
                    result = test(*args, **kwargs)
                    missed = _missed(least, found)
                    if not missed:
                        return result
            finally:
                _met.reset(before)
            raise AssertionError(missed)

        return counted  # type: ignore[return-value]  # it is called as the test is

    return asking


def met(**aspects: object) -> None:
    """Says of the example that is being tried which of these it meets."""
    found = _met.get()
    assert found is not None, "no @shares stands above this test"
    found[_ALL] += 1
    for name, whether in aspects.items():
        found[name] += bool(whether)
        event(name if whether else f"not {name}")


def _missed(least: dict[str, float], found: Counter[str]) -> str:
    """Name the first missing share; empty if none, or if there are too few examples."""
    examples = found[_ALL]
    if examples < FEW:
        return ""
    for name, share in least.items():
        if found[name] < share * examples:
            return f"{name}: {found[name]} of {examples} examples, less than {share:.0%}"
    return ""
