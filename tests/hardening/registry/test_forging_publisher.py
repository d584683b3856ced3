"""The publisher's role writes whatever it can write, and asks nobody: `track` runs nothing of it, and triggers get none of it.

It owns no table, but may make temporary ones, with triggers and comments; it writes marks and what else its work needs.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from eventlog.capture.schema_watch import follow
from eventlog.capture.track import track, trigger_states
from eventlog.core.errors import EventlogError
from tests.hardening.registry.forging import forged, marker
from tests.hardening.registry.people import HIDDEN, LOG, TRAP, People, documents, people, session
from tests.support.logged import run

ROW = f"INSERT INTO app.usr VALUES (1, 'Ann', 'Lee', '{HIDDEN}')"


@pytest.fixture
def site(postgresql: Engine) -> Iterator[People]:
    with people(postgresql) as found:
        yield found


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in which the server's own user could write."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-forged-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def conditions(shared: Path) -> dict[str, str]:
    """What would run where a condition is tried, or stand in a trigger."""
    program = f"COPY (SELECT 1) TO PROGRAM ''touch {shared / 'taken'}''"
    return {
        "a function": "pg_temp.trap('a condition')",  # the schema's own name stands there in the end
        "the end of a block": f"1 = 1); EXECUTE '{program}'; PERFORM (1 = 1",
        "a comment": "true /* ' $eventlog$ */",
    }


def tables_of(site: People) -> dict[str, list[str]]:
    """The log's tables, each with its columns."""
    found: dict[str, list[str]] = {}
    for table, column in site.ask(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'capture' ORDER BY 1, 2"
    ):
        found.setdefault(str(table), []).append(str(column))
    return found


def attempt(connection: Connection, statement: str) -> bool:
    """Whether the server does it."""
    try:
        connection.exec_driver_sql(statement.replace("%", "%%"))
    except DBAPIError:
        return False
    return True


def write_everything(site: People, connection: Connection, text: str, asked: str) -> int:
    """Writes a text into every place of the log's tables that the publisher can write; how many statements were allowed."""
    literal = "'" + text.replace("'", "''") + "'"
    done = 0
    for table, columns in tables_of(site).items():
        done += sum(attempt(connection, f"UPDATE capture.{table} SET {column} = {literal}") for column in columns)
        for keys in (("name", "value"), ("table_name", "described")):
            if set(keys) <= set(columns):
                others = {"table_version": "99", "seen_at": "'2030-01-01T00:00:00+00:00'", "first_record": "0"}
                given = {keys[0]: f"'{asked}'", keys[1]: literal} | {k: v for k, v in others.items() if k in columns}
                names, values = ", ".join(given), ", ".join(given.values())
                done += attempt(connection, f"INSERT INTO capture.{table} ({names}) VALUES ({values})")
    return done


def functions(site: People) -> list[tuple[object, ...]]:
    """What triggers run, and what they ask before."""
    return site.ask(
        "SELECT proname, prosrc, proowner::regrole::text FROM pg_proc WHERE pronamespace = 'capture'::regnamespace"
        " UNION ALL SELECT tgname, pg_get_triggerdef(oid), tgfoid::regproc::text FROM pg_trigger"
        " WHERE tgrelid = 'app.usr'::regclass ORDER BY 1, 2"
    )


@pytest.mark.parametrize(
    "part, what",
    [
        ("admin", "a function"),
        ("admin", "the end of a block"),
        ("installer", "a function"),
        ("installer", "a comment"),
    ],
)
def test_track_without_options_runs_nothing_of_the_publishers(site: People, shared: Path, what: str, part: str) -> None:
    """Both witnesses that a former version asked are the publisher's here: a trigger's comment, and a mark."""
    options: dict[str, Any] = {"style": "row-back", "exclude": ["secret"], "when": conditions(shared)[what]}
    before = functions(site)
    with forged(site.publisher, "") as publisher:
        attempt(publisher, TRAP.format(schema="pg_temp", part="publisher"))
        home = publisher.exec_driver_sql("SELECT pg_my_temp_schema()::regnamespace::text").scalar_one()
        options["when"] = str(options["when"]).replace("pg_temp", home)
        told = marker("app.usr", **options).replace("'", "''")
        assert attempt(publisher, f"COMMENT ON TRIGGER event_log_app_usr_insert ON pg_temp.bait IS '{told}'")
        asked = json.dumps({"table": "app.usr", "options": options}).replace("'", "''")
        attempt(publisher, "DELETE FROM capture.event_log_mark WHERE name LIKE 'asked: %'")
        mark = f"INSERT INTO capture.event_log_mark (name, value) VALUES ('asked: app.usr', '{asked}')"
        assert attempt(publisher, mark)
        track(site.engine(part), ["app.usr"], names=LOG)
        assert site.sung() == {}
        assert not (shared / "taken").exists()
        assert functions(site) == before
        run(site.writer, ROW)
        run(site.writer, "UPDATE app.usr SET fname = 'Eve'")
    assert site.sung() == {}
    assert not (shared / "taken").exists()
    assert site.statuses() == "NN"


@pytest.mark.parametrize("text", ["no json", "null", json.dumps({"table": "app.usr", "options": {}})])
def test_whatever_the_publisher_writes_track_and_follow_work_and_hide_what_they_hid(
    site: People, tmp_path: Path, text: str
) -> None:
    with forged(site.publisher, marker("app.usr")) as publisher:
        write_everything(site, publisher, text, "asked: app.usr")
        track(site.installer, ["app.usr"], names=LOG)
        assert follow(site.installer, LOG, "app.usr").error is None
        states = trigger_states(site.installer, LOG)
    assert {str(state.state) for state in states} == {"CURRENT"}
    assert {state.asked for state in states} == {"--events row-back --exclude secret"}
    # What it did to the log's status and journal is its own work; it begins anew.
    run(site.admin, "DELETE FROM capture.event_log")
    for table in tables_of(site):
        if table not in ("event_log", "event_log_version") and "tracked" not in table:
            with session(site.publisher) as connection:
                attempt(connection, f"DELETE FROM capture.{table}")
    run(site.writer, ROW)
    published = documents(site.config(tmp_path, apart=True))
    assert ("Ann" in published, HIDDEN in published) == (True, False)


@pytest.mark.parametrize("stage", ["a statement that others run", "a column that others read"])
def test_what_the_publisher_writes_is_shown_and_not_run(site: People, stage: str) -> None:
    """Marks of rights that were given are run by who takes them back: only as one REVOKE, of what was given."""
    grant = "GRANT SELECT ON app.private TO PUBLIC"
    if stage == "a column that others read":
        grant = "GRANT SELECT ON app.private TO x; CREATE ROLE taken SUPERUSER; --"
    with session(site.publisher) as publisher:
        attempt(publisher, f"INSERT INTO capture.event_log_mark (name, value) VALUES ('given: 1', '{grant}')")
    with suppress(EventlogError):
        site.give()
    assert site.ask("SELECT count(*) FROM pg_roles WHERE rolname = 'taken'") == [(0,)]
    assert site.ask(f"SELECT has_table_privilege('{site.name('stranger')}', 'app.private', 'SELECT')") == [(False,)]
