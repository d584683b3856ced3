"""The plug-in for users' tests: what it publishes, on each database and in each format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.core.errors import UsageError
from eventlog.testing import Capture, eventlog_capture

__all__ = ["eventlog_capture"]


@pytest.fixture
def eventlog_database(engine: Engine) -> Engine:
    """Each database in turn, as somebody overrides it."""
    run(engine, "CREATE TABLE usr (id INTEGER NOT NULL PRIMARY KEY, lname VARCHAR(64))")
    return engine


def run(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def test_what_changed_since_the_last_look_is_published(
    eventlog_database: Engine, eventlog_capture: Callable[..., Capture]
) -> None:
    capture = eventlog_capture("usr")
    assert capture.published() == []
    run(eventlog_database, "INSERT INTO usr VALUES (1, 'Frost')")
    [document] = capture.published()
    assert "Frost" in document
    run(eventlog_database, "UPDATE usr SET lname = 'Thaw' WHERE id = 1")
    run(eventlog_database, "DELETE FROM usr WHERE id = 1")
    documents = capture.published()
    assert "<delete" in documents[-1]
    assert capture.published() == []


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_output_may_have_another_format(
    eventlog_database: Engine, eventlog_capture: Callable[..., Capture]
) -> None:
    capture = eventlog_capture("usr", events="image", format="messages")
    run(eventlog_database, "INSERT INTO usr VALUES (1, 'Frost')")
    messages = [json.loads(line) for file in capture.published() for line in file.splitlines()]
    assert [message["value"]["data"]["lname"] for message in messages if "data" in message["value"]] == ["Frost"]


def test_a_database_that_only_one_connection_sees_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="connections of its own"):
        Capture(create_engine("sqlite://"), tmp_path, "usr")
