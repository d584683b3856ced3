"""`eventlog uninstall --sql`: without a database it prints what there must have been, with one what there is; it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.core.errors import EX_CONFIG
from eventlog.sql.connect import names_a_place
from tests.acceptance.command import eventlog, ok


@pytest.mark.parametrize("url", ["sqlite://", "postgresql://", "oracle://", "mysql://", "mariadb://"])
def test_a_dialect_alone_is_enough(url: str) -> None:
    assert not names_a_place(url)
    printed = ok("uninstall", "--sql", "--database", url)
    assert "DROP TABLE event_log_outcome" in printed
    assert "Take the triggers off first" in printed


@pytest.mark.parametrize(
    "url", ["sqlite:///app.db", "postgresql+psycopg://db/app", "postgresql:///app", "oracle://scott@/", "mysql://?a=b"]
)
def test_a_url_that_says_where_is_looked_at(url: str) -> None:
    assert names_a_place(url)


def test_a_database_is_looked_at_and_left_as_it_is(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'app.db'}"
    refused = eventlog("uninstall", "--sql", "--database", place)
    assert refused.returncode == EX_CONFIG
    ok("install", "--database", place)
    printed = ok("uninstall", "--sql", "--database", place)
    assert ok("uninstall", "--sql", "--database", place) == printed
    assert "DROP TABLE event_log;" in printed
    assert "triggers" not in printed
