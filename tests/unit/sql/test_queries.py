"""Named queries: how files are read, how holes are filled, and that every database has the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventlog.sql
from eventlog.core.errors import EventlogError
from eventlog.sql.dialect import MYSQL, ORACLE, POSTGRESQL, SQLITE
from eventlog.sql.names import LogNames
from eventlog.sql.queries import filled, log_holes, split, statement, texts

FOLDERS = [folder.name for folder in Path(eventlog.sql.__file__).parent.iterdir() if list(folder.glob("*.sql"))]


def test_there_are_databases_to_compare() -> None:
    assert {"sqlite", "postgresql"} <= set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_database_defines_the_same_queries(folder: str) -> None:
    assert sorted(texts(folder)) == sorted(texts("sqlite"))


def test_a_file_is_split_at_its_headers_and_loses_its_comment_lines() -> None:
    file = "-- The file's own words.\n-- one: the first\n-- because\nSELECT 1;\n\n-- two: the second\nSELECT 2\n"
    assert list(split(file)) == [("one", "SELECT 1"), ("two", "SELECT 2")]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("FROM /* log */event_log WHERE", "FROM <log> WHERE"),
        ("FROM /* log */indirect.event_log WHERE", "FROM <log> WHERE"),
        ("SELECT /* log */'it''s', 1", "SELECT <log>, 1"),
        ('SELECT /* log */"a ""b""" , 1', "SELECT <log> , 1"),
        ("WHERE /* log */(a = (1 + 2)) AND b", "WHERE <log> AND b"),
        ("/* log */", "<log>"),
        ("/* two words */ x", "/* two words */ x"),
    ],
)
def test_a_hole_is_replaced_with_its_sample(text: str, expected: str) -> None:
    assert filled(text, {"log": "<log>"}, origin="test") == expected


def test_a_value_that_looks_like_a_hole_stays_as_it_is() -> None:
    assert filled("/* log */x", {"log": "/* log */"}, origin="test") == "/* log */"


def test_a_left_over_hole_is_an_error() -> None:
    with pytest.raises(EventlogError, match="sqlite/mark has the hole log"):
        filled("UPDATE /* log */event_log", {}, origin="sqlite/mark")


def test_an_unknown_query_is_an_error() -> None:
    with pytest.raises(EventlogError, match="no query nonsense"):
        statement(SQLITE, "nonsense")


def test_the_holes_of_the_log_are_quoted_where_the_database_needs_it() -> None:
    columns = ("id", "status", "type", "time", "who", "table", "key", "Column", "old", "new")
    holes = log_holes(POSTGRESQL, LogNames(table="log", schema="Own", columns=columns))
    assert (holes["log"], holes["marks"]) == ('"Own".log', '"Own".log_mark')
    assert (holes["table_name"], holes["column_name"], holes["record_id"]) == ('"table"', '"Column"', "id")


def test_a_string_keeps_its_backslashes_whatever_the_session_thinks_of_them() -> None:
    text = "it's \\"
    written = [dialect.literal(text) for dialect in (SQLITE, ORACLE, POSTGRESQL, MYSQL)]
    assert written == ["'it''s \\'", "'it''s \\'", "E'it''s \\\\'", "CONVERT(X'69742773205c' USING utf8mb4)"]


def test_long_names_are_shortened_to_what_the_database_takes_and_stay_different() -> None:
    names = {POSTGRESQL.shortened("ä" * 60 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(name.encode()) <= POSTGRESQL.identifier_bytes for name in names)
    assert POSTGRESQL.shortened("usr") == "usr"
