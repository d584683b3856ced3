"""New examples each day in CI, where else a property has the same ones each time.

`@daily` above all other decorators of a property asks it again after its fixed examples, by the seed of the day. All tests of
a day have the same seed, which the head of the run says, and EVENTLOG_DAY repeats: a failure is there on the next run too.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from hypothesis import seed, settings

Test = TypeVar("Test", bound=Callable[..., Any])

SEED: Final = "EVENTLOG_DAY"


def pytest_configure() -> None:
    """One seed for the run and all its processes, also when the day ends meanwhile."""
    if settings().derandomize:
        os.environ.setdefault(SEED, f"{dt.datetime.now(dt.UTC):%Y%m%d}")


def pytest_report_header() -> str | None:
    """How the examples of the day are repeated."""
    return f"examples of the day: CI=true {SEED}={os.environ[SEED]}" if settings().derandomize else None


def daily(test: Test) -> Test:
    """Asks the property again with the examples of the day, where those of each run are the same."""
    drawn = _drawn(test)

    @wraps(test)
    def asked(*args: Any, **kwargs: Any) -> None:
        test(*args, **kwargs)
        if not settings().derandomize:
            return
        seed(int(os.environ[SEED]))(drawn)
        try:
            test(*args, **kwargs)
        except BaseException as error:
            error.add_note(f"An example of the day: CI=true {SEED}={os.environ[SEED]} asks for it again.")
            raise
        finally:
            seed(None)(drawn)  # as it was: the fixed examples are drawn without one

    return asked  # type: ignore[return-value]  # it is called as the test is


def _drawn(test: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `@given` has made, below other decorators, which only seem to be it."""
    below = getattr(test, "__wrapped__", None)
    return test if below is None or not hasattr(below, "hypothesis") else _drawn(below)
