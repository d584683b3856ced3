"""What somebody asks of `eventlog track`, and what the registry writes of it, without a database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.capture.given_rights import taking_back
from eventlog.capture.plan import plan
from eventlog.capture.registry_writer import RegistryWriter
from eventlog.capture.render import render
from eventlog.core.schema import Column, Table
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.sql.dialect import Dialect
from eventlog.sql.names import LogNames
from eventlog.tracked.options import OPTIONS, Style, TrackRequest, TriggerOptions, words

ASKED = TriggerOptions(style=Style.FIELD, exclude=("salary",))


def test_options_are_said_as_people_type_them() -> None:
    asked = replace(
        ASKED, columns=("a",), children=("c", "d"), key=("k", "l"), when="a > 'x y'", rows=True, always=True
    )
    assert words(asked) == (
        "--events field --columns a --exclude salary --child c,d --key k,l --when 'a > '\"'\"'x y'\"'\"'' --row-triggers"
        " --always"
    )
    request = TrackRequest(**{name: getattr(asked, name) for name in OPTIONS}, reset=True)
    assert request.over(TriggerOptions(style=Style.FIELD_BACK)) == asked
    assert TrackRequest(exclude=(), when="").over(asked) == replace(asked, exclude=(), when=None)
    assert TrackRequest(always=False).over(asked) == replace(asked, always=False)


@pytest.mark.parametrize("dialect", [POSTGRESQL, ORACLE, MYSQL, SQLITE], ids=lambda dialect: dialect.name)
@given(table=st.text(min_size=1, max_size=20), when=st.none() | st.text(max_size=2000))
def test_the_registry_is_written_with_constants(dialect: Dialect, table: str, when: str | None) -> None:
    writer = RegistryWriter(dialect=dialect, names=LogNames(), schema="app", table=table, known=None)
    columns = (Column(name="idu", type="INTEGER", key=1), Column(name="fname", type="TEXT"))
    planned = plan(Table(name=table, schema="app", columns=columns))
    trigger = render(planned, dialect, LogNames())[0]
    texts = [
        *writer.enter_class(replace(ASKED, when=when), planned),
        writer.enter_trigger(trigger),
        writer.keep_trigger_text(trigger),
        *writer.enter_relations(planned),
    ]
    for text in texts:
        # Whatever a name or a condition holds stands in a string, which it does not end.
        assert text.replace("''", "").count("'") % 2 == 0


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT SELECT, UPDATE (status), DELETE ON app.event_log TO idm",
        'GRANT SELECT (idu, "First Name") ON app.usr TO idm',
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


@pytest.mark.parametrize("text", ["GRANT SELECT ON a TO b; DROP TABLE c", "DROP TABLE a", "GRANT SELECT (a ON b TO c"])
def test_what_is_no_grant_is_never_taken_back(text: str) -> None:
    assert taking_back(text) is None
