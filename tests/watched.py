"""Where coverage looks: not at levels that decide nothing about it, and of a property at its first examples.

It makes pure code about three times as slow, which is where a property with a hundred examples lives.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from importlib import import_module
from typing import Any, Final

import pytest

from tests.support.levels import ROOT, level_of

EXAMPLES: Final = 25
"""Calls of a property that coverage looks at."""
NEAR: Final = frozenset({"unit", "web"})
"""Levels that reach each line of the pure modules; the others begin with a server or a whole program."""
READING: Final = frozenset({"project", "docs", "bench"})
"""Folders in them whose tests call no pure module: they read the sources, the pages and figures."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Looks at the pure modules while they are imported, and not at all that tests import besides."""
    coverage = _coverage(session.config)
    if coverage is not None:
        if not session.config.getoption("numprocesses", None):  # which only the process has that starts the others
            for pattern in coverage.cov.get_option("run:include"):
                for path in sorted(ROOT.glob(pattern if pattern.endswith(".py") else f"{pattern}.py")):
                    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        coverage.pause()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Looks only while such a test runs, its fixtures included; starting anew for each test would cost more than the test."""
    coverage = _coverage(item.config)
    if coverage is not None:
        near = level_of(item.path) in NEAR and item.path.parent.name not in READING
        if near and not coverage.started:
            coverage.resume()
        if not near and coverage.started:
            coverage.pause()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Stops looking in the middle of a property, and goes on afterwards."""
    coverage = _coverage(item.config)
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if coverage is None or not coverage.started or handle is None:
        return (yield)
    return (yield from _in_part(handle, coverage))


def _coverage(config: pytest.Config) -> Any:
    """What pytest-cov has made; None where nobody asked it."""
    return getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)


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
