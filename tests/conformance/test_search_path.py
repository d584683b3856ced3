"""Sessions look for names in the server's own schema alone; what people name without a schema is found, described and compared as
in the search path of their role.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.core.errors import InstallError
from eventlog.daemon.logging import journal
from eventlog.daemon.publisher import Publisher
from eventlog.sql.connect import connect
from eventlog.sql.error_codes import NAME_NEEDS_SCHEMA
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect
from tests.integration.publishing import config_of, publish_all, url_of
from tests.support.logged import run
from tests.support.servers import absent

COLUMNS = (
    "m mood",
    "ms mood[]",
    's "Odd One"',
    "d short",
    "ds short[]",
    "p pair",
    "r span",
    "n numeric(9, 2)",
    "t text COLLATE nd",
    "vs varchar(5)[] COLLATE nd",
    "c citext",
    "cs citext[]",
    "ci any_case",
    "h hstore",
    "l ltree",
)


def asked(engine: Engine) -> Engine:
    """An engine as commands have it."""
    return connect(url_of(engine))


def extend(engine: Engine, *names: str) -> None:
    """Makes extensions, where the server has them."""
    with engine.connect() as connection:
        there = {name for (name,) in connection.exec_driver_sql("SELECT name FROM pg_available_extensions")}
    if not there.issuperset(names):
        absent("postgres", f"the server lacks one of {', '.join(names)}")
    run(engine, *(f"CREATE EXTENSION {name}" for name in names))


@pytest.mark.parametrize("home", ["public", "app"])
def test_types_are_described_as_in_the_path_of_the_role(postgresql: Engine, home: str) -> None:
    extend(postgresql, "citext", "hstore", "ltree")
    run(
        postgresql,
        "CREATE SCHEMA app",
        f"SET search_path = {home}, public",
        "CREATE TYPE mood AS ENUM ('high', 'low')",
        "CREATE TYPE \"Odd One\" AS ENUM ('x')",
        "CREATE DOMAIN short AS varchar(9)",
        "CREATE DOMAIN any_case AS citext",
        "CREATE TYPE pair AS (a integer, b text)",
        "CREATE TYPE span AS RANGE (subtype = integer)",
        "CREATE COLLATION nd (provider = icu, locale = 'und', deterministic = false)",
        f"CREATE TABLE parent (idu integer PRIMARY KEY, {', '.join(COLUMNS)})",
        "CREATE TABLE child (idu integer REFERENCES parent, m mood, PRIMARY KEY (idu, m))",
        "SET search_path = DEFAULT",
    )
    try:
        run(postgresql, f"ALTER ROLE postgres SET search_path = {home}, public")
        engine, open_one = asked(postgresql), create_engine(postgresql.url)
        assert reflect(engine).tables == reflect(open_one).tables
        engine.dispose()
        open_one.dispose()
    finally:
        run(postgresql, "ALTER ROLE postgres RESET search_path")


def test_a_key_of_citext_is_found_in_whatever_case_it_is_asked_for(postgresql: Engine, tmp_path: Path) -> None:
    extend(postgresql, "citext")
    run(postgresql, "CREATE TABLE usr (name citext PRIMARY KEY, fname varchar(40))")
    engine = asked(postgresql)
    install(engine)
    track(engine, ["usr"])
    run(postgresql, "INSERT INTO usr VALUES ('Ann', 'Anna')", "UPDATE event_log SET table_key = 'name=ANN'")
    publish_all(config_of(postgresql, tmp_path))
    [document] = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix == ".xml"]
    assert "Anna" in document.read_text()
    engine.dispose()


def test_what_is_named_without_a_schema_stands_where_the_role_looks_first(postgresql: Engine, tmp_path: Path) -> None:
    run(postgresql, "CREATE SCHEMA app", "CREATE TABLE app.usr (idu integer PRIMARY KEY, fname varchar(40))")
    run(
        postgresql, "CREATE ROLE searcher LOGIN SUPERUSER", "ALTER ROLE searcher SET search_path = nowhere, app, public"
    )
    config = config_of(connect(postgresql.url.set(username="searcher").render_as_string(False)), tmp_path)
    try:
        for words in (["install"], ["track", "usr"], ["triggers"]):
            assert exit_code([*words, "--database", str(config.source.url)]) == 0
        run(postgresql, "INSERT INTO app.usr VALUES (1, 'Ann')")
        publish_all(config)
        with postgresql.connect() as connection:
            assert connection.exec_driver_sql("SELECT status FROM app.event_log").scalar_one() == "S"
    finally:
        run(postgresql, "DROP OWNED BY searcher CASCADE", "DROP ROLE searcher")


BARE = {
    "a table": ("EXISTS (SELECT 1 FROM {}cycles)", "INSERT INTO {}cycles VALUES (1)"),
    "a function": ("{}tidy()", "SELECT {}tidy()"),
}
"""What somebody writes without a schema: in a condition, and in a statement."""


@pytest.fixture
def described(postgresql: Engine) -> Engine:
    run(
        postgresql,
        "CREATE TABLE usr (idu integer PRIMARY KEY, fname text)",
        "CREATE TABLE cycles (n integer)",
        "CREATE FUNCTION tidy() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "INSERT INTO usr VALUES (1, 'Ann')",
    )
    install(postgresql)
    return postgresql


@pytest.mark.parametrize("command", [["track", "usr", "--when"], ["refresh", "usr", "--where"]], ids=lambda one: one[0])
@pytest.mark.parametrize("what", BARE)
def test_a_condition_with_a_name_that_lacks_its_schema_is_told_so(
    described: Engine, capsys: pytest.CaptureFixture[str], what: str, command: list[str]
) -> None:
    track(described, ["usr"])
    condition, _ = BARE[what]
    where = ["--database", url_of(described)]
    assert exit_code([*command, condition.format(""), *where]) != 0
    assert NAME_NEEDS_SCHEMA in capsys.readouterr().err
    assert exit_code([*command, condition.format("nowhere."), *where]) != 0
    assert NAME_NEEDS_SCHEMA not in capsys.readouterr().err
    assert exit_code([*command, condition.format("public."), *where]) == 0


def test_a_statement_with_a_name_that_lacks_its_schema_is_told_so(described: Engine, tmp_path: Path) -> None:
    track(described, ["usr"])
    run(described, "UPDATE usr SET fname = 'Eve'")
    statements = [statement.format(schema) for _, statement in BARE.values() for schema in ("", "nowhere.", "public.")]
    told = io.StringIO()
    config = config_of(described, tmp_path / "out", post_poll_statements=tuple(statements))
    with Publisher(config, journal=journal("json", stream=told)) as publisher:
        publisher.run_once()
    failures = [line for line in map(json.loads, told.getvalue().splitlines()) if line["action"] == "post_poll_failed"]
    bare = {failure["statement"] for failure in failures if NAME_NEEDS_SCHEMA in failure["error"]}
    assert bare == {statement.format("") for _, statement in BARE.values()}
    assert len(failures) == 2 * len(bare)


def test_who_looks_for_names_nowhere_gives_the_log_a_schema(postgresql: Engine) -> None:
    engine = connect(postgresql.url.update_query_dict({"options": "-csearch_path="}).render_as_string(False))
    try:
        with pytest.raises(InstallError, match="names none that is there") as refused:
            install(engine)
        assert "--log public.event_log" in str(refused.value.hint)
        assert install(engine, LogNames(schema="public"))
    finally:
        engine.dispose()


def test_of_two_logs_of_different_owners_none_is_taken_for_the_other(postgresql: Engine) -> None:
    install(postgresql, LogNames(schema="public"))
    run(postgresql, "CREATE ROLE shadow", "CREATE SCHEMA postgres AUTHORIZATION shadow")
    run(postgresql, "CREATE TABLE postgres.event_log (LIKE public.event_log)")
    engine = asked(postgresql)
    try:
        assert log_columns(engine, LogNames()).schema == "postgres"
        run(postgresql, "ALTER TABLE postgres.event_log OWNER TO shadow")
        with pytest.raises(InstallError, match=r"event_log is in the schemas postgres \(of shadow\) and public"):
            log_columns(engine, LogNames())
        assert log_columns(engine, LogNames(schema="public")).schema == "public"
    finally:
        engine.dispose()
        run(postgresql, "DROP OWNED BY shadow CASCADE", "DROP ROLE shadow")
