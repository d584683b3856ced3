"""Where coverage looks: not at levels that decide nothing about it, and of a property at its first examples.

It makes pure code about three times as slow, which is where a property with a hundred examples lives.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, Final

import pytest

from tests.support.levels import level_of

EXAMPLES: Final = 25
"""Calls of a property that coverage looks at."""
NEAR: Final = frozenset({"unit", "web"})
"""Levels that reach each line of the pure modules; the others begin with a server or a whole program."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Stops looking before such a test, or in the middle of a property, and goes on afterwards."""
    coverage = getattr(item.config.pluginmanager.getplugin("_cov"), "cov_controller", None)
    if coverage is None:
        return (yield)
    if level_of(item.path) not in NEAR:
        coverage.pause()
        try:
            return (yield)
        finally:
            coverage.resume()
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is None:
        return (yield)
    return (yield from _in_part(handle, coverage))


def _in_part(handle: Any, coverage: Any) -> Generator[None, Any, Any]:
    """Runs a property, whose test function Hypothesis finds in this handle."""
    whole = handle.inner_test
    handle.inner_test = limited(whole, coverage.pause)
    try:
        return (yield)
    finally:
        handle.inner_test = whole
        if not coverage.started:
            coverage.resume()


def limited(function: Callable[..., Any], stop: Callable[[], None]) -> Callable[..., Any]:
    """The function, which calls `stop` once when it has been called as often as coverage looks."""
    calls = 0

    @wraps(function)
    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == EXAMPLES + 1:
            stop()
        return function(*arguments, **named)

    return counted
