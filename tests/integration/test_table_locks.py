"""A table that others work with: its writers wait two seconds at most, and whoever tracks it hears who has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event as Flag
from threading import Thread

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture import table_locks
from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.table_locks import TableInUseError, find_holders, say_once, try_while_in_use
from eventlog.capture.track import track, trigger_states
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import until

MADE = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))"


@pytest.fixture(params=["postgresql", "mariadb"])
def usr(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine: Engine = request.getfixturevalue(request.param)
    with engine.begin() as connection:
        connection.execute(text(MADE))
    install(engine)
    monkeypatch.setattr(table_locks, "WAIT_SECONDS", 20.0)
    return engine


@contextmanager
def used(engine: Engine) -> Iterator[Flag]:
    """Somebody has a row of the table in a transaction, until the flag is set."""
    done = Flag()
    with engine.connect() as connection:
        connection.execute(text("INSERT INTO usr VALUES (1, 'a')"))

        def end() -> None:
            done.wait(60)
            connection.commit()

        ending = Thread(target=end)
        ending.start()
        try:
            yield done
        finally:
            done.set()
            ending.join()


def test_writers_go_on_while_somebody_waits_to_track_their_table(usr: Engine) -> None:
    waits: list[float] = []
    said: list[str] = []
    tracked = Flag()

    def write() -> None:
        number, other = 2, create_engine(usr.url)
        with other.connect() as connection:
            while not tracked.is_set():
                began = time.monotonic()
                connection.execute(text("INSERT INTO usr VALUES (:number, 'b')"), {"number": number})
                connection.commit()
                waits.append(time.monotonic() - began)
                number += 1
                time.sleep(0.05)
        other.dispose()

    def work() -> None:
        try_while_in_use(lambda: track(usr, ["usr"]), usr, said.append)
        tracked.set()

    with used(usr) as done:
        threads = [Thread(target=work), Thread(target=write)]
        for thread in threads:
            thread.start()
        try:
            # Twice: the writer has had its turn between two attempts.
            until(lambda: len(said) >= 2, "two attempts")
        finally:
            done.set()
            for thread in threads:
                thread.join(60)
    assert {state.state for state in trigger_states(usr)} == {TriggerCondition.CURRENT}
    assert 1.0 < max(waits) < 3.5, "a writer waits behind one attempt, and behind no other"
    assert all(told.startswith("Others work with the table: connection ") for told in said), said
    with usr.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM event_log")).scalar() is not None


def test_who_has_the_table_is_named_when_it_is_given_up(usr: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_locks, "WAIT_SECONDS", 1.0)
    track(usr, ["usr"])
    with used(usr), pytest.raises(TableInUseError, match="did not come within 1 s: connection ") as told:
        try_while_in_use(lambda: track(usr, ["usr"], TriggerOptions(style=Style.FIELD)), usr, str)
    assert told.value.may_pass
    assert {state.state for state in trigger_states(usr)} == {TriggerCondition.CURRENT}


def test_only_who_has_a_named_table_is_told(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.execute(text(MADE))
        connection.execute(text("CREATE TABLE usr_2 (id INTEGER)"))
    with postgresql.connect() as connection:
        connection.execute(text("SELECT COUNT(*) FROM usr_2"))
        assert find_holders(postgresql, "DROP TRIGGER x ON public.usr") == []
        [holder] = find_holders(postgresql, "DROP TRIGGER x ON public.usr_2")
        assert holder.endswith("has usr_2")
        # Who reads keeps nobody from making a trigger.
        assert find_holders(postgresql, "CREATE TRIGGER x AFTER INSERT ON usr_2") == []


def test_what_was_said_once_is_not_said_again() -> None:
    said: list[str] = []
    say = say_once(said.append)
    for words in ("a", "b", "a"):
        say(words)
    assert said == ["a", "b"]
