"""Fails a test in CI that goes on for much longer than any does on the slowest machine, and names it.

A test once waited for an hour, and passed: it was most of what CI took, and nobody saw it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import Final

import pytest

LONGEST_SECONDS: Final = 900
"""Of a test: the longest takes two minutes on a usual machine, and the slowest machine takes five times as long."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Give up a test after so many seconds, where nobody has asked for what takes longer."""
    config = item.config
    asks_more = config.getoption("--long") or config.getoption("--containers") or "EVENTLOG_HARDENING" in os.environ
    if "CI" not in os.environ or asks_more:
        return (yield)
    return (yield from limited())


def limited(seconds: int = LONGEST_SECONDS) -> Generator[None, object, object]:
    """Fail what runs meanwhile when the time is over."""

    def give_up(_number: int, _frame: object) -> None:
        pytest.fail(f"the test has not ended after {seconds} s")

    former = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
