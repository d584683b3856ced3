"""Rules are kept as long as the tables look as they did: a row's page reads them once, and sees each change at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import OperationalError

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, SourceConfig
from eventlog.sql.names import LogNames
from eventlog.web import kept_rules
from eventlog.web.kept_rules import KeptRules
from tests.integration.publishing import url_of
from tests.support.logged import run


def columns(rules: KeptRules, table: str = "usr") -> set[str]:
    """The columns that a table has by these rules."""
    catalog = rules.read().catalog
    assert catalog is not None
    return {column.name for one in catalog for column in one.columns if one.name == table}


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


@pytest.fixture
def rules(engine: Engine) -> KeptRules:
    """The rules of a log with a tracked table."""
    install(engine)
    run(engine, "CREATE TABLE usr (idu integer PRIMARY KEY, fname varchar(20))")
    track(engine, ["usr"])
    return KeptRules(engine, LogNames(), Config(source=SourceConfig(url=url_of(engine))))


def test_tables_that_have_not_changed_are_read_once(engine: Engine, rules: KeptRules) -> None:
    with counted(engine) as first:
        made = rules.read()
    with counted(engine) as second:
        assert rules.read() is made
    assert len(second) * 3 < len(first)


def test_a_change_of_a_table_is_seen_at_once(engine: Engine, rules: KeptRules) -> None:
    assert columns(rules) == {"idu", "fname"}
    run(engine, "ALTER TABLE usr ADD COLUMN lname varchar(20)")
    assert columns(rules) == {"idu", "fname", "lname"}
    run(engine, "CREATE TABLE grp (idg integer PRIMARY KEY)")
    track(engine, ["grp"])
    assert columns(rules, "grp") == {"idg"}


def test_what_no_stamp_tells_is_seen_after_a_while(
    engine: Engine, rules: KeptRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rules.read()
    monkeypatch.setattr(kept_rules, "KEPT_SECONDS", 0.0)
    assert rules.read() is not made


def test_without_the_right_to_ask_for_stamps_nothing_is_kept(
    engine: Engine, rules: KeptRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("permission denied"))

    monkeypatch.setattr(kept_rules, "read_stamp", refuse)
    assert rules.read() is not rules.read()


def test_the_tables_of_a_log_are_described_to_nobody(engine: Engine, rules: KeptRules) -> None:
    with counted(engine) as sent:
        rules.read()
    assert not [statement for statement in sent if "collisdeterministic" in statement], "asked of keys that are texts"
    catalog = rules.read().catalog
    assert catalog is not None
    assert [table.name for table in catalog] == ["usr"]
