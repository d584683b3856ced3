"""Least rights on PostgreSQL: three roles that are no superusers, and all that a writer tries in vain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from msgspec import Struct
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights, rights_script
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import InstallError, SourceError, UsageError
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import loads
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import publish_all
from tests.support.logged import logged, run

_numbers = count(1)
LOG = LogNames(table="event_log", schema="capture")
OWN = {
    "event_log": "status",
    "event_log_outcome": "status",
    "event_log_mark": "value",
    "event_log_schema": "changed",
    "event_log_version": "version_num",
    "event_log_batch": "records",
    "event_log_output": "paused",
    "event_log_planned": "route",
    "event_log_parked": "note",
    "event_log_hold": "note",
    "event_log_answer": "note",
    "event_log_association": "awaiting",
}
"""The tables that are nobody's but the publisher's, each with a column."""
ATTEMPTS = (
    "SELECT count(*) FROM capture.{table}",
    "INSERT INTO capture.{table} DEFAULT VALUES",
    "UPDATE capture.{table} SET {column} = 'S'",
    "DELETE FROM capture.{table}",
    "TRUNCATE capture.{table}",
    "DROP TABLE capture.{table}",
    "CREATE TRIGGER mine AFTER INSERT ON capture.{table} EXECUTE FUNCTION app.nothing()",
)
TABLES = (
    "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64))",
    "CREATE TABLE app.usr_phone (idu INTEGER REFERENCES app.usr ON DELETE CASCADE, phoneno VARCHAR(32))",
)


class Cast(Struct, frozen=True, kw_only=True):
    """One installation with a connection for everybody who has a part in it."""

    admin: Engine
    owner: Engine
    installer: Engine
    writer: Engine
    publisher: Engine

    def name(self, part: str) -> str:
        return str(getattr(self, part).url.username)

    @property
    def roles(self) -> Roles:
        return Roles(installer=self.name("installer"), writer=self.name("writer"), publisher=self.name("publisher"))


@pytest.fixture
def cast(postgresql: Engine) -> Iterator[Cast]:
    """Tables that the application's owner made, a log that the installer made, rights that `eventlog rights` gave."""
    with everybody(postgresql) as found:
        roles = found.roles
        give_rights(found.admin, Roles(installer=roles.installer), LOG, ["app.usr"])
        install(found.installer, LOG)
        track(found.installer, ["app.usr"], TriggerOptions(style=Style.FIELD), LOG)
        give_rights(found.admin, Roles(writer=roles.writer, publisher=roles.publisher), LOG)
        yield found


@contextmanager
def everybody(admin: Engine) -> Iterator[Cast]:
    """Roles with nothing but a login, gone again afterwards; roles belong to the server and not to a database."""
    number = next(_numbers)
    names = {part: f"{part}_{number}" for part in ("owner", "installer", "writer", "publisher")}
    run(admin, *(f"CREATE ROLE {name} LOGIN" for name in names.values()))
    run(
        admin,
        f"CREATE SCHEMA app AUTHORIZATION {names['owner']}",
        "CREATE SCHEMA capture",
        f"GRANT USAGE, CREATE ON SCHEMA app TO {names['writer']}",
    )
    engines = {part: create_engine(admin.url.set(username=name)) for part, name in names.items()}
    run(
        engines["owner"],
        *TABLES,
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON app.usr, app.usr_phone TO {names['writer']}",
    )
    try:
        yield Cast(admin=admin, **engines)
    finally:
        for engine in engines.values():
            engine.dispose()
        listed = ", ".join(names.values())
        run(admin, f"DROP OWNED BY {listed} CASCADE", f"DROP ROLE {listed}")


def refused(engine: Engine, *statements: str) -> str:
    """What the database says no with."""
    with pytest.raises(DBAPIError) as no:
        run(engine, *statements)
    return str(no.value.orig)


def test_what_a_writer_writes_is_captured_in_its_name(cast: Cast) -> None:
    run(cast.writer, "INSERT INTO app.usr VALUES (1, 'Ann')", "INSERT INTO app.usr_phone VALUES (1, '555')")
    assert logged(cast.admin, LOG) == [
        (1, "idu=1", "fname", None, "Ann"),
        (1, "idu=1", "usr_phone.phoneno", None, "555"),
    ]
    with cast.admin.connect() as connection:
        found = connection.execute(text("SELECT DISTINCT perpetrator FROM capture.event_log")).scalars().all()
    assert found == [cast.name("writer")]


def test_a_writer_reaches_neither_the_log_nor_its_companions(cast: Cast) -> None:
    run(cast.writer, "INSERT INTO app.usr VALUES (1, 'Ann')")
    attempts = [(table, attempt.format(table=table, column=OWN[table])) for table in OWN for attempt in ATTEMPTS]
    for _, attempt in attempts:
        assert "permission denied for schema capture" in refused(cast.writer, attempt)
    run(cast.admin, f"GRANT USAGE ON SCHEMA capture TO {cast.name('writer')}")  # people do; the tables stay closed
    for table, attempt in attempts:
        said = refused(cast.writer, attempt)
        assert f"permission denied for table {table}" in said or f"must be owner of table {table}" in said, attempt


def test_a_writer_cannot_call_the_functions_nor_hang_them_on_a_table_of_its_own(cast: Cast) -> None:
    run(cast.admin, f"GRANT USAGE ON SCHEMA capture TO {cast.name('writer')}")
    run(cast.writer, "CREATE TABLE app.mine (idu INTEGER PRIMARY KEY, fname VARCHAR(64))")
    call = "SELECT capture.event_log_app_usr_insert()"
    assert "permission denied for function" in refused(cast.writer, call)
    hang = (
        "CREATE TRIGGER forged AFTER INSERT ON app.mine REFERENCING NEW TABLE AS new_rows"
        " FOR EACH STATEMENT EXECUTE FUNCTION capture.event_log_app_usr_insert()"
    )
    assert "permission denied for function" in refused(cast.writer, hang)


def test_a_writer_cannot_change_or_silence_the_triggers(cast: Cast) -> None:
    assert "must be owner" in refused(cast.writer, "ALTER TABLE app.usr DISABLE TRIGGER ALL")
    assert "must be owner" in refused(cast.writer, "DROP TRIGGER event_log_app_usr_insert ON app.usr")
    assert "permission denied" in refused(cast.writer, "SET session_replication_role = 'replica'")


HIJACKS = {
    "temporary tables": (
        "CREATE TEMPORARY TABLE event_log (LIKE app.usr)",
        "CREATE TEMPORARY TABLE new_rows (idu INTEGER, fname TEXT)",
        "INSERT INTO pg_temp.new_rows VALUES (99, 'forged')",
    ),
    "a search path": ("SET LOCAL search_path = app, pg_temp, pg_catalog",),
    "a function": (
        "CREATE FUNCTION app.replace(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'forged' $$",
        "CREATE FUNCTION app.ours(varchar, varchar) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$",
        "CREATE OPERATOR app.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = app.ours)",
        "CREATE OPERATOR app.<> (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = app.ours)",
        "SET LOCAL search_path = app, pg_catalog",
    ),
    "a role": ("SET LOCAL ROLE NONE", "SET LOCAL application_name = 'idm'"),
}


@pytest.mark.parametrize("way", HIJACKS)
def test_nothing_in_the_writers_session_changes_what_is_logged(cast: Cast, way: str) -> None:
    run(cast.writer, *HIJACKS[way], "INSERT INTO app.usr VALUES (1, 'Ann')", "UPDATE app.usr SET fname = 'Eve'")
    assert logged(cast.admin, LOG) == [(1, "idu=1", "fname", None, "Ann"), (2, "idu=1", "fname", "Ann", "Eve")]
    with cast.admin.connect() as connection:
        found = connection.execute(text("SELECT DISTINCT perpetrator FROM capture.event_log")).scalars().all()
    assert found == [cast.name("writer")]


def test_the_publisher_publishes_and_writes_nothing_else(cast: Cast, tmp_path: Path) -> None:
    track(cast.installer, ["app.usr"], TriggerOptions(), LOG)  # rows to read back
    run(cast.writer, "INSERT INTO app.usr VALUES (1, 'Ann')", "INSERT INTO app.usr_phone VALUES (1, '555')")
    source = SourceConfig(
        url=cast.publisher.url.render_as_string(), log="capture.event_log", schema="app", tables=("usr",)
    )
    publish_all(Config(source=source, output=(FilesOutput(path=str(tmp_path)),)))
    documents = [file.read_text() for file in tmp_path.glob("*.xml")]
    assert any("Ann" in document and "555" in document for document in documents)
    for statement in (
        "UPDATE app.usr SET fname = 'x'",
        "DELETE FROM app.usr_phone",
        "TRUNCATE capture.event_log",
        "INSERT INTO capture.event_log (event_type, table_name, table_key) VALUES (6, 'usr', 'idu=1')",
        "UPDATE capture.event_log SET new_value = 'x'",
        "UPDATE capture.event_log_version SET version_num = '9'",
    ):
        assert "permission denied" in refused(cast.publisher, statement)


def published(cast: Cast, folder: Path, reader: str) -> tuple[str, list[str]]:
    """The documents that come out where a reader reads, and what `eventlog check` says of rights."""
    url, reading = (cast.publisher.url.set(username=name) for name in (cast.name("publisher"), reader))
    source = SourceConfig(
        url=url.render_as_string(), reader=reading.render_as_string(), log="capture.event_log", schema="app"
    )
    config = Config(source=source, output=(FilesOutput(path=str(folder)),))
    publish_all(config)
    said = "".join(file.read_text() for file in folder.glob("*.xml"))
    return said, [point.level for point in check(lambda: config) if point.name == "rights"]


def test_where_a_reader_reads_the_publisher_may_read_no_captured_table(cast: Cast, tmp_path: Path) -> None:
    """What was given before there was a reader is taken back; all that a publisher does goes on without it."""
    reader, publisher = f"reader_of_{cast.name('owner')}", cast.name("publisher")
    run(cast.admin, f"CREATE ROLE {reader} LOGIN")
    try:
        for _ in range(2):  # the second time there is nothing to take back
            give_rights(cast.admin, Roles(publisher=publisher, reader=reader), LOG)
            assert "permission denied" in refused(cast.publisher, "SELECT * FROM app.usr")
        planned = give_rights(cast.admin, Roles(publisher="x"), LOG, read_apart=True, dry=True)
        assert not [one.sql for one in planned if "app.usr" in one.sql], "so it is where source.reader is set"
        track(cast.installer, ["app.usr"], TriggerOptions(), LOG)
        run(cast.owner, "ALTER TABLE app.usr ADD COLUMN lname VARCHAR(40)")
        run(
            cast.writer, "INSERT INTO app.usr VALUES (1, 'Ann', 'Frost')", "INSERT INTO app.usr_phone VALUES (1, '555')"
        )
        said, levels = published(cast, tmp_path, reader)
        assert [word in said for word in ("Ann", "Frost", "555")] == [True, True, True]
        assert levels == ["ok"]
    finally:
        run(cast.admin, f"DROP OWNED BY {reader}", f"DROP ROLE {reader}")


def refresh(engine: Engine) -> int:
    """A full load of a table that stands in another schema than the log."""
    [load] = loads(engine, LOG, ["app.usr"], None, None)
    assert (load.called, load.tracked) == ("app.usr", True)
    work = Refresh(Log(engine, LOG), load)
    return list(work.steps(work.begin()))[-1].rows


def test_the_installer_may_begin_a_full_load_and_the_publisher_may_not(cast: Cast) -> None:
    run(cast.owner, "INSERT INTO app.usr VALUES (1, 'Jack'), (2, 'Ida')", "DELETE FROM app.usr WHERE idu = 2")
    before = len(logged(cast.admin, LOG))
    with pytest.raises(SourceError, match=r"permission denied for table event_log.* needs INSERT on "):
        refresh(cast.publisher)
    with pytest.raises(InstallError, match=r"permission denied for table event_log.*rights --installer"):
        track(cast.publisher, ["app.usr"], None, LOG)
    assert len(logged(cast.admin, LOG)) == before
    assert refresh(cast.installer) == 1


def test_a_writer_that_still_reaches_the_log_is_told(cast: Cast) -> None:
    run(cast.admin, "CREATE ROLE everything", "GRANT SELECT ON capture.event_log TO everything")
    run(cast.admin, f"GRANT everything TO {cast.name('writer')}")
    try:
        with pytest.raises(InstallError, match="may still SELECT on event_log"):
            give_rights(cast.admin, Roles(writer=cast.name("writer")), LOG)
    finally:
        run(cast.admin, "DROP OWNED BY everything", "DROP ROLE everything")


def test_a_role_that_is_not_there_is_named_before_anything_is_given(cast: Cast) -> None:
    before = granted(cast)
    with pytest.raises(UsageError, match="There is no role nobody_yet on this server"):
        give_rights(cast.admin, Roles(publisher=cast.name("publisher"), reader="nobody_yet"), LOG)
    assert granted(cast) == before


def granted(cast: Cast) -> list[object]:
    with cast.admin.connect() as connection:
        return [*connection.execute(text("SELECT oid, relacl FROM pg_class WHERE relacl IS NOT NULL ORDER BY oid"))]


def test_what_is_printed_is_what_would_be_run(cast: Cast) -> None:
    printed = rights_script(give_rights(cast.admin, cast.roles, LOG, dry=True))
    given = [one.sql for one in give_rights(cast.admin, cast.roles, LOG)]
    assert printed == "".join(f"{statement};\n" for statement in given)
    assert f"GRANT {cast.name('owner')} TO {cast.name('installer')}" in given
    assert f"GRANT SELECT ON app.usr_phone TO {cast.name('publisher')}" in given
