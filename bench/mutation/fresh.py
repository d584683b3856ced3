"""A plugin for pytest: a process that judges a mutant remembers nothing that was computed without it.

Mutants are judged in processes that were forked from one in which all tests had run, so that what `functools.cache` and
`lru_cache` keep was made by the code as it is: a mutant behind them would never be asked.
"""

from __future__ import annotations

import sys
from contextlib import suppress


def pytest_sessionstart() -> None:
    """Forgets what functions of ours have computed."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("eventlog", "tests"):
            for value in list(vars(module).values()):
                _forget(value)
                if isinstance(value, type):
                    for method in list(vars(value).values()):
                        _forget(method)


def _forget(value: object) -> None:
    with suppress(AttributeError, TypeError):
        value.cache_clear()  # type: ignore[attr-defined]  # whatever has it
