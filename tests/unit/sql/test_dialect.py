"""What a dialect is asked about texts: triggers as a catalog tells them, words and types that SQLAlchemy does not know."""

from __future__ import annotations

import pytest

from eventlog.core.errors import ConfigError
from eventlog.core.schema import Column
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.mysql.types import mysql_value
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.sql.dialect import dialect_of, dialects, drivers, offers, statement
from tests.support.plugins import Site, site

__all__ = ["site"]


@pytest.mark.parametrize(
    "name, quoted", [("library", "`library`"), ("External", "`External`"), ("rank", "`rank`"), ("usr", "usr")]
)
def test_words_that_newer_servers_reserve_are_quoted(name: str, quoted: str) -> None:
    assert MYSQL.quote(name) == quoted


def test_words_of_the_language_of_triggers_are_upper_case_where_names_are() -> None:
    assert (ORACLE.quote("type"), ORACLE.quote("Type")) == ('"TYPE"', '"Type"')


def test_a_vector_is_read_as_base64() -> None:
    assert (
        mysql_value("t.v", Column(name="v", type="VECTOR(3)")) == "REPLACE(TO_BASE64(t.v), CHAR(10 USING utf8mb4), '')"
    )
    assert mysql_value("t.v", Column(name="v", type="VARBINARY(3)")) == "t.v"


LITE = """
    from msgspec.structs import replace

    from eventlog.databases.sqlite.dialect import SQLITE

    LITE = replace(SQLITE, name="litedb")
"""


def test_a_package_can_bring_a_database(site: Site) -> None:
    site.install("eventlog-lite", {"databases": {"litedb": "eventlog_lite:LITE", "odd": "eventlog_odd:ODD"}}, LITE)
    lite = dialect_of("litedb:///app.db")
    assert (lite.name, lite in dialects(), "litedb" in drivers().values()) == ("litedb", True, False)
    # What none of ours has is no query of its own, and what it lacks of ours has no text.
    assert (statement(lite, "listen", channel="x"), offers(lite, "whole_row")) == ("", offers(SQLITE, "whole_row"))
    with pytest.raises(ConfigError, match=r"The database odd of the package eventlog-lite 1\.0 cannot be loaded"):
        dialect_of("odd://")
