"""Named queries: how files are read, how holes are filled, and which of them each database has."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventlog.sql
from eventlog.sql.dialect import COMMON, filled, log_holes, offers, split, statement, texts
from eventlog.sql.mysql.dialect import MYSQL
from eventlog.sql.names import LogNames
from eventlog.sql.oracle.dialect import ORACLE
from eventlog.sql.postgresql.dialect import POSTGRESQL
from eventlog.sql.sqlite.dialect import SQLITE

SQL = Path(eventlog.sql.__file__).parent
FOLDERS = [folder.name for folder in SQL.iterdir() if list(folder.glob("*.sql")) and folder.name != COMMON]
ALONE = {
    "postgresql": {"declared_types", "log_row", "log_together"},
    "oracle": {"session_limits", "whole_row", "whole_row_key", "whole_row_part"},
    "mysql": set[str](),
    "sqlite": {"given_rights", "held_rights", "installer_on_schema", "installer_on_table"}
    | {"lock_grasp", "numbers", "server_states", "session"},
}
"""What one database does without and all others have."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_database_has_what_all_others_have(folder: str) -> None:
    others = frozenset.intersection(*(frozenset(texts(other)) for other in FOLDERS if other != folder))
    assert others - texts(folder).keys() == ALONE[folder]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_query_stands_in_a_folder_as_it_stands_in_common(folder: str) -> None:
    shared, own = texts_of(COMMON), texts_of(folder)
    assert [name for name in own if shared.get(name) == own[name]] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_query_of_several_databases_stands_in_common(folder: str) -> None:
    """Unless one of them does without it: that one would have it then."""
    own, shared = texts_of(folder), texts_of(COMMON)
    everywhere = frozenset.intersection(*(frozenset(texts(other)) for other in FOLDERS))
    alike = {
        name for other in FOLDERS if other != folder for name, text in texts_of(other).items() if own.get(name) == text
    }
    assert alike & everywhere - shared.keys() == set()


def texts_of(folder: str) -> dict[str, str]:
    """What stands in a folder, with holes that have lost their samples."""
    found = (one for file in sorted((SQL / folder).glob("*.sql")) for one in split(file.read_text(encoding="utf-8")))
    return {name: filled(text, Marked(), origin=name) for name, text in found}


class Marked(dict[str, str]):
    """Fills each hole with its name."""

    def __missing__(self, hole: str) -> str:
        return f"<{hole}>"


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


def test_a_query_that_a_database_does_without_has_no_text() -> None:
    assert (offers(SQLITE, "listen"), statement(SQLITE, "listen", channel="event_log")) == (False, "")
    assert (offers(POSTGRESQL, "listen"), statement(POSTGRESQL, "listen", channel="x")) == (True, "LISTEN x")


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
