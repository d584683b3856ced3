"""Engines of tests know what others have compiled, and nothing else of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, literal_column, select
from sqlalchemy.engine.interfaces import CacheStats
from sqlalchemy.sql import quoted_name

from tests.support.compiled import engine_on


def asked(engine: Engine, name: str) -> Any:
    """Whether the statement was known."""
    with engine.connect() as connection:
        return connection.execute(select(literal_column("1").label(name))).context.cache_hit


def test_what_one_engine_has_compiled_another_knows() -> None:
    name = quoted_name("known", quote=True)
    first, second, other = (engine_on("sqlite://") for _ in range(3))
    assert asked(first, name) is CacheStats.CACHE_MISS
    assert asked(second, name) is CacheStats.CACHE_HIT
    with other.connect():
        preparer = other.dialect.identifier_preparer
        preparer.initial_quote = preparer.final_quote = "`"
    assert asked(other, name) is CacheStats.CACHE_MISS
    for engine in (first, second, other):
        engine.dispose()
