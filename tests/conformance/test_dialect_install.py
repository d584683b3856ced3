"""Installing on every database: what is made, what is refused, what is adopted, and taking it off again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, inspect, text
from sqlalchemy.exc import DataError, IntegrityError, OperationalError

from eventlog.capture.install import find_migration, install, uninstall, uninstall_sql, upgrade, upgrade_sql
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import InstallError
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import NEW_ORDER, NEWEST_MIGRATION, OLD_ORDER, STANDARD, TRANSACTION, LogNames
from tests.conformance.cases import FIELDS
from tests.support.logged import USR, run
from tests.support.servers import mysqls

ROW: dict[str, object] = {"table_key": "idu=1", "event_type": 6, "table_name": "usr"}
BEHIND = {"postgresql": (TRANSACTION, "eventlog_context")}
"""Columns that a log of one's own has behind the ten; elsewhere it has the last one."""
COMPANIONS = (
    *("setup", "tracked", "trigger", "relation", "column", "outcome", "mark", "schema", "seen", "version"),
    *("batch", "output", "planned", "parked", "hold", "answer", "association"),
)


def columns_of(engine: Engine, table: str) -> tuple[str, ...]:
    return tuple(column["name"] for column in inspect(engine).get_columns(table))


def tables_of(engine: Engine) -> list[str]:
    return sorted(inspect(engine).get_table_names())


def is_installed(engine: Engine, names: LogNames | None = None) -> bool:
    return find_migration(engine, names or LogNames()) is not None


def write(engine: Engine, row: dict[str, object], log: str = "event_log") -> None:
    with engine.begin() as connection:
        values = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO {log} ({', '.join(row)}) VALUES ({values})"), row)


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT COUNT(*) FROM event_log")).scalar_one())


@pytest.mark.parametrize("order", [NEW_ORDER, OLD_ORDER])
def test_the_log_has_its_columns_in_order_and_its_companions(engine: Engine, order: tuple[str, ...]) -> None:
    install(engine, order=order)
    assert columns_of(engine, "event_log") == order + BEHIND.get(engine.dialect.name, ("eventlog_context",))
    # Sessions of SQLite have no variables, so who is behind a change stands in a table.
    companions = (*COMPANIONS, "context") if engine.dialect.name == "sqlite" else COMPANIONS
    assert tables_of(engine) == sorted(["event_log", *(f"event_log_{ending}" for ending in companions)])
    assert is_installed(engine)
    assert "CREATE" not in upgrade_sql(engine)


def test_a_row_gets_its_number_its_letter_and_its_time(engine: Engine) -> None:
    install(engine)
    write(engine, ROW)
    write(engine, ROW)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT record_id, status, event_time FROM event_log ORDER BY 1")).all()
    assert [(number, letter, time is None) for number, letter, time in rows] == [(1, "N", False), (2, "N", False)]


WRONG: tuple[tuple[str, object], ...] = (
    *(("record_id", 0), ("record_id", -1), ("status", "n"), ("status", " ")),
    *(("event_type", 0), ("event_type", 9), ("event_type", 1), ("event_type", None)),
    *(("event_time", None), ("table_key", None), ("table_name", None)),
)
RIGHT: tuple[dict[str, object], ...] = (
    {"status": "X"},
    {"event_type": 1, "column_name": "fname"},
    {"table_key": 'a="x=%"+b='},
    {"perpetrator": None},
)


def is_judged(engine: Engine, column: str, value: object) -> bool:
    """Return True if the log itself refuses a value; the publisher refuses the others."""
    dialect = dialect_of(engine)
    if column == "record_id" and not dialect.ddl.checks_identity:
        return False  # of a column that numbers itself no CHECK of MariaDB and MySQL may speak
    # PostgreSQL's log judges letter and kind by their types.
    return not (dialect.types.domain and (column == "record_id" or (column, value) == ("event_type", 1)))


def test_the_log_takes_what_a_valid_writer_may_write_and_nothing_else(engine: Engine, tmp_path: Path) -> None:
    """What it does not judge itself ends as E, with the reason."""
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], FIELDS)
    for right in RIGHT:
        write(engine, ROW | right)
    for column, value in WRONG:
        if is_judged(engine, column, value):
            # PyMySQL has no class of its own for a failed CHECK.
            refused = r"(?i)constraint|cannot be null|out of range"
            with pytest.raises((DataError, IntegrityError, OperationalError), match=refused):
                write(engine, ROW | {column: value})
    assert count(engine) == len(RIGHT)
    left = [(column, value) for column, value in WRONG if not is_judged(engine, column, value)]
    if engine.dialect.name == "mysql":
        left.remove(("record_id", 0))  # which draws the next number
    for column, value in left:
        write(engine, ROW | {column: value, "perpetrator": "left"})
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False))
    output = FilesOutput(path=str(tmp_path))
    with Publisher(
        Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(output,))
    ) as publisher:
        publisher.run_once()
    with engine.connect() as connection:
        told = connection.execute(
            text(
                "SELECT l.status, o.note FROM event_log l JOIN event_log_outcome o ON o.record_id = l.record_id"
                " WHERE l.perpetrator = 'left'"
            )
        ).all()
    assert len(told) == len(left)
    assert [one for one in told if one[0] != "E" or not re.search("must be positive|is missing", one[1])] == []


def test_installing_twice_changes_nothing(engine: Engine) -> None:
    install(engine)
    write(engine, ROW)
    install(engine, order=OLD_ORDER)
    assert columns_of(engine, "event_log")[: len(NEW_ORDER)] == NEW_ORDER
    upgrade(engine)
    assert count(engine) == 1


def test_uninstalling_is_refused_while_rows_wait_and_takes_all_of_one_log_off(engine: Engine) -> None:
    other = LogNames(table="Two", columns=(*STANDARD[:8], "Old", "select"))
    install(engine)
    install(engine, other)
    write(engine, ROW)
    with pytest.raises(InstallError, match=r"1 row of event_log still waits.*--purge"):
        uninstall(engine)
    uninstall(engine, purge=True)
    assert [is_installed(engine), is_installed(engine, other)] == [False, True]
    uninstall(engine, other)
    assert tables_of(engine) == []


def test_the_printed_statements_take_off_all_that_uninstalling_would(engine: Engine) -> None:
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], FIELDS)
    write(engine, ROW)
    with pytest.raises(InstallError, match=r"1 row of event_log still waits"):
        uninstall_sql(engine)
    script = uninstall_sql(engine, purge=True)
    assert is_installed(engine), "printing changes nothing"
    bare = re.sub(r"^(--.*|BEGIN;|COMMIT;)$", "", script, flags=re.MULTILINE)
    run(engine, *(part for part in re.split(r";\s*\n", bare) if part.strip()))
    assert tables_of(engine) == ["usr", "usr_phone"]
    run(engine, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO usr_phone VALUES (1, '22')")  # no trigger is left


def test_an_adopted_log_is_not_altered_and_outlives_uninstalling(engine: Engine) -> None:
    columns = "id INTEGER, st CHAR(1), kind INTEGER, at TIMESTAMP, who VARCHAR(9), tab VARCHAR(9), k VARCHAR(9)"
    run(engine, f"CREATE TABLE theirs ({columns}, c VARCHAR(9), o VARCHAR(9), n VARCHAR(9))")
    names = LogNames(table="theirs", columns=("id", "st", "kind", "at", "who", "tab", "k", "c", "o", "n"))
    before = str(inspect(engine).get_columns("theirs"))
    install(engine, names)
    write(engine, {"id": 7, "st": "S", "kind": 99}, "theirs")
    assert str(inspect(engine).get_columns("theirs")) == before
    assert "theirs;" not in uninstall_sql(engine, names)
    uninstall(engine, names)
    assert tables_of(engine) == ["theirs"]


def test_a_foreign_log_that_lacks_a_column_is_refused_by_name(engine: Engine) -> None:
    names = ", ".join(f"{name} VARCHAR(9)" for name in STANDARD if name != "table_key")
    run(engine, f"CREATE TABLE event_log ({names})")
    with pytest.raises(InstallError, match="no column table_key"):
        install(engine)
    assert tables_of(engine) == ["event_log"]


def test_what_is_not_installed_cannot_be_upgraded_or_taken_off(engine: Engine) -> None:
    for act in (upgrade, upgrade_sql, uninstall, uninstall_sql):
        with pytest.raises(InstallError, match="no event log event_log in this database"):
            act(engine)


class Killed(BaseException):
    """Ends a program between two statements."""


CHANGES = ("CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE")


def broken_off(engine: Engine, work: Callable[[], object], after: int) -> bool:
    """Kill the work before its change number `after` + 1; return False if it ends sooner."""
    seen = 0

    def look(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        nonlocal seen
        if statement.lstrip().upper().startswith(CHANGES):
            if seen == after:
                raise Killed
            seen += 1

    event.listen(engine, "before_cursor_execute", look)
    try:
        work()
    except Killed:
        return True
    finally:
        event.remove(engine, "before_cursor_execute", look)
    return False


@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("server", mysqls())
def test_what_breaks_off_again_and_again_comes_to_its_end_and_nobodys_log_is_lost(
    server: str, adopted: bool, request: pytest.FixtureRequest
) -> None:
    """Each statement is a transaction of its own there."""
    engine: Engine = request.getfixturevalue(server)
    install(engine, LogNames(table="other"))
    if adopted:
        run(engine, "CREATE TABLE event_log AS SELECT * FROM other")
    steps = itertools.cycle((1, 2, 3, 5))
    while broken_off(engine, lambda: install(engine), next(steps)):
        pass
    assert find_migration(engine, LogNames()) == NEWEST_MIGRATION
    indexes = {index["name"] for index in inspect(engine).get_indexes("event_log")}
    assert indexes == (set() if adopted else {"event_log_new"})
    with suppress(InstallError):  # the last that is left says of no migration
        while broken_off(engine, lambda: uninstall(engine), next(steps)):
            pass
    left = {table for table in tables_of(engine) if not table.startswith("other")}
    assert left - {"event_log_version"} == ({"event_log"} if adopted else set())


@pytest.mark.parametrize("table", ["event_log_planned", "event_log_setup", "event_log_tracked"])
def test_a_log_that_lost_a_table_is_not_said_to_be_installed(engine: Engine, table: str) -> None:
    install(engine)
    run(engine, f"DROP TABLE {table}")
    with pytest.raises(InstallError, match=f"was installed, and lacks {table} now"):
        install(engine)


def test_who_uninstalls_a_log_that_lost_its_triggers_is_told_so(engine: Engine) -> None:
    install(engine)
    run(engine, "DROP TABLE event_log_trigger")
    with pytest.raises(InstallError, match="was installed, and lacks event_log_trigger now"):
        uninstall(engine, purge=True)
