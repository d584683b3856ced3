"""A login without any right forges what the program might take for its own: nothing of it is run, believed or granted.

Own schema and temporary tables, comments as the program itself writes them; PostgreSQL.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states
from eventlog.check.examine import check
from eventlog.cli.main import exit_code
from eventlog.config.settings import load
from eventlog.daemon.logging import library_journal
from eventlog.daemon.publisher import Publisher
from eventlog.tracked.options import TriggerOptions
from eventlog.tracked.stamp import read_stamp
from eventlog.web.open_page import open_page
from tests.hardening.quantity import scaled
from tests.hardening.registry.forging import forged, marker
from tests.hardening.registry.people import HIDDEN, LOG, People, documents, people
from tests.integration.publishing import in_thread, until
from tests.integration.test_verify import Circle
from tests.integration.test_verify_regularly import EVERY_SECOND, equal_since
from tests.support.logged import run
from tests.web.visiting import Visit

PLACES = ("nowhere", "temporary", "own schema")
TRAPPED = "mal.trap('a condition')"
ROW = f"INSERT INTO app.usr VALUES (1, 'Ann', 'Lee', '{HIDDEN}')"


@pytest.fixture
def site(postgresql: Engine) -> Iterator[People]:
    with people(postgresql) as found:
        yield found


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `eventlog` as somebody: its exit code, and what it said."""

    def called(url: str, *arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = exit_code([*arguments, "--database", url, "--log", "capture.event_log"])
        said = capsys.readouterr()
        return code, said.out + said.err

    return called


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "part, place",
    [
        ("admin", "nowhere"),
        ("admin", "temporary"),
        ("admin", "own schema"),
        ("installer", "temporary"),
        ("publisher", "temporary"),
    ],
)
def test_a_refresh_runs_nothing_of_a_strangers(site: People, command: Command, part: str, place: str) -> None:
    run(site.owner, ROW)
    run(site.admin, f"GRANT INSERT ON capture.event_log TO {site.name('publisher')}")
    with forged(site.stranger, marker("app.usr", when=TRAPPED), place):
        code, said = command(site.url(part), "refresh", "app.usr")
    assert site.sung() == {}, said
    assert code == 0, said
    assert site.statuses() == "NN"


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "part, place", [("admin", "nowhere"), ("admin", "temporary"), ("publisher", "nowhere"), ("publisher", "own schema")]
)
def test_verify_runs_nothing_of_a_strangers(site: People, command: Command, part: str, place: str) -> None:
    run(site.owner, ROW)
    run(
        site.admin,
        "CREATE SCHEMA copied",
        "CREATE TABLE copied.usr (idu integer PRIMARY KEY, fname varchar(40), lname varchar(40))",
        "INSERT INTO copied.usr VALUES (1, 'Ann', 'Lee')",
    )
    with forged(site.stranger, marker("app.usr", when=TRAPPED, exclude=["secret"]), place):
        against = ("--against", site.url("admin"), "--into", "copied", "--wait", "0")
        code, said = command(site.url(part), "verify", "app.usr", *against)
        named = command(site.url(part), "verify", *against)
    assert site.sung() == {}, said
    assert (code, named[0]) == (0, 0), said + named[1]


@pytest.mark.parametrize(
    "part, place", [("admin", "nowhere"), ("admin", "temporary"), ("publisher", "nowhere"), ("publisher", "own schema")]
)
def test_the_pages_refresh_runs_nothing_of_a_strangers(site: People, tmp_path: Path, part: str, place: str) -> None:
    run(site.owner, ROW)
    run(site.admin, f"GRANT INSERT ON capture.event_log TO {site.name('publisher')}")
    config = site.config(tmp_path, apart=part == "publisher", url=site.url(part))
    with forged(site.stranger, marker("app.usr", when=TRAPPED), place):
        page = open_page("127.0.0.1:0", config, library_journal(), None)
        try:
            visit = Visit(page)
            asked = visit.get("/confirm?action=refresh&schema=app&table=usr")
            visit.post("/act", {"action": "refresh", "schema": "app", "table": "usr", "proof": asked.proof})
            until(lambda: len(site.statuses()) == 2, "a row of the load waits")
        finally:
            page.close()
    assert site.sung() == {}
    assert site.statuses() == "NN"


@pytest.mark.parametrize("place", PLACES)
def test_regular_proofs_of_the_daemon_run_nothing_of_a_strangers(
    site: People, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    circle = Circle(site.admin, site.admin, tmp_path, capsys, key="number", more=EVERY_SECOND)
    circle.write(20)
    circle.publish()
    forging = forged(site.stranger, marker("public.usr", "public.event_log", when=TRAPPED), place)
    with forging, in_thread(Publisher(load(circle.file, {}))):
        until(equal_since(site.admin, 0.0), "the first proof")
    assert site.sung() == {}


FORGED: dict[str, dict[str, Any]] = {
    "no options": {},
    "another exclusion": {"exclude": ["fname", "lname"]},
    "chosen columns": {"columns": ["lname"]},
    "another key": {"key": ["secret"]},
    "the whole row": {"key": ["*"], "style": "image"},
    "children": {"children": ["app.other"]},
    "a condition": {"when": TRAPPED, "exclude": ["secret"]},
    "another style": {"style": "image"},
}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "what, place", [*((what, "temporary") for what in FORGED), ("no options", "nowhere"), ("another key", "own schema")]
)
def test_what_is_hidden_stays_so_and_every_change_has_its_document(
    site: People, tmp_path: Path, what: str, place: str
) -> None:
    with forged(site.stranger, marker("app.usr", **FORGED[what]), place):
        run(site.writer, ROW)
        run(site.writer, "UPDATE app.usr SET fname = 'Eve'")
        published = documents(site.config(tmp_path, apart=True))
        run(site.writer, f"UPDATE app.usr SET lname = 'Roe', secret = '{HIDDEN} too'")
        published += documents(site.config(tmp_path, apart=True))
    assert HIDDEN not in published
    assert ["Eve" in published, "Roe" in published] == [True, True]
    assert site.statuses() == "SSS"
    assert site.sung() == {}
    assert site.ask("SELECT reason, note FROM capture.event_log_outcome WHERE reason <> 'superseded'") == []


@pytest.mark.parametrize("place", PLACES)
def test_a_marker_of_a_table_that_nobody_tracks_makes_it_nobodys_business(
    site: People, tmp_path: Path, place: str
) -> None:
    """Rights without names are those on what is tracked; what is tracked is nobody's to say but the log's owner's."""
    with forged(site.stranger, marker("app.private"), place):
        given = give_rights(site.admin, Roles(reader=site.name("reader")), LOG)
        given += give_rights(site.admin, Roles(publisher=site.name("publisher")), LOG)
        listed = {state.owner for state in trigger_states(site.admin, LOG)}
        said = " ".join(point.said for point in check(lambda: site.config(tmp_path)))
    assert not [one.sql for one in given if "private" in one.sql]
    for part in ("reader", "publisher"):
        may = f"SELECT has_any_column_privilege('{site.name(part)}', 'app.private', 'SELECT')"
        assert site.ask(may) == [(False,)]
    assert listed == {"app.usr"}
    assert "app.private" not in said


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "what, place", [("no options", "nowhere"), ("no options", "temporary"), ("another key", "own schema")]
)
def test_the_installer_tracks_and_untracks_all_the_same(site: People, command: Command, what: str, place: str) -> None:
    with forged(site.stranger, marker("app.usr", **FORGED[what]), place) as stranger:
        tracked = command(site.url("installer"), "track", "app.usr")
        states = trigger_states(site.installer, LOG)
        run(site.writer, ROW)
        untracked = command(site.url("installer"), "untrack", "app.usr", "--yes")
        run(site.writer, "UPDATE app.usr SET fname = 'Eve'")
        query = "SELECT count(*) FROM pg_trigger WHERE tgname = 'event_log_app_usr_insert'"
        left = stranger.execute(text(query)).scalar_one()
    assert (tracked[0], untracked[0]) == (0, 0), tracked[1] + untracked[1]
    assert {str(state.state) for state in states} - {"STRAY"} == {"CURRENT"}
    assert site.statuses() == "N", "what is logged is logged, and nothing any more"
    assert left == (place != "nowhere"), "the stranger's own trigger is the stranger's"
    assert site.sung() == {}


def test_who_uninstalls_does_not_touch_a_strangers_trigger(site: People, command: Command) -> None:
    with forged(site.stranger, marker("app.usr", when=TRAPPED), "own schema"):
        code, said = command(site.url("installer"), "uninstall", "--yes")
    assert code == 0, said
    assert site.sung() == {}
    assert site.ask("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'event_log%'") == [("mal.bait",)]


def test_a_huge_comment_costs_the_publisher_nothing(site: People, tmp_path: Path) -> None:
    """The comment is made by the server itself, so that nothing of it is in this process but what the program reads."""
    megabytes = 32 * scaled(1)
    run(site.writer, ROW)
    documents(site.config(tmp_path))
    size = f"repeat('x', {megabytes} * 1024 * 1024)"
    huge = (
        "DO $do$ BEGIN EXECUTE format('COMMENT ON TRIGGER event_log_app_usr_insert ON mal.bait IS %%L',"
        f" '{marker('app.usr', style='row-back')[:-1]}, \"more\": \"' || {size} || '\"}}'); END $do$"
    )
    with forged(site.stranger, "", "own schema") as stranger:
        stranger.exec_driver_sql(huge)
        tracemalloc.start()
        try:
            run(site.writer, "UPDATE app.usr SET fname = 'Eve'")
            published = documents(site.config(tmp_path))
            trigger_states(site.admin, LOG)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert "Eve" in published
    assert peak < 16 * 1024 * 1024


def test_functions_that_are_called_like_ours_make_no_publisher_compare_triggers(site: People) -> None:
    """Who has a publisher compare all triggers with each look takes its time from the rows."""

    def stamp() -> list[tuple[Any, ...]]:
        with site.publisher.connect() as connection:
            return read_stamp(connection, LOG)

    before = stamp()
    name = "event_log_app_usr_insert"
    run(
        site.stranger,
        "CREATE TABLE mal.many (id integer)",
        f"CREATE FUNCTION mal.{name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        f"CREATE TRIGGER {name} AFTER INSERT ON mal.many EXECUTE FUNCTION mal.{name}()",
    )
    assert before
    assert stamp() == before


def test_check_runs_nothing_of_a_tables_owner_as_a_superuser(site: People, tmp_path: Path) -> None:
    """To plan a query of the table would run it, and a superuser's rights on a table need no trial."""
    track(site.installer, ["own.mine"], TriggerOptions(), LOG)
    site.give()
    run(site.tenant, "CREATE INDEX trapped ON own.mine ((own.trap('an index')))")
    assert [*check(lambda: site.config(tmp_path, url=site.url("admin")))]
    assert {pair for pair in site.sung() if pair[0] != pair[1]} == set()
