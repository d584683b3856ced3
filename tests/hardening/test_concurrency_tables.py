"""Tables and triggers change, and a full load is killed, while writers write: no change is lost in between."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.track import track, trigger_states, untrack
from eventlog.daemon.publisher import Publisher
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.acceptance.command import ok
from tests.hardening.contending import DEADLOCK, Received
from tests.hardening.crash import prepare
from tests.hardening.ledger.runs import waiting
from tests.hardening.replaying import account_for_log, replay_xds, tables
from tests.integration.publishing import config_of, in_thread, until, url_of
from tests.support.forking import Forked
from tests.support.logged import run

USERS = 12
LOADED = 1000
"""Users that nobody logged."""

ASKED_FOR = "perpetrator = 'eventlog refresh'"
"""What is true of rows that a full load has written."""


class Writers:
    """Applications that insert, update and delete users; the columns that they write may change meanwhile."""

    def __init__(self, engine: Engine, columns: Sequence[str]) -> None:
        self.engine = engine
        self.columns = tuple(columns)
        self.written = 0
        self.refusals: list[str] = []
        self._stop = Event()

    @contextmanager
    def working(self, count: int = 2) -> Iterator[None]:
        threads = [Thread(target=self._write, args=(seed,)) for seed in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop()
            for thread in threads:
                thread.join(30)

    def stop(self) -> None:
        self._stop.set()

    def more(self, count: int = 15) -> None:
        """Waits until they have written some more."""
        there = self.written
        until(lambda: self.written >= there + count, "writers write")

    def _write(self, seed: int) -> None:
        dice = random.Random(seed)
        while not self._stop.wait(dice.random() / 200):
            try:
                with self.engine.begin() as connection:
                    for _ in range(dice.randint(1, 3)):
                        self._change(connection, dice)
                self.written += 1
            except DBAPIError as error:
                self.refusals.append(str(getattr(error.orig, "sqlstate", "")))

    def _change(self, connection: Connection, dice: random.Random) -> None:
        columns = self.columns
        values = {name: f"{name}{dice.random():.6f}" for name in columns} | {"idu": dice.randrange(USERS)}
        names, holes = ", ".join(columns), ", ".join(map(":{}".format, columns))
        statements = (
            f"INSERT INTO usr (idu, {names}) VALUES (:idu, {holes}) ON CONFLICT DO NOTHING",
            f"UPDATE usr SET {', '.join(f'{name} = :{name}' for name in columns)} WHERE idu = :idu",
            "DELETE FROM usr WHERE idu = :idu",
        )
        connection.execute(text(dice.choices(statements, (4, 6, 1))[0]), values)


def counted(engine: Engine, condition: str) -> int:
    """How many rows of the log there are for which this is true."""
    with engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM event_log WHERE {condition}")).scalar_one())


def tracked(engine: Engine, style: str, *exclude: str) -> None:
    track(engine, ["usr"], TriggerOptions(style=Style(style), exclude=exclude), LogNames())


@contextmanager
def published(engine: Engine, folder: Path) -> Iterator[Received]:
    """A publisher at work until the block ends and no row waits."""
    received = Received()
    config = config_of(engine, folder, query_limit=9, polling_interval=1)
    with in_thread(Publisher(config, outputs=received.output())):
        yield received
        until(lambda: not waiting(engine), "all is published")


def without(store: dict[tuple[str, str], dict[str, str]], *columns: str) -> dict[tuple[str, str], dict[str, str]]:
    kept = {place: {n: v for n, v in row.items() if n not in columns} for place, row in store.items()}
    return {place: row for place, row in kept.items() if row}


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["field", "row-back", "field-back"])
def test_columns_come_and_go_while_writers_write(postgresql: Engine, tmp_path: Path, style: str) -> None:
    prepare(postgresql, style)
    writers = Writers(postgresql, ["fname", "lname"])
    with published(postgresql, tmp_path) as received, writers.working():
        writers.more()
        run(postgresql, "ALTER TABLE usr ADD COLUMN mail VARCHAR(40)")
        writers.more()
        tracked(postgresql, style)
        writers.columns = ("fname", "mail")
        writers.more()
        tracked(postgresql, style, "lname")
        writers.more()
        until(
            lambda: not counted(postgresql, "status = 'N' AND column_name = 'lname'"),
            "what names the column is published",
        )
        run(postgresql, "ALTER TABLE usr DROP COLUMN lname")
        writers.more()
        tracked(postgresql, style)
        writers.more()
    assert {*writers.refusals} <= {DEADLOCK}, "a trigger failed a writer"
    store, told = replay_xds(received.bodies)
    assert without(store, "lname") == tables(postgresql)
    account_for_log(postgresql, told)


@pytest.mark.in_turn
def test_styles_change_while_writers_write(postgresql: Engine, tmp_path: Path) -> None:
    prepare(postgresql, "row-back")
    writers = Writers(postgresql, ["fname", "lname"])
    with published(postgresql, tmp_path) as received, writers.working(3):
        for style in ("field", "image", "field-back", "field-replace", "row-back"):
            writers.more()
            tracked(postgresql, style)
            states = {state.state for state in trigger_states(postgresql) if state.table == "usr"}
            assert states == {"CURRENT"}
    assert {*writers.refusals} <= {DEADLOCK}
    store, told = replay_xds(received.bodies)
    assert store == tables(postgresql)
    account_for_log(postgresql, told)


@pytest.mark.parametrize("style", ["field", "row-back"])
def test_a_publisher_that_rests_notices_that_columns_came_and_went(engine: Engine, tmp_path: Path, style: str) -> None:
    prepare(engine, style)
    received = Received()
    with Publisher(config_of(engine, tmp_path), outputs=received.output()) as publisher:
        assert publisher.run_once().events == 0
        run(engine, "ALTER TABLE usr ADD COLUMN mail VARCHAR(40)")
        tracked(engine, style)
        run(engine, "INSERT INTO usr VALUES (1, 'Ida', NULL, 'i@x')")
        assert publisher.run_once().errors == 0
        assert replay_xds(received.bodies)[0] == tables(engine)
        tracked(engine, style, "lname")
        run(engine, "ALTER TABLE usr DROP COLUMN lname")
        run(engine, "UPDATE usr SET mail = NULL")
        assert publisher.run_once().errors == 0
    store, told = replay_xds(received.bodies)
    assert store == tables(engine) == {("usr", "idu=1"): {"fname": "Ida"}}
    account_for_log(engine, told)


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["field", pytest.param("row-back", marks=pytest.mark.long)])
def test_a_full_load_that_is_killed_while_writers_write_is_complete_in_the_end(
    postgresql: Engine, tmp_path: Path, style: str
) -> None:
    prepare(postgresql, style)
    run(postgresql, "ALTER TABLE usr DISABLE TRIGGER USER")
    run(postgresql, f"INSERT INTO usr SELECT n, 'old' || n, NULL FROM generate_series(0, {LOADED - 1}) AS n")
    run(postgresql, "ALTER TABLE usr ENABLE TRIGGER USER")
    writers = Writers(postgresql, ["fname", "lname"])
    command = ("refresh", "usr", "--database", url_of(postgresql), "--chunk")
    with writers.working():
        writers.more()
        first = Forked(*command, "1", environment=os.environ)
        until(lambda: 0 < counted(postgresql, ASKED_FOR) < LOADED, "it is on its way")
        first.send_signal(signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
        assert 0 < counted(postgresql, ASKED_FOR) < LOADED
        with published(postgresql, tmp_path) as received:
            writers.more()
            ok(*command, "50")
            writers.more()
            writers.stop()
    assert {*writers.refusals} <= {DEADLOCK}
    store, told = replay_xds(received.bodies)
    assert store == tables(postgresql)
    assert len(store) >= LOADED - USERS
    account_for_log(postgresql, told)


@pytest.mark.in_turn
def test_what_nobody_logged_between_untrack_and_track_is_told_by_a_full_load(
    postgresql: Engine, tmp_path: Path
) -> None:
    prepare(postgresql, "field")
    writers = Writers(postgresql, ["fname", "lname"])
    with published(postgresql, tmp_path) as received:
        with writers.working():
            writers.more()
            untrack(postgresql, ["usr"], LogNames())
            run(postgresql, "INSERT INTO usr VALUES (500, 'nobody logs it', NULL)")
            writers.more()
            tracked(postgresql, "field")
            writers.more()
        until(lambda: not waiting(postgresql), "what was logged is published")
        assert ("usr", "idu=500") not in replay_xds(received.bodies)[0]
        ok("refresh", "usr", "--database", url_of(postgresql))
    assert {*writers.refusals} <= {DEADLOCK}
    store, told = replay_xds(received.bodies)
    held = tables(postgresql)
    assert {place: row for place, row in store.items() if place in held} == held
    account_for_log(postgresql, told)
