"""Named queries: how files are read, how holes are filled, and which of them each database has."""

from __future__ import annotations

import pytest

from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.sql.dialect import Dialect, log_holes, offers, statement, texts
from eventlog.sql.names import LogNames

DATABASES = (POSTGRESQL, ORACLE, MYSQL, SQLITE)
ALONE = {
    "postgresql": {"declared_types", "journal_note", "log_row", "text_of_number"},
    "oracle": {"image_length", "image_within", "session_limits", "whole_row", "whole_row_key", "whole_row_part"},
    "mysql": {"instead_of_triggers"},
    "sqlite": {"given_rights", "held_rights", "installer_on_schema", "installer_on_table", "log_owner"}
    | {"lock_grasp", "numbers", "server_states", "session", "text_of_date", "text_of_state", "text_of_zoned"},
}
"""What one database does without and all others have."""


@pytest.mark.parametrize("dialect", DATABASES, ids=lambda dialect: dialect.name)
def test_a_database_has_what_all_others_have(dialect: Dialect) -> None:
    others = frozenset.intersection(*(frozenset(texts(other)) for other in DATABASES if other is not dialect))
    assert others - texts(dialect).keys() == ALONE[dialect.name]


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
    names = {POSTGRESQL.shorten_name("ä" * 60 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(name.encode()) <= POSTGRESQL.identifier_bytes for name in names)
    assert POSTGRESQL.shorten_name("usr") == "usr"
