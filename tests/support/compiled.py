"""Engines of tests share what SQLAlchemy has compiled, which each engine would compile anew: a third of what a test costs."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.util import LRUCache

KEPT: Final = 3000
"""Statements; more than the tests of one process use often."""


class _Compiled(LRUCache[Any, Any]):
    """Compiled statements of all engines whose dialects write alike; SQLAlchemy's keys begin with the dialect itself."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_alike(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_alike(key), value)


def _alike(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect, *statement = key
    version, quote = dialect.server_version_info, dialect.identifier_preparer.initial_quote
    return (type(dialect), version, getattr(dialect, "is_mariadb", False), quote, *statement)


_compiled = _Compiled(KEPT)


def engine_on(url: str | URL, **options: Any) -> Engine:
    """Make an engine sharing compiled statements with others."""
    engine = create_engine(url, **options)
    engine.update_execution_options(compiled_cache=_compiled)
    return engine
