"""Least rights on MariaDB and MySQL: three accounts, what a writer cannot do, and what `eventlog check` says of a server that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights, rights_script
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import EX_UNAVAILABLE, InstallError
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import publish_all
from tests.support.logged import USR, run
from tests.support.servers import mysqls

_numbers = count(1)
OWN = {
    "event_log": "status",
    "event_log_outcome": "status",
    "event_log_mark": "value",
    "event_log_schema": "changed",
    "event_log_version": "version_num",
}
"""The tables that are nobody's but the publisher's, each with a column."""
ATTEMPTS = (
    "SELECT count(*) FROM {table}",
    "INSERT INTO {table} ({column}) VALUES ('S')",
    "UPDATE {table} SET {column} = 'S'",
    "DELETE FROM {table}",
    "TRUNCATE TABLE {table}",
    "DROP TABLE {table}",
    "CREATE TRIGGER mine AFTER INSERT ON {table} FOR EACH ROW SET @a = 1",
)


@pytest.fixture(params=mysqls())
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each of the two."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def accounts(server: Engine) -> Iterator[dict[str, Engine]]:
    """A connection for each part: the log is the installer's, the rights are what `eventlog rights` gave."""
    number = next(_numbers)
    names = {part: f"{part}{number}" for part in ("installer", "writer", "publisher")}
    run(server, *(f"CREATE USER '{name}'@'%'" for name in names.values()), *USR)
    run(
        server,
        *(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO '{names['writer']}'" for table in ("usr", "usr_phone")),
    )
    engines = {part: create_engine(server.url.set(username=name)) for part, name in names.items()}
    give_rights(server, Roles(installer=f"{names['installer']}@%"), tables=["usr"])
    install(engines["installer"])
    track(engines["installer"], ["usr"])
    give_rights(server, Roles(writer=names["writer"], publisher=names["publisher"]))
    yield engines
    for engine in engines.values():
        engine.dispose()
    run(server, *(f"DROP USER '{name}'@'%'" for name in names.values()))


def refused(engine: Engine, statement: str) -> str:
    """What the database says no with."""
    with pytest.raises(DBAPIError) as no:
        run(engine, statement)
    return str(no.value.orig)


def test_a_writer_reaches_neither_the_log_nor_its_companions(accounts: dict[str, Engine]) -> None:
    for attempt, table in product(ATTEMPTS, OWN):
        said = refused(accounts["writer"], attempt.format(table=table, column=OWN[table]))
        assert f"command denied to user '{accounts['writer'].url.username}'" in said, attempt


def test_the_publisher_publishes_and_writes_nothing_else(accounts: dict[str, Engine], tmp_path: Path) -> None:
    run(accounts["writer"], "INSERT INTO usr (idu, fname) VALUES (1, 'Ann')")
    url = accounts["publisher"].url.render_as_string(hide_password=False)
    config = Config(source=SourceConfig(url=url, tables=("usr",)), output=(FilesOutput(path=str(tmp_path)),))
    publish_all(config)
    assert any("Ann" in file.read_text() for file in tmp_path.glob("*.xml"))
    for statement in ("UPDATE usr SET fname = 'x'", "UPDATE event_log SET new_value = 'x'", "TRUNCATE TABLE event_log"):
        assert "denied to user" in refused(accounts["publisher"], statement)


def test_what_was_left_out_is_not_read_back_by_a_publisher_that_is_told_of_no_triggers(
    accounts: dict[str, Engine], server: Engine, tmp_path: Path
) -> None:
    """The options are in the log's marks too, with the columns that there were: another name tells nobody what was left out."""
    track(accounts["installer"], ["usr"], TriggerOptions(style=Style.ROW_BACK, exclude=("age",)))
    url = accounts["publisher"].url.render_as_string(hide_password=False)
    config = Config(source=SourceConfig(url=url), output=(FilesOutput(path=str(tmp_path)),))
    run(accounts["writer"], "INSERT INTO usr (idu, fname, age) VALUES (1, 'Ann', 4711)")
    with Publisher(config) as publisher:
        publisher.run_once()
    run(server, "ALTER TABLE usr RENAME COLUMN age TO years")
    track(accounts["installer"], ["usr"], TriggerOptions(style=Style.ROW_BACK, exclude=("years",)))
    run(accounts["writer"], "UPDATE usr SET fname = 'Eve', years = 4712")
    run(server, "ALTER TABLE usr RENAME COLUMN years TO age")
    with Publisher(config) as publisher:
        publisher.run_once()
    told = "".join(file.read_text() for file in tmp_path.glob("*.xml"))
    assert ("Ann" in told, "Eve" in told, "471" in told) == (True, True, False)


def test_a_writer_with_rights_on_the_whole_database_is_told(accounts: dict[str, Engine], server: Engine) -> None:
    writer = str(accounts["writer"].url.username)
    run(server, f"GRANT INSERT ON * TO '{writer}'")
    with pytest.raises(InstallError, match=f"The writer {writer} may still INSERT on event_log"):
        give_rights(server, Roles(writer=writer))


def test_accounts_with_a_host_are_quoted_in_two_parts(server: Engine) -> None:
    run(server, *USR)
    printed = rights_script(give_rights(server, Roles(installer="in'st@10.0.0.%"), tables=["usr"], dry=True))
    assert "GRANT TRIGGER, SELECT ON usr TO `in'st`@`10.0.0.%`" in printed


def test_a_server_that_only_reads_is_told(server: Engine) -> None:
    install(server)
    run(server, "SET GLOBAL read_only = 1")
    try:
        config = Config(source=SourceConfig(url=server.url.render_as_string(hide_password=False)))
        told = {point.name: point for point in check(lambda: config)}
    finally:
        run(server, "SET GLOBAL read_only = 0")
    assert (told["writing"].level, told["writing"].exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "read_only" in told["writing"].said
