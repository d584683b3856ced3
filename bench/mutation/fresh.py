"""A plugin for pytest: no test remembers what `functools.cache` or `lru_cache` kept for another one.

Mutants are judged in processes that were forked from one in which all tests had run, so that what was kept was made by the
code as it is: a mutant behind it would never be asked. And a mutant is judged by the tests that came to its function: of
several that need what is kept, only the first one came.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

OURS = frozenset({"eventlog", "tests"})
_keeping: dict[int, list[Callable[[], None]]] = {}
"""What makes functions forget, by how many modules there were when it was looked for."""


def pytest_runtest_setup() -> None:
    """Forgets what functions of ours have computed."""
    modules = len(sys.modules)
    if modules not in _keeping:
        _keeping[modules] = list(_found())
    for forget in _keeping[modules]:
        forget()


def _found() -> Iterator[Callable[[], None]]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS:
            for value in list(vars(module).values()):
                yield from _of(value)
                if isinstance(value, type):
                    for method in list(vars(value).values()):
                        yield from _of(method)


def _of(value: Any) -> Iterator[Callable[[], None]]:
    forget = getattr(type(value), "cache_clear", None)
    if forget is not None:
        yield value.cache_clear
