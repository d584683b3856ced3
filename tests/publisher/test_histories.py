"""Random histories of the journal on each database. Who wants more says EVENTLOG_HARDENING=10, or runs the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from tests.hardening.quantity import scaled
from tests.publisher.running import history, made
from tests.support.servers import EMPTY_TEXT

HISTORIES = {"sqlite": 24, "postgresql": 4, "mysql": 4}
GROUPS = 4


@pytest.mark.in_turn
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_history_loses_doubles_or_disorders_anything(engine: Engine, group: int) -> None:
    made(engine)
    seeds = range(group, scaled(HISTORIES[engine.dialect.name]), GROUPS)
    with keeping_noted(engine) as kept:
        rows = sum(history(seed, engine)["rows"] for seed in seeds)
    assert rows >= len(seeds)
    if engine.dialect.name == "sqlite":  # elsewhere lists are bound, and the statement makes NULL of what is empty
        assert kept == [], "Oracle gives an empty text back as NULL"


@pytest.mark.in_turn
def test_no_history_needs_an_empty_text(no_empty_texts: Engine) -> None:
    """Oracle gives an empty text back as NULL, and so does this database."""
    made(no_empty_texts)
    assert sum(history(seed, no_empty_texts)["rows"] for seed in range(scaled(12))) >= 12


def test_an_empty_text_that_is_kept_is_found(sqlite: Engine) -> None:
    made(sqlite)
    mark = {"name": "a", "value": ""}
    with keeping_noted(sqlite) as kept, sqlite.begin() as connection:
        connection.execute(text("INSERT INTO event_log_mark (name, value) VALUES (:name, :value)"), mark)
        connection.execute(text("UPDATE event_log_output SET told = ''"))
        connection.execute(text("UPDATE event_log SET new_value = ''"))  # a row is what its writer says
    assert [what for what, _ in kept] == ["event_log_mark", "event_log_output"]


@contextmanager
def keeping_noted(engine: Engine) -> Iterator[list[tuple[str, str]]]:
    """The statements that would keep an empty text in a table beside the log, with that table, as they come."""
    kept: list[tuple[str, str]] = []

    def noted(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        table = re.match(r"\s*(?:INSERT INTO|UPDATE)\s+(event_log_\w+)", statement)
        if table and (EMPTY_TEXT.search(statement) or "" in _texts(values)):
            kept.append((table[1], statement))

    event.listen(engine, "before_cursor_execute", noted)
    try:
        yield kept
    finally:
        event.remove(engine, "before_cursor_execute", noted)


def _texts(values: Any) -> Iterator[Any]:
    """Every value that is bound, in whatever is bound."""
    if isinstance(values, dict | list | tuple):
        for one in values.values() if isinstance(values, dict) else values:
            yield from _texts(one)
    else:
        yield values
