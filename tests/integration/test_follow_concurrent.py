"""DDL and the making of triggers exclude each other: no writer meets a trigger that names a column which is gone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.schema_watch import behind, follow
from eventlog.capture.track import track, trigger_states
from eventlog.capture.track import track as tracking
from eventlog.core.errors import EventlogError
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.following import ChangingTable
from tests.support.logged import logged, run

SECONDS = 3.0
PATIENCE_SECONDS = 90.0
WRITERS = 3
ENOUGH = 5


@contextmanager
def threads(*works: Callable[[Event], None]) -> Iterator[list[str]]:
    """Work that goes on beside; what it was ended by."""
    ended, errors = Event(), list[str]()

    def working(work: Callable[[Event], None]) -> None:
        try:
            work(ended)
        except Exception as error:  # noqa: BLE001  # it is told where the test looks
            errors.append(f"{type(error).__name__}: {error}")

    running = [Thread(target=working, args=(work,), daemon=True) for work in works]
    for thread in running:
        thread.start()
    try:
        yield errors
    finally:
        ended.set()
        for thread in running:
            thread.join(60)


def write(engine: Engine, number: int) -> Callable[[Event], None]:
    """Inserts, updates and deletes a row of its own, whatever the table looks like; each of them must succeed."""

    def work(ended: Event) -> None:
        while not ended.is_set():
            for sql in (
                f"INSERT INTO usr (idu, secret) VALUES ({number}, 'x')",
                f"UPDATE usr SET secret = 'y' WHERE idu = {number}",
                f"DELETE FROM usr WHERE idu = {number}",
            ):
                with engine.begin() as connection:
                    connection.execute(text(sql))

    return work


def followed(engine: Engine, count: list[int]) -> Callable[[Event], None]:
    """What a publisher with `follow` does at each poll, without waiting for the next."""

    def work(ended: Event) -> None:
        while not ended.is_set():
            try:
                told = [follow(engine, LogNames(), owner) for owner in behind(trigger_states(engine))]
            except (EventlogError, DBAPIError):
                continue  # a table that changes while it is read is read at the next poll
            count[0] += sum(one.error is None for one in told)

    return work


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD])
def test_writers_never_fail_while_tables_change_and_a_publisher_follows(postgresql: Engine, style: Style) -> None:
    install(postgresql)
    seed = random.SystemRandom().randrange(10**6)
    table, count, altered = ChangingTable(postgresql, seed), [0], 0
    track(postgresql, ["usr"], TriggerOptions(style=style, follow_ddl=True))
    writers = [write(postgresql, number) for number in range(10, 10 + WRITERS)]
    with threads(*writers, followed(postgresql, count)) as errors:
        begun = time.monotonic()
        # A machine with much else to do gets longer, until enough has happened.
        while not errors and time.monotonic() < begun + (
            SECONDS if min(altered, count[0]) > ENOUGH else PATIENCE_SECONDS
        ):
            table.change()
            altered += 1
    assert errors == [], f"seed {seed}, after {altered} changes"
    assert min(altered, count[0]) > ENOUGH
    assert {one.state for one in track(postgresql, ["usr"])} == {TriggerCondition.CURRENT}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "style, change",
    [
        (Style.IMAGE, "DROP COLUMN a1"),
        (Style.FIELD, "RENAME COLUMN a1 TO b1"),
        (Style.ROW_BACK, "RENAME TO person"),
        (Style.IMAGE, "ADD COLUMN b1 TEXT"),
    ],
)
def test_who_alters_a_table_that_is_being_tracked_waits(
    postgresql: Engine, monkeypatch: pytest.MonkeyPatch, style: Style, change: str
) -> None:
    """The table is altered, if it can be, after it was looked at and before its triggers are made."""
    install(postgresql)
    ChangingTable(postgresql, 1)
    track(postgresql, ["usr"], TriggerOptions(style=Style.FIELD_BACK, follow_ddl=True))
    alter = Thread(target=run, args=(postgresql, f"ALTER TABLE usr {change}"), daemon=True)
    waited = []
    needed = tracking.__globals__["write_needed"]

    def meanwhile(*arguments: Any) -> Any:
        found = list(needed(*arguments))
        run(postgresql, "INSERT INTO usr (idu, secret) VALUES (7, 'a writer goes on')")
        alter.start()
        alter.join(0.3)
        waited.append(alter.is_alive())
        return found

    monkeypatch.setitem(tracking.__globals__, "write_needed", meanwhile)
    track(postgresql, ["usr"], TriggerOptions(style=style, follow_ddl=True))
    alter.join(30)
    assert (waited, alter.is_alive()) == ([True], False)
    name = "person" if "person" in change else "usr"
    run(postgresql, f"UPDATE {name} SET secret = 'z' WHERE idu = 7", f"DELETE FROM {name} WHERE idu = 7")
    assert any(row[1] == "idu=7" for row in logged(postgresql))
