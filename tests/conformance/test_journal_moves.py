"""From marks to the journal and back: each output lacks afterwards what it lacked before, and gets it once."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import Engine, event, inspect
from sqlalchemy.exc import PendingRollbackError

from eventlog.capture.install import revisions, uninstall, upgrade, upgrade_sql
from eventlog.core.errors import DataError, InstallError, OccupiedError
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import Marks
from eventlog.sql.names import NEWEST_MIGRATION, LogNames
from tests.conformance.moved_logs import MovedLog

SEEDS = range(6)
"""Logs that have lived: tests/corpora/moved."""


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", SEEDS)
def test_each_output_lacks_what_its_target_has_not(engine: Engine, seed: int) -> None:
    made = MovedLog(engine, seed)
    upgrade(engine)
    made.check_places()
    made.publish_with_journal()
    made.judge()


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", SEEDS)
def test_it_goes_back_where_marks_can_say_it_or_leaves_all_as_it_is(engine: Engine, seed: int) -> None:
    made = MovedLog(engine, seed)
    upgrade(engine)
    made.check_places()
    made.some_turns()
    before = made.tables()
    try:
        upgrade(engine, to="0006")
    except InstallError as error:
        refused = error.message
    else:
        refused = ""
    if refused:
        assert re.search("may be there|cannot say that", refused)
        assert made.tables() == before
        made.publish_with_journal()
    else:
        upgrade(engine)
        made.check_places()
        made.publish_with_journal()
    made.judge()


class KilledError(BaseException):
    """The process dies."""


def test_an_upgrade_that_is_killed_at_any_statement_can_be_run_again(engine: Engine) -> None:
    made = MovedLog(engine, 1)
    upgrade(engine, to="0005")
    statuses, number, seen = made.table.statuses(), 0, 0

    def die(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise KilledError

    event.listen(engine, "before_cursor_execute", die)
    while True:
        number, seen = number + 3, 0
        try:
            upgrade(engine)
        except (KilledError, PendingRollbackError):  # the second where the session cannot be set back either
            continue
        break
    event.remove(engine, "before_cursor_execute", die)
    assert number > 30
    assert revisions(engine, LogNames())[0] == NEWEST_MIGRATION
    assert {number for number, status in made.table.statuses().items() if status == "N"} <= set(statuses)
    made.check_places()
    made.publish_with_journal()
    made.judge()


def test_nothing_is_moved_while_somebody_publishes(engine: Engine) -> None:
    made = MovedLog(engine, 0)
    lock = LogLock(made.log, 60.0)
    assert lock.take()
    with pytest.raises(InstallError, match="A publisher works on the event log event_log"):
        upgrade(engine)
    assert revisions(engine, LogNames())[0] == "0006"
    lock.leave()
    upgrade(engine)
    assert lock.take()
    with pytest.raises(InstallError, match="A publisher works on the event log event_log"):
        upgrade(engine, to="0006")
    lock.leave()
    upgrade(engine, to="0006")
    assert revisions(engine, LogNames())[0] == "0006"


def test_what_was_counted_by_tables_goes_back_as_numbers(engine: Engine) -> None:
    made = MovedLog(engine, 0)
    upgrade(engine)
    told = '{"7":{"shop.a":2,"shop.b":1},"8":4}'
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE event_log_output SET told = '{told}'")
    upgrade(engine, to="0006")
    with made.log.transaction() as connection:
        note = Marks(made.log).get(connection, "note: counted")
    counts = json.loads(note or "{}")["told"]
    assert counts
    assert all(one == {"7": 3, "8": 4} for one in counts.values())


def test_one_that_slept_meanwhile_has_lost_the_log(engine: Engine) -> None:
    made = MovedLog(engine, 0)
    slept = LogLock(made.log, 600.0)
    assert slept.take()
    made.table.run("UPDATE event_log_mark SET value = '2000-01-01T00:00:00.000 ' WHERE name = 'publisher'")
    upgrade(engine)
    with made.log.transaction() as connection, pytest.raises(OccupiedError):
        slept.assure(connection)
    slept.drop()


def test_a_note_of_an_output_that_nobody_serves_is_refused(engine: Engine) -> None:
    made = MovedLog(engine, 0)
    with made.log.transaction() as connection:
        Marks(made.log).set(connection, "note: gone", '{"done":"1"}')
    with pytest.raises(InstallError, match="a note of the output gone, which the last publisher did not have"):
        upgrade(engine)
    with made.log.transaction() as connection:
        Marks(made.log).set(connection, "note: far", '{"done":')
        Marks(made.log).clear(connection, "note: gone")
    with pytest.raises(DataError, match="A mark of the log cannot be read"):
        upgrade(engine)


def test_what_has_to_be_moved_is_not_printed_as_a_script(engine: Engine) -> None:
    made = MovedLog(engine, 5)
    held = made.table.ask("SELECT record_id FROM event_log_outcome WHERE held <> 0 ORDER BY record_id")
    with pytest.raises(InstallError, match="no script can do that"):
        upgrade_sql(engine)
    upgrade(engine)
    assert made.table.ask("SELECT record_id FROM event_log_hold ORDER BY record_id") == held != []
    with pytest.raises(InstallError, match="no script can do that"):
        upgrade_sql(engine, to="0006")


def test_a_log_with_all_of_it_can_be_taken_off(engine: Engine) -> None:
    MovedLog(engine, 2)
    upgrade(engine)
    uninstall(engine, purge=True)
    assert sorted(inspect(engine).get_table_names()) == ["event_log", "usr"]  # that was there before
