"""Writers fail, give up, commit late and number out of order; tables and triggers change meanwhile: only what stands is published.

And all of it: no change is lost in between.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture import Style, TriggerOptions, track, trigger_states
from eventlog.core.model import Document, Outcome
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.sql.names import LogNames
from eventlog.xds.write import XdsFormat
from tests.hardening.crash import prepare, waiting
from tests.hardening.quantity import scaled
from tests.hardening.replaying import Store, account_for_log, filled, replay_xds, tables
from tests.integration.publishing import config_of, in_thread, until
from tests.support.logged import run
from tests.support.memory import UnaskedSink

USERS = 8
LAST = 99
"""A user of whom nobody knows but the one who commits last."""

AT_A_TIME = 50
"""Numbers that a session takes at once."""

DEADLOCK = "40P01"


class Received(UnaskedSink):
    """A receiver that keeps each document once, in the order in which they came."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}

    def output(self) -> list[Output]:
        return [Output(format=XdsFormat(batch_size=3), sink=self)]

    def last(self) -> str:
        return next(reversed(self.documents), "")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        for document in documents:
            self.documents.setdefault(document.id, document.body)
        return ()

    def store(self, engine: Engine) -> Store:
        """What the documents say, once the log is accounted for."""
        store, told = replay_xds(self.documents.values())
        account_for_log(engine, told)
        return store

    def words(self, *words: str) -> set[str]:
        """Which of these are a value in a document."""
        said = b"".join(self.documents.values()).decode()
        return {word for word in words if f">{word}<" in said}


@contextmanager
def published(engine: Engine, folder: Path) -> Iterator[Received]:
    """A publisher at work until the block ends and no row waits."""
    received = Received()
    config = config_of(engine, folder, query_limit=5, polling_interval=1)
    with in_thread(Publisher(config, outputs=received.output())):
        yield received
        until(lambda: not waiting(engine), "all is published")


def users(engine: Engine) -> None:
    for idu in (*range(USERS), LAST):
        run(engine, f"INSERT INTO usr VALUES ({idu}, 'first', NULL)")


def name(connection: Connection, idu: int, word: str) -> None:
    """Gives a user another first name."""
    connection.execute(text("UPDATE usr SET fname = :word WHERE idu = :idu"), {"word": word, "idu": idu})


def counted(engine: Engine, condition: str) -> int:
    """How many rows of the log there are for which this is true."""
    with engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM event_log WHERE {condition}")).scalar_one())


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["field", "row-back", "field-back"])
def test_nothing_of_an_aborted_transaction_is_published(postgresql: Engine, tmp_path: Path, style: str) -> None:
    """Aborted by a rollback, to a savepoint too, by a lock that somebody has, and by a row that changed since the snapshot."""
    prepare(postgresql, style)
    users(postgresql)
    with published(postgresql, tmp_path) as received, postgresql.connect() as late:
        name(late, LAST, "late")
        for number in range(scaled(3)):
            abort(postgresql, number)
        until(lambda: counted(postgresql, "status = 'N'") == 0, "what is committed is published")
        late.commit()
    last_of_others = f"SELECT max(record_id) FROM event_log WHERE table_key <> 'idu={LAST}'"
    assert counted(postgresql, f"table_key = 'idu={LAST}' AND record_id < ({last_of_others})"), "it came late"
    assert received.store(postgresql) == tables(postgresql)
    assert received.words("rolled back", "to a savepoint", "locked", "overtaken") == set()
    if style == "field":
        assert received.words("late", "before", "after", "quick") == {"late", "before", "after", "quick"}


def abort(engine: Engine, number: int) -> None:
    """Transactions that end in vain, beside some that do not."""
    with engine.connect() as connection:
        name(connection, 0, "rolled back")
        connection.rollback()
        name(connection, 1, "before")
        with connection.begin_nested() as savepoint:
            name(connection, 2, "to a savepoint")
            savepoint.rollback()
        name(connection, 3, "after")
        connection.commit()
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as slow:
        name(slow, 4, "overtaken")
        with engine.begin() as quick:
            name(quick, 5, "quick")
        with pytest.raises(DBAPIError, match="could not serialize access"):
            name(slow, 5, "overtaken")
    with engine.connect() as one, engine.connect() as other:
        name(one, 6, f"holds {number}")
        other.exec_driver_sql("SET LOCAL lock_timeout = '20ms'")
        name(other, 7, "locked")
        with pytest.raises(DBAPIError, match="lock timeout"):
            name(other, 6, "locked")
        one.commit()


@pytest.mark.in_turn
def test_numbers_that_sessions_keep_for_themselves_lose_nothing(postgresql: Engine, tmp_path: Path) -> None:
    prepare(postgresql, "field")
    users(postgresql)
    with postgresql.begin() as connection:
        [sequence] = connection.execute(text("SELECT pg_get_serial_sequence('event_log', 'record_id')")).one()
        connection.execute(text(f"ALTER SEQUENCE {sequence} CACHE {AT_A_TIME}"))
    with published(postgresql, tmp_path) as received:
        threads = [Thread(target=write_alone, args=(postgresql, own)) for own in range(USERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(180)
    with postgresql.connect() as connection:
        steps = "SELECT record_id < lag(record_id) OVER (ORDER BY event_time, record_id) AS back FROM event_log"
        back = int(connection.execute(text(f"SELECT count(*) FROM ({steps}) AS step WHERE back")).scalar_one())
    assert back > USERS, "the sessions took turns"
    assert received.store(postgresql) == tables(postgresql)
    written = {f"w{own}.{number}" for own in range(USERS) for number in range(15)}
    assert received.words(*written) == written


def write_alone(engine: Engine, own: int) -> None:
    """Transactions of one session on a user of its own."""
    mine = create_engine(engine.url)
    with mine.connect() as connection:
        for number in range(15):
            name(connection, own, f"w{own}.{number}")
            connection.commit()
            Event().wait(0.002)  # so that the others have their turn, too
    mine.dispose()


class Writers:
    """Applications that insert, update and delete users; the columns that they write may change meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.columns = ("fname", "lname")
        self.written = 0
        self.refusals: set[str] = set()
        self._stop = Event()

    @contextmanager
    def working(self, count: int) -> Iterator[None]:
        threads = [Thread(target=self._write, args=(seed,)) for seed in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(30)

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
                self.refusals.add(str(getattr(error.orig, "sqlstate", "")))

    def _change(self, connection: Connection, dice: random.Random) -> None:
        columns = self.columns
        values = {name: f"{name}{dice.random():.6f}" for name in columns} | {"idu": dice.randrange(12)}
        names, holes = ", ".join(columns), ", ".join(map(":{}".format, columns))
        statements = (
            f"INSERT INTO usr (idu, {names}) VALUES (:idu, {holes}) ON CONFLICT DO NOTHING",
            f"UPDATE usr SET {', '.join(f'{name} = :{name}' for name in columns)} WHERE idu = :idu",
            "DELETE FROM usr WHERE idu = :idu",
        )
        connection.execute(text(dice.choices(statements, (4, 6, 1))[0]), values)


def tracked(engine: Engine, style: str, *exclude: str) -> None:
    track(engine, ["usr"], TriggerOptions(style=Style(style), exclude=exclude), LogNames())


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["field", "row-back", "field-back"])
def test_columns_come_and_go_while_writers_write(postgresql: Engine, tmp_path: Path, style: str) -> None:
    prepare(postgresql, style)
    writers = Writers(postgresql)
    with published(postgresql, tmp_path) as received, writers.working(2):
        writers.more()
        run(postgresql, "ALTER TABLE usr ADD COLUMN mail VARCHAR(40)")
        writers.more()
        tracked(postgresql, style)
        writers.columns = ("fname", "mail")
        writers.more()
        tracked(postgresql, style, "lname")
        writers.more()
        until(lambda: not counted(postgresql, "status = 'N' AND column_name = 'lname'"), "its rows are published")
        run(postgresql, "ALTER TABLE usr DROP COLUMN lname")
        writers.more()
        tracked(postgresql, style)
        writers.more()
    assert writers.refusals <= {DEADLOCK}, "a trigger failed a writer"
    store = received.store(postgresql)
    for row in store.values():
        row.pop("lname", None)
    assert filled(store) == tables(postgresql)


@pytest.mark.in_turn
def test_styles_change_while_writers_write(postgresql: Engine, tmp_path: Path) -> None:
    prepare(postgresql, "row-back")
    writers = Writers(postgresql)
    with published(postgresql, tmp_path) as received, writers.working(3):
        for style in ("field", "image", "field-back", "field-replace", "row-back"):
            writers.more()
            tracked(postgresql, style)
            assert {state.state for state in trigger_states(postgresql) if state.table == "usr"} == {"CURRENT"}
    assert writers.refusals <= {DEADLOCK}
    assert received.store(postgresql) == tables(postgresql)


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
        assert received.store(engine) == tables(engine)
        tracked(engine, style, "lname")
        run(engine, "ALTER TABLE usr DROP COLUMN lname")
        run(engine, "UPDATE usr SET mail = NULL")
        assert publisher.run_once().errors == 0
    assert received.store(engine) == tables(engine) == {("usr", "idu=1"): {"fname": "Ida"}}
