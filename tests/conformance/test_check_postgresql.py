"""What `eventlog check` finds on PostgreSQL: missing rights, silent triggers, standbys, forgotten transactions, indexes."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.check.indexes import index_points, newest_points
from eventlog.check.point import Point, PointLevel
from eventlog.check.server import local_time, server_points
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE
from eventlog.sinks.outputs import StdoutOutput
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import make_log
from tests.support import servers
from tests.support.logged import USR, run


@pytest.fixture
def usr(postgresql: Engine) -> Engine:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"])
    return postgresql


@contextmanager
def role(admin: Engine, name: str) -> Iterator[Engine]:
    """Connect as a role with nothing but its login."""
    run(admin, f"CREATE ROLE {name} LOGIN")
    engine = create_engine(admin.url.set(username=name))
    try:
        yield engine
    finally:
        engine.dispose()
        run(admin, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def found(engine: Engine, name: str, *, deletes: bool = False) -> list[Point]:
    """Find the points of this name other than OK."""
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False))
    config = Config(source=source, publisher=PublisherConfig(delete_from_log=deletes))
    return [point for point in check(lambda: config) if point.name == name and point.level is not PointLevel.OK]


def test_every_right_that_a_publisher_lacks_is_told_with_the_command_that_gives_it(usr: Engine) -> None:
    with role(usr, "check_publisher") as publisher:
        lacking = found(publisher, "rights", deletes=True)
        assert {point.said.partition(" cannot")[0] for point in lacking} == {
            "The event log",
            "The state table event_log_outcome",
            "The state table event_log_mark",
            "The state table event_log_seen",
            "The registry",
        }
        assert all(
            point.exit_code == EX_CONFIG and "eventlog rights --publisher" in str(point.mend) for point in lacking
        )
        give_rights(usr, Roles(publisher="check_publisher"))
        assert found(publisher, "rights", deletes=True) == []


def test_a_trigger_that_is_gone_or_asleep_fails(usr: Engine) -> None:
    run(usr, "ALTER TABLE usr DISABLE TRIGGER event_log_usr_insert", "DROP TRIGGER event_log_usr_update ON usr")
    told = {point.said: point for point in found(usr, "triggers")}
    assert set(told) == {
        "The trigger event_log_usr_insert on usr is DISABLED.",
        "The trigger event_log_usr_update on usr is MISSING.",
    }
    for point in told.values():
        assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_CONFIG)
        assert point.mend == "Run `eventlog track public.usr --events row-back --reset`."
    track(usr, ["public.usr"])
    assert found(usr, "triggers") == []


def test_sessions_whose_triggers_are_silent_are_told(usr: Engine) -> None:
    with role(usr, "check_replica"):
        run(usr, f"ALTER ROLE check_replica IN DATABASE {usr.url.database} SET session_replication_role = 'replica'")
        (point,) = found(usr, "writing")
    assert point.level is PointLevel.WARNING
    assert f"of check_replica in {usr.url.database} run with session_replication_role=replica" in point.said


def test_a_user_whose_transactions_only_read_is_told(usr: Engine) -> None:
    with role(usr, "check_reader") as reader:
        run(usr, "ALTER ROLE check_reader SET default_transaction_read_only = on")
        give_rights(usr, Roles(publisher="check_reader"))
        (point,) = found(reader, "writing")
        assert "default_transaction_read_only" in point.said
        assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
        assert found(reader, "rights")


def test_a_standby_is_told() -> None:
    with standby() as engine:
        (point,) = found(engine, "writing")
    assert point.said == "The server is a standby that only reads."
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)


@contextmanager
def standby() -> Iterator[Engine]:
    """Start a standby server of its own; it has no primary, but it answers."""
    binaries = servers.postgres_binaries()
    if binaries is None:
        servers.absent("postgres", "it has no binaries")
    folder = Path(tempfile.mkdtemp(prefix="eventlog-pg-"))
    server = None
    try:
        owner = servers.server_owner(folder)
        servers._initialise(binaries, folder, owner)
        (folder / "data" / "standby.signal").touch()
        port = servers.free_port()
        server = servers._started(binaries, folder, port, owner)
        engine = create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres")
        yield engine
        engine.dispose()
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=servers.PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_forgotten_transaction_is_told(usr: Engine) -> None:
    with usr.connect() as forgotten:
        pid = forgotten.execute(text("SELECT pg_backend_pid()")).scalar_one()
        points = {point.name: point for point in server_points(usr, local_time, long=0)}
    assert points["transactions"].level is PointLevel.WARNING
    assert f"Process {pid} of postgres has had a transaction open" in points["transactions"].said


def test_sessions_that_cannot_be_seen_are_counted(usr: Engine) -> None:
    with role(usr, "check_blind") as blind, usr.connect() as open_one:
        open_one.execute(text("SELECT 1"))
        points = {point.name: point for point in server_points(blind, local_time)}
    assert points["transactions"].level is PointLevel.OK
    assert "hidden from this one" in points["transactions"].said


def test_changes_that_another_server_sends_are_told_because_they_fire_no_trigger(usr: Engine) -> None:
    assert found(usr, "writing") == []
    options = "connect = false, slot_name = NONE, enabled = false, create_slot = false"
    run(usr, f"CREATE SUBSCRIPTION from_elsewhere CONNECTION 'dbname=x' PUBLICATION p WITH ({options})")
    (point,) = found(usr, "writing")
    assert point.level is PointLevel.WARNING
    assert point.said == "What the subscription from_elsewhere repeats from another server fires no triggers."
    with role(usr, "check_blind") as blind:
        give_rights(usr, Roles(publisher="check_blind"))
        assert [one.said for one in found(blind, "writing")] == [point.said]
    run(usr, "DROP SUBSCRIPTION from_elsewhere")


def test_a_schema_that_is_not_there_is_a_failure(usr: Engine) -> None:
    config = Config(source=SourceConfig(url=usr.url.render_as_string(hide_password=False), schema="pubic"))
    (point,) = [one for one in check(lambda: config) if one.level is PointLevel.FAILURE]
    assert (point.name, point.exit_code) == ("schema", EX_CONFIG)
    assert (point.said, point.mend) == (
        "source.schema is pubic, and the database has no such schema.",
        "Did you mean public?",
    )


def test_a_log_in_a_schema_that_the_login_may_not_use_is_a_failure_and_ends_nothing(usr: Engine) -> None:
    run(usr, "CREATE SCHEMA closed")
    install(usr, LogNames(schema="closed"))
    with role(usr, "check_blind") as blind:
        url = blind.url.render_as_string(hide_password=False)
        config = Config(source=SourceConfig(url=url, log="closed.event_log"), output=(StdoutOutput(),))
        points = list(check(lambda: config))
    (point,) = [one for one in points if one.level is PointLevel.FAILURE]
    assert (point.name, point.exit_code) == ("log", EX_UNAVAILABLE)
    assert "permission denied for schema closed" in point.said
    assert "eventlog rights --publisher" in str(point.mend)
    assert points[-1].name == "output 1"


LOG = LogNames()
MANY = """
INSERT INTO event_log (record_id, status, table_key, event_type, table_name)
SELECT n, CASE WHEN n % 1000 = 0 THEN 'N' ELSE 'S' END, 'idu=1', 6, 'usr' FROM generate_series(1, 20000) AS n
"""
POLL = "EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM event_log WHERE status = 'N' ORDER BY record_id LIMIT 100"
INDEXES = [
    ("(record_id) WHERE status = 'N'", True),
    ("(table_key) WHERE status IN ('N', 'E')", True),
    ("(record_id) WHERE status <> 'S'", True),
    ("(status)", True),
    ("(status DESC, table_key)", True),
    ("USING hash (status)", True),
    ("(record_id) WHERE status = 'S'", False),
    ("(record_id) WHERE status <> 'N'", False),
    ("(record_id) WHERE status = 'N' AND event_type = 6", False),
    ("(status) WHERE event_type = 4", False),
    ("(lower(status))", False),
    ("(record_id, status)", False),
    ("(record_id)", False),
]


def is_told(engine: Engine) -> bool:
    """Return True if the missing index is warned of."""
    (point,) = index_points(engine, LOG)
    assert (point.level is PointLevel.WARNING) == ("Let a DBA run: CREATE INDEX" in str(point.mend))
    return point.level is PointLevel.WARNING


@pytest.mark.parametrize("index, serves", INDEXES)
def test_an_index_counts_when_the_planner_can_use_it(postgresql: Engine, index: str, serves: bool) -> None:
    make_log(postgresql)
    run(postgresql, MANY, f"CREATE INDEX theirs ON event_log {index}", "ANALYZE event_log")
    with postgresql.connect() as connection:
        plan = "\n".join(connection.execute(text(POLL)).scalars())
        # An index on the number alone gives the order, and with it all rows that are done.
        passed_over = sum(map(int, re.findall(r"Rows Removed by Filter: (\d+)", plan)))
        assert ("theirs" in plan and passed_over < 100) is serves, plan
    assert is_told(postgresql) is not serves


def test_an_index_that_was_not_finished_serves_nobody(postgresql: Engine) -> None:
    make_log(postgresql)
    run(postgresql, "INSERT INTO event_log (record_id, status) VALUES (1, 'N'), (2, 'N')")
    alone = postgresql.execution_options(isolation_level="AUTOCOMMIT")
    with alone.connect() as connection, pytest.raises(DBAPIError, match="could not create unique index"):
        connection.execute(text("CREATE UNIQUE INDEX CONCURRENTLY theirs ON event_log (status)"))
    assert is_told(postgresql)


@pytest.mark.parametrize("index, serves", [INDEXES[0], INDEXES[3], *INDEXES[6:9], INDEXES[12]])
def test_so_it_does_on_sqlite(sqlite: Engine, index: str, serves: bool) -> None:
    make_log(sqlite)
    run(sqlite, f"CREATE INDEX theirs ON event_log {index}")
    assert is_told(sqlite) is not serves


def test_a_log_without_an_index_of_its_processed_rows_is_told_what_makes_one(postgresql: Engine) -> None:
    make_log(postgresql)
    run(postgresql, "ALTER TABLE event_log DROP CONSTRAINT IF EXISTS event_log_pkey", *_indexes_gone(postgresql))
    (point,) = newest_points(postgresql, LOG)
    assert point.level is PointLevel.WARNING
    assert point.mend is not None
    assert "CREATE INDEX CONCURRENTLY event_log_done" in point.mend
    with postgresql.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE INDEX event_log_new ON event_log (record_id) WHERE status = 'N'"))
        connection.execute(text(point.mend.partition(": ")[2]))
    assert [*newest_points(postgresql, LOG)] == []


def _indexes_gone(engine: Engine) -> list[str]:
    return [f"DROP INDEX {index['name']}" for index in inspect(engine).get_indexes("event_log")]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "statement",
    [
        "REVOKE SELECT ON event_log FROM check_less",
        "REVOKE UPDATE (status) ON event_log FROM check_less",
        "REVOKE DELETE ON event_log FROM check_less",
        "REVOKE INSERT ON event_log_outcome FROM check_less",
        "REVOKE UPDATE ON event_log_outcome FROM check_less",
        "REVOKE INSERT ON event_log_mark FROM check_less",
        "REVOKE UPDATE ON event_log_mark FROM check_less",
        "REVOKE DELETE ON event_log_mark FROM check_less",
        "REVOKE SELECT ON usr_phone FROM check_less",
    ],
)
def test_no_right_that_is_given_could_be_left_out(usr: Engine, statement: str) -> None:
    with role(usr, "check_less") as publisher:
        give_rights(usr, Roles(publisher="check_less"))
        run(usr, statement)
        assert found(publisher, "rights", deletes=True)
