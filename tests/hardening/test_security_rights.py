"""What `eventlog rights` must not hand out on PostgreSQL, and what each role can do with what it was given, statement by statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, product

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import EX_CONFIG, EX_USAGE, InstallError, UsageError
from eventlog.sql.names import LogNames
from tests.acceptance.command import eventlog
from tests.support.logged import run

_numbers = count(1)
LOG = LogNames(table="event_log", schema="capture")


@contextmanager
def roles(admin: Engine, *names: str) -> Iterator[tuple[str, ...]]:
    """Roles with a login and nothing else, gone again afterwards."""
    number = next(_numbers)
    made = tuple(f"{name}_rights_{number}" for name in names)
    run(admin, *(f"CREATE ROLE {name} LOGIN" for name in made))
    try:
        yield made
    finally:
        listed = ", ".join(made)
        run(admin, f"DROP OWNED BY {listed} CASCADE", f"DROP ROLE {listed}")


@contextmanager
def login(admin: Engine, role: str) -> Iterator[Engine]:
    """Connections of a role, closed again afterwards."""
    engine = create_engine(admin.url.set(username=role))
    try:
        yield engine
    finally:
        engine.dispose()


def memberships(admin: Engine, role: str) -> set[str]:
    query = "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = CAST(:role AS regrole)"
    with admin.connect() as connection:
        return set(connection.execute(text(query), {"role": role}).scalars())


POWERS = {
    "SUPERUSER": "is a superuser",
    "CREATEROLE": "may create roles",
    "CREATEDB": "may create databases",
    "BYPASSRLS": "bypasses row level security",
    "REPLICATION": "may replicate",
}


WAYS = ("itself", "a member", "a member of a member", "a member who inherits nothing")
EVERY = (*POWERS, "pg_read_all_data", "pg_execute_server_program")


@pytest.mark.parametrize(
    "power, way",
    [("SUPERUSER", way) for way in WAYS] + [(power, WAYS[place % 4]) for place, power in enumerate(EVERY[1:], 1)],
)
def test_an_installer_never_becomes_a_member_of_a_role_with_power(postgresql: Engine, power: str, way: str) -> None:
    with roles(postgresql, "owner", "between", "strong", "installer") as (owner, between, strong, installer):
        run(
            postgresql,
            f"CREATE SCHEMA app AUTHORIZATION {owner}",
            "CREATE SCHEMA capture",
            "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY)",
            f"ALTER TABLE app.usr OWNER TO {owner}",
        )
        holder = owner if way == "itself" else strong
        run(postgresql, f"ALTER ROLE {holder} {power}" if power in POWERS else f"GRANT {power} TO {holder}")
        if way == "a member of a member":
            run(postgresql, f"GRANT {strong} TO {between}", f"GRANT {between} TO {owner}")
        elif way != "itself":
            run(postgresql, f"GRANT {strong} TO {owner}")
            if way == "a member who inherits nothing":
                run(postgresql, f"ALTER ROLE {owner} NOINHERIT")
        for dry in (False, True):
            with pytest.raises(InstallError, match=f"would become a member of {owner}") as refused:
                give_rights(postgresql, Roles(installer=installer), LOG, ["app.usr"], dry=dry)
            assert POWERS.get(power, "comes with PostgreSQL") in refused.value.message
            assert "app.usr" in refused.value.message
            for way_out in ("OWNER TO ROLE", "eventlog track app.usr --sql", f"`eventlog track` as {owner}"):
                assert way_out in str(refused.value.hint)
        assert memberships(postgresql, installer) == set()


def test_the_command_says_so_and_gives_nothing(postgresql: Engine) -> None:
    """As the audit found it: the table belongs to the superuser who made it."""
    run(postgresql, "CREATE TABLE usr (idu INTEGER PRIMARY KEY)")
    url = postgresql.url.render_as_string(hide_password=False)
    with roles(postgresql, "idm") as (idm,):
        for more in ([], ["--sql"]):
            done = eventlog("rights", "usr", "--installer", idm, *more, "--database", url)
            assert done.returncode == EX_CONFIG
            assert f"{idm} would become a member of postgres, which owns public.usr and is a superuser." in done.stderr
            assert done.stdout == ""
        assert memberships(postgresql, idm) == set()
        with login(postgresql, idm) as engine, pytest.raises(DBAPIError, match="permission denied"):
            run(engine, "SET ROLE postgres")


def test_the_owner_of_a_plain_table_and_a_superuser_who_installs_need_no_membership(postgresql: Engine) -> None:
    run(postgresql, "CREATE TABLE usr (idu INTEGER PRIMARY KEY)")
    given = [one.sql for one in give_rights(postgresql, Roles(installer="postgres"), tables=["usr"])]
    assert given == ["GRANT USAGE, CREATE ON SCHEMA public TO postgres"]


def test_nobody_is_everybody(postgresql: Engine) -> None:
    """PostgreSQL takes public for everybody in quotes too; a script may have forgotten to set its variable."""
    install(postgresql)
    for part, name in product(Roles.__struct_fields__, ("public", "PUBLIC", "none", "", " ")):
        with pytest.raises(UsageError, match="means everybody, or nobody"):
            give_rights(postgresql, Roles(**{part: name}))


def test_who_must_not_reach_the_log_is_given_nothing_of_it(postgresql: Engine) -> None:
    install(postgresql)
    url = postgresql.url.render_as_string(hide_password=False)
    for closed, open_part in product(("writer", "reader"), ("installer", "publisher")):
        done = eventlog("rights", f"--{closed}", "app", f"--{open_part}", "app", "--database", url)
        assert (done.returncode, "app cannot be two parts" in done.stderr) == (EX_USAGE, True)


def owners(config: Config) -> list[str]:
    """What `eventlog check` says of who could have whose rights."""
    return [f"{point.level} {point.said} {point.mend}" for point in check(lambda: config) if point.name == "owners"]


def test_check_names_an_installer_and_a_publisher_that_are_members_of_a_role_with_power(postgresql: Engine) -> None:
    """As somebody made them by hand."""
    with roles(postgresql, "owner", "dev", "installer", "idm") as (owner, dev, installer, idm):
        run(
            postgresql,
            f"CREATE SCHEMA app AUTHORIZATION {owner}",
            f"CREATE SCHEMA capture AUTHORIZATION {installer}",
            "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY)",
            f"ALTER TABLE app.usr OWNER TO {owner}",
        )
        give_rights(postgresql, Roles(installer=installer), LOG, ["app.usr"])
        with login(postgresql, installer) as engine:
            install(engine, LOG)
            track(engine, ["app.usr"], names=LOG)
        give_rights(postgresql, Roles(publisher=idm), LOG)
        url = postgresql.url.set(username=idm).render_as_string(hide_password=False)
        config = Config(source=SourceConfig(url=url, log="capture.event_log", schema="app"))
        run(postgresql, f"GRANT pg_read_all_stats TO {idm}")  # to see long transactions
        assert not [said for said in owners(config) if "is a member of" in said]
        run(postgresql, f"GRANT postgres TO {installer}", f"GRANT pg_write_all_data TO {dev}", f"GRANT {dev} TO {idm}")
        told = [said for said in owners(config) if "is a member of" in said]
        mend = "Let a plain role own the captured tables, and run: REVOKE"
        (of_installer, of_publisher) = told
        assert of_installer.startswith(
            f"warning The installer {installer} is a member of postgres, which is a superuser."
        )
        assert of_installer.endswith(f"{mend} postgres FROM {installer};")
        assert f"{idm} is a member of pg_write_all_data, by {dev}, which comes with PostgreSQL." in of_publisher
        assert of_publisher.endswith(f"{mend} {dev} FROM {idm};")


PARTS = ("installer", "writer", "publisher", "reader")
EACH = {
    # Captured tables are the application's.
    "SELECT * FROM app.usr": {"installer", "writer", "reader"},
    "SELECT * FROM app.usr_phone": {"installer", "writer", "reader"},
    "SELECT count(*) FROM app.other": {"installer"},
    "INSERT INTO app.usr VALUES (2, 'Bob')": {"installer", "writer"},
    "UPDATE app.usr SET fname = 'Eve'": {"installer", "writer"},
    "DELETE FROM app.usr": {"installer", "writer"},
    "TRUNCATE app.usr, app.usr_phone": {"installer"},
    "LOCK TABLE app.usr IN ACCESS EXCLUSIVE MODE": {"installer", "writer"},
    "ALTER TABLE app.usr DISABLE TRIGGER ALL": set(),  # nor the installer: some are the server's own, of the foreign key
    "ALTER TABLE app.usr DISABLE TRIGGER USER": {"installer"},
    "DROP TRIGGER event_log_app_usr_insert ON app.usr": {"installer"},
    "CREATE TABLE app.mine (id integer)": {"installer"},
    "CREATE FUNCTION app.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'": {"installer"},
    # The log is the publisher's, as far as its work goes.
    "SELECT * FROM capture.event_log": {"installer", "publisher"},
    "UPDATE capture.event_log SET status = 'S'": {"installer", "publisher"},
    "DELETE FROM capture.event_log": {"installer", "publisher"},
    "UPDATE capture.event_log SET new_value = 'x'": {"installer"},
    "UPDATE capture.event_log SET perpetrator = 'x'": {"installer"},
    "INSERT INTO capture.event_log (event_type, table_name, table_key) VALUES (6, 'usr', 'idu=1')": {"installer"},
    "TRUNCATE capture.event_log": {"installer"},
    "DROP TABLE capture.event_log": {"installer"},
    "ALTER TABLE capture.event_log ADD COLUMN more integer": {"installer"},
    "CREATE INDEX ON capture.event_log (table_key)": {"installer"},
    "CREATE RULE mine AS ON UPDATE TO capture.event_log DO INSTEAD NOTHING": {"installer"},
    "COPY capture.event_log TO PROGRAM 'true'": set(),
    "SELECT nextval(pg_get_serial_sequence('capture.event_log', 'record_id'))": {"installer"},
    "SELECT * FROM capture.event_log_mark": {"installer", "publisher"},
    "INSERT INTO capture.event_log_mark VALUES ('mine', 'x')": {"installer", "publisher"},
    "DELETE FROM capture.event_log_outcome": {"installer", "publisher"},
    "DELETE FROM capture.event_log_seen": {"installer", "publisher"},
    # What decides what is run, read or published is the log's owner's alone.
    **{
        statement.format(f"capture.event_log_{table}"): {"installer"}
        for table in ("setup", "tracked", "trigger", "relation", "schema", "version")
        for statement in ("DELETE FROM {}", "DROP TABLE {}")
    },
    "SELECT * FROM capture.event_log_version": {"installer", "publisher"},
    "UPDATE capture.event_log_version SET version_num = '9'": {"installer"},
    "CREATE TABLE capture.mine (id integer)": {"installer"},
    # What the triggers run is nobody's to call, to change or to hang elsewhere.
    "CREATE OR REPLACE FUNCTION capture.event_log_app_usr_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'": {
        "installer"
    },
    "ALTER FUNCTION capture.event_log_app_usr_insert() OWNER TO CURRENT_USER": {"installer"},
    "GRANT EXECUTE ON FUNCTION capture.event_log_app_usr_insert() TO PUBLIC": {"installer"},
    "COMMENT ON TRIGGER event_log_app_usr_insert ON app.usr IS 'eventlog {}'": {"installer"},
    # The server is nobody's.
    "CREATE ROLE mine": set(),
    "CREATE SCHEMA mine": set(),
    "SET session_replication_role = 'replica'": set(),
    "SET ROLE postgres": set(),
    "SET SESSION AUTHORIZATION postgres": set(),
    "CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION capture.event_log_app_usr_insert()": set(),
    "SELECT pg_read_file('postgresql.conf')": set(),
    "SELECT * FROM pg_authid": set(),
}
"""What may be done with what `eventlog rights` gave, and by whom; everything else is refused."""


def test_each_role_may_do_what_it_is_for_statement_by_statement(postgresql: Engine) -> None:
    with roles(postgresql, "owner", *PARTS) as (owner, *names):
        part = dict(zip(PARTS, names, strict=True))
        run(postgresql, f"CREATE SCHEMA app AUTHORIZATION {owner}", "CREATE SCHEMA capture")
        with login(postgresql, owner) as engine:
            run(
                engine,
                "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64))",
                "CREATE TABLE app.usr_phone (idu INTEGER REFERENCES app.usr ON DELETE CASCADE, phoneno VARCHAR(32))",
                "CREATE TABLE app.other (id INTEGER PRIMARY KEY)",
                "INSERT INTO app.usr VALUES (1, 'Ann')",
                f"GRANT USAGE ON SCHEMA app TO {part['writer']}",
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON app.usr, app.usr_phone TO {part['writer']}",
            )
        give_rights(postgresql, Roles(installer=part["installer"]), LOG, ["app.usr"])
        with login(postgresql, part["installer"]) as engine:
            install(engine, LOG)
            track(engine, ["app.usr"], names=LOG)
        give_rights(postgresql, Roles(**part), LOG)
        done: dict[str, set[str]] = {statement: set() for statement in EACH}
        for name, role in part.items():
            with login(postgresql, role) as engine:
                for statement in EACH:
                    if succeeds(engine, statement):
                        done[statement].add(name)
        assert done == EACH


def succeeds(engine: Engine, statement: str) -> bool:
    """Whether the server does it; it is undone, and a refusal must be one for want of a right."""
    with engine.connect() as connection, connection.begin() as attempt:
        try:
            connection.exec_driver_sql(statement)
        except DBAPIError as error:
            said = str(error.orig)
            assert re.search("permission denied|must be owner|Must be superuser|must be superuser", said), said
            return False
        attempt.rollback()
        return True
