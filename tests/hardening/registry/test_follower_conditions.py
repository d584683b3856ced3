"""`--follow-ddl` with `--when`: after an alteration the condition is the one that the log's owner registered, in the names of that
time, and counts as it did. Where nobody can say what it means any more, rows say so, none is published, and no write fails.
PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.core.errors import UsageError
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.conformance.event_logs import LogTable
from tests.hardening.registry.people import HIDDEN, People, documents, people
from tests.hardening.registry.test_follower_attacked import unlogged
from tests.integration.publishing import config_of
from tests.support.logged import Logged, left_by, run, unnumbered

HELD = (
    "CREATE DOMAIN code AS char(5)",
    """CREATE TABLE held (id integer PRIMARY KEY, "50% a" text, b integer, the_code code, secret text, more text)""",
)
CONDITION = """held.b > 5 AND ("50% a" <> 'no' OR the_code = 'x') AND coalesce(more, '') <> '%s'"""
ALTERATIONS = {
    "rename": (
        'ALTER TABLE held RENAME "50% a" TO a',
        "ALTER TABLE held RENAME b TO c",
        "ALTER TABLE held RENAME TO kept",
    ),
    "retype": (
        "ALTER TABLE held ALTER b TYPE numeric",
        "ALTER TABLE held ALTER the_code TYPE text",
        "ALTER TABLE held RENAME TO kept",
    ),
    "others": (
        "ALTER TABLE held DROP COLUMN secret",
        "ALTER TABLE held ADD secret text",
        "ALTER TABLE held RENAME TO kept",
    ),
}
GONE = [(6, "eventlog_condition_is_gone=1", None, None, None)]


def changes(engine: Engine, a: str, b: str) -> list[list[Logged]]:
    """What each of these statements leaves in the log."""
    statements = (
        f"INSERT INTO kept (id, {a}, {b}) SELECT n, CASE WHEN n = 8 THEN 'no' ELSE 'x' END, n FROM generate_series(1, 9) AS n",
        f"UPDATE kept SET the_code = 'x' WHERE {b} IN (2, 8)",
        "UPDATE kept SET secret = 's' WHERE id = 7",
        f"UPDATE kept SET {b} = {b} + 2",
        f"UPDATE kept SET {b} = {b} - 4 WHERE id IN (6, 7)",
        "UPDATE kept SET id = id + 20 WHERE id IN (1, 9)",
        f"DELETE FROM kept WHERE {b} IN (4, 5, 10)",
        "UPDATE kept SET more = '%s' WHERE id < 9",
        "TRUNCATE kept",
    )
    return [sorted(map(unnumbered, left_by(engine, statement)), key=str) for statement in statements]


@pytest.mark.in_turn
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("style", Style)
def test_the_condition_counts_as_it_did(postgresql: Engine, style: Style, *, rows: bool) -> None:
    install(postgresql)
    for what, alteration in ALTERATIONS.items():
        run(postgresql, *HELD)
        track(postgresql, ["held"], TriggerOptions(style=style, when=CONDITION, rows=rows, follow_ddl=True))
        run(postgresql, *alteration)
        a, b = ("a", "c") if what == "rename" else ('"50% a"', "b")
        followed = changes(postgresql, a, b)
        condition = CONDITION.replace("held.b", f"kept.{b}").replace('"50% a"', a)
        track(postgresql, ["kept"], TrackRequest(when=condition))
        exact = changes(postgresql, a, b)
        assert followed == exact, what
        assert [len(left) > 0 for left in exact] == [True] * 9
        run(postgresql, "DROP TABLE kept", "DROP DOMAIN code", "DELETE FROM event_log_tracked")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE held DROP COLUMN b",
        "ALTER TABLE held DROP COLUMN b, ADD COLUMN b integer",
        "ALTER TABLE held ALTER COLUMN b TYPE text",
        "ALTER TABLE held DROP COLUMN more, ADD COLUMN tg_op text",
    ],
)
def test_nothing_is_published_by_a_condition_that_nobody_can_ask(
    postgresql: Engine, tmp_path: Path, change: str
) -> None:
    install(postgresql)
    run(postgresql, *HELD)
    track(postgresql, ["held"], TriggerOptions(when=CONDITION, follow_ddl=True))
    run(postgresql, change)
    for statement in (
        f"INSERT INTO held (id, secret) VALUES (1, '{HIDDEN}')",
        "UPDATE held SET secret = 'other'",
        "DELETE FROM held",
        "TRUNCATE held",
    ):
        assert left_by(postgresql, statement) == GONE, statement
    run(postgresql, f"INSERT INTO held (id, secret) VALUES (1, '{HIDDEN}')", "ALTER TABLE held ADD COLUMN others text")
    assert HIDDEN not in documents(config_of(postgresql, tmp_path / "out"))
    assert {*LogTable(postgresql).statuses().values()} == {"E"}
    track(postgresql, ["held"], TrackRequest(when="secret = 'open'"))
    run(postgresql, "UPDATE held SET secret = 'open'")
    assert "open" in documents(config_of(postgresql, tmp_path / "out"))


def test_a_value_of_which_the_condition_fails_fails_no_write(postgresql: Engine) -> None:
    """Before the alteration every value was a number."""
    install(postgresql)
    run(postgresql, *HELD)
    track(postgresql, ["held"], TriggerOptions(when="b::integer > 5", style=Style.FIELD, follow_ddl=True))
    run(postgresql, "ALTER TABLE held ALTER COLUMN b TYPE text")
    assert left_by(postgresql, "INSERT INTO held (id, b) VALUES (1, '7')")[0][:2] == (1, "id=1")
    assert left_by(postgresql, "UPDATE held SET b = 'seven'") == GONE
    assert left_by(postgresql, "INSERT INTO held (id, b) VALUES (2, '3')") == []


def test_a_condition_with_child_tables_cannot_be_followed(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *HELD, "CREATE TABLE part (id integer REFERENCES held, note text)")
    with pytest.raises(UsageError, match="--when"):
        track(postgresql, ["held"], TriggerOptions(when="b > 5", children=("part",), follow_ddl=True))


@pytest.fixture
def site(postgresql: Engine) -> Iterator[People]:
    """A table of one owner's, followed; only a superuser can have that."""
    with people(postgresql) as found:
        run(
            found.admin,
            "ALTER SCHEMA capture OWNER TO CURRENT_USER",
            f"REASSIGN OWNED BY {found.name('installer')} TO CURRENT_USER",
        )
        yield found


def test_what_a_condition_calls_runs_with_nobodys_rights_but_a_writers(site: People, tmp_path: Path) -> None:
    """The table's owner owns the function, says that it may be asked while a query is planned, and alters the table."""
    run(site.admin, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA app TO PUBLIC")
    condition = "fname <> 'no' AND app.trap('a condition')"
    site.track("app.usr", part="admin", exclude=("secret",), when=condition, follow_ddl=True)
    before = site.sung()
    for change in (
        "ADD more text",
        "RENAME fname TO called",
        "ALTER called TYPE text",
        "RENAME secret TO lname2",
        "DROP lname",
    ):
        run(site.owner, f"ALTER TABLE app.usr {change}")
    assert site.sung() == before
    assert unlogged(site, f"INSERT INTO app.usr (idu, called, lname2) VALUES (1, 'Ann', '{HIDDEN}')") == []
    run(
        site.writer,
        "INSERT INTO app.usr (idu, called) VALUES (2, 'no')",
        "UPDATE app.usr SET called = 'Eve' WHERE idu = 1",
    )
    sung = site.sung()
    assert {role for whose, role in sung if sung[whose, role] != before.get((whose, role))} == {"writer"}
    published = documents(site.config(tmp_path, apart=True))
    assert [word in published for word in ("Eve", "no", HIDDEN)] == [True, False, False]
