"""What classes were tracked with, without a database: names of marks, what is believed of two witnesses, words for people."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eventlog.capture import Style, TrackRequest, TriggerOptions
from eventlog.capture.asked import (
    NAME_BYTES,
    PREFIX,
    AskedClass,
    believed,
    exactly,
    forgetting,
    keeping,
    words,
)
from eventlog.capture.given_rights import taking_back
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.sql.names import LogNames

ASKED = TriggerOptions(style=Style.FIELD, exclude=("salary",))


def name_in(statement: str) -> str:
    return statement.partition("name = '")[2].partition("'")[0]


def test_a_long_name_is_shortened_and_stays_its_own() -> None:
    names = [name_in(forgetting(POSTGRESQL, LogNames(), f"{'ä' * 130}.{table}")) for table in ("usr", "grp", "usr")]
    assert names[0] == names[2] != names[1]
    assert all(name.startswith(PREFIX) and len(name.encode()) <= NAME_BYTES for name in names)
    assert name_in(forgetting(POSTGRESQL, LogNames(), "app.usr")) == "asked: app.usr"


def test_the_options_are_written_as_constants() -> None:
    asked = replace(ASKED, when="fname = 'it''s :name'")
    for dialect in (POSTGRESQL, ORACLE):
        text = keeping(dialect, LogNames(), AskedClass(table="app.usr", options=asked))
        assert "'asked: app.usr'" in text
        assert "it''''s :name" in text


def test_options_are_said_as_people_type_them() -> None:
    asked = replace(
        ASKED, columns=("a",), children=("c", "d"), key=("k", "l"), when="a > 'x y'", rows=True, always=True
    )
    assert words(asked) == (
        "--events field --columns a --exclude salary --child c,d --key k,l --when 'a > '\"'\"'x y'\"'\"'' --row-triggers"
        " --always"
    )
    assert exactly(asked).over(TriggerOptions(style=Style.FIELD_BACK)) == asked
    assert TrackRequest(exclude=(), when="").over(asked) == replace(asked, exclude=(), when=None)
    assert TrackRequest(always=False).over(asked) == replace(asked, always=False)


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT SELECT, UPDATE (status), DELETE ON app.event_log TO idm",
        'GRANT USAGE, CREATE ON SCHEMA "My App" TO "No Body"',
        "GRANT owner TO installer",
        "GRANT LOCK TABLES ON * TO ins@`%`",
        "GRANT CREATE, DROP ON `a``b`.c\nTO ins@localhost",
        "GRANT CREATE SESSION TO idm",
    ],
)
def test_a_grant_is_taken_back_word_for_word(grant: str) -> None:
    what, _, role = grant.removeprefix("GRANT ").replace("\n", " ").rpartition(" TO ")
    assert taking_back(grant) == f"REVOKE {what} FROM {role}"


def test_the_mark_counts_where_a_trigger_agrees_with_it_though_others_are_left() -> None:
    """Others are left of an attempt that was broken off."""
    left, kept = TriggerOptions(style=Style.FIELD), TriggerOptions(style=Style.ROW_BACK)
    assert believed("usr", kept, [left, kept]) == kept
