"""A full load while rows change, in one range or several: what consumers end with is what the table holds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import Resolved, SinkCapabilities
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.masks import bits_of_hex
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.refresh.chunks import Refresh, work_on
from eventlog.refresh.loads import RefreshPace, loads
from eventlog.refresh.ranges import RangeState
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sql.findlog import locate_log
from eventlog.sql.log import Log
from eventlog.tracked.options import Style
from eventlog.tracked.options import TriggerOptions as TrackOptions
from tests.integration.publishing import url_of
from tests.support.memory import UnaskedSink
from tests.support.servers import databases

Rows = dict[int, tuple[Any, ...]]
COUNT = 60


class Consumer(UnaskedSink):
    """Takes messages and keeps a table by them, as a program behind a topic does."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.operations: set[str] = set()
        self._last = self._plan = ""

    capabilities = SinkCapabilities(resolves=True)

    def resolve(self, plan: str) -> Resolved:
        return Resolved(last=self._plan, documents=None if plan and plan == self._plan else frozenset())

    def last(self) -> str:
        return self._last

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self._plan = plan
        for document in documents:
            assert isinstance(document, MessagesDocument)
            assert document.id > self._last
            self._last = document.id
            for message in document.messages:
                self._take(json.loads(message.value or b""))
        return ()

    def _take(self, told: dict[str, Any]) -> None:
        headers, data = told["headers"], told["data"]
        operation, key = headers["operation"], data["k"]
        self.operations.add(operation)
        if operation == "DELETE":
            self.rows.pop(key, None)
        elif operation == "UPDATE":
            known = bits_of_hex(headers["columnMask"])
            self.rows.setdefault(key, {}).update({n: v for i, (n, v) in enumerate(data.items()) if known >> i & 1})
        else:
            self.rows[key] = data


class Circle:
    """A table with rows that nobody logged, its triggers, a publisher and two consumers."""

    def __init__(self, engine: Engine, style: str) -> None:
        self.engine = engine
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, a VARCHAR(20), b INTEGER)"))
            connection.execute(
                text("INSERT INTO t VALUES (:k, :a, :b)"), [{"k": k, "a": f"a{k}", "b": k} for k in range(COUNT)]
            )
        install(engine)
        track(engine, ["t"], TrackOptions(style=Style(style)))
        with engine.connect() as connection:
            self.log = Log(engine, locate_log(connection, None))
        self.consumer = Consumer()
        self.config = Config(
            source=SourceConfig(url=url_of(engine)), publisher=PublisherConfig(allow_loopback=True, query_limit=17)
        )

    def publisher(self) -> Publisher:
        """A publisher with two outputs."""
        tables = DatabaseSink(DatabaseSettings(url=url_of(self.engine)))
        messages = MessageFormat(settings=MessageSettings(mode="bare"))
        outputs = [
            Output(format=ChangeTableFormat(), sink=tables),
            Output(format=messages, sink=self.consumer, name="messages"),
        ]
        return Publisher(self.config, outputs=outputs)

    def refresh(self, chunk: int, only: str = "") -> Iterator[RangeState]:
        """A refresh, from wherever the last one was broken off."""
        [load] = loads(self.engine, self.log.names, ["t"], None, None, only)
        work = Refresh(self.log, load, RefreshPace(chunk=chunk))
        return work.steps(work.begin())

    def publish(self) -> None:
        with self.publisher() as publisher:
            assert publisher.run_once().errors == 0

    def publish_all(self) -> None:
        with self.publisher() as publisher:
            for report in publisher.rounds(until_empty=True):
                assert report.errors == 0

    def rows(self, table: str) -> Rows:
        with self.engine.connect() as connection:
            return {row[0]: tuple(row) for row in connection.execute(text(f"SELECT k, a, b FROM {table}"))}

    def log_rows(self, letter: str) -> list[tuple[Any, ...]]:
        """The number and the perpetrator of each row with this letter."""
        asked = text("SELECT record_id, perpetrator FROM event_log WHERE status = :letter")
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(asked, {"letter": letter})]

    def check(self) -> None:
        """Nothing is missing, stale or left over."""
        self.publish_all()
        Mirrors(self.engine).apply()
        held = self.rows("t")
        assert self.rows("t__mirror") == held
        assert {key: (row["k"], row["a"], row["b"]) for key, row in self.consumer.rows.items()} == held
        assert "REFRESH" in self.consumer.operations


def change(connection: Connection, dice: random.Random) -> None:
    """Inserts, updates or deletes a row, or gives it another key."""
    values = {"k": dice.randrange(COUNT + 10), "other": dice.randrange(COUNT + 10), "a": f"n{dice.random():.6f}"}
    values["b"] = dice.choice([None, dice.randrange(1000)])
    step = dice.choice(
        [
            "INSERT INTO t SELECT :k, :a, :b FROM (SELECT 1 AS one) AS x WHERE NOT EXISTS (SELECT 1 FROM t WHERE k = :k)",
            "UPDATE t SET a = :a WHERE k = :k",
            "UPDATE t SET a = :a, b = :b WHERE k = :k",
            "DELETE FROM t WHERE k = :k",
            "key",
        ]
    )
    if step != "key":
        connection.execute(text(step), values)
    elif connection.execute(text("SELECT count(*) FROM t WHERE k = :other"), values).scalar_one() == 0:
        connection.execute(text("UPDATE t SET k = :other WHERE k = :k"), values)


def some_changes(engine: Engine, dice: random.Random, most: int) -> None:
    with engine.begin() as connection:
        for _ in range(dice.randint(0, most)):
            change(connection, dice)


def came_second(error: DBAPIError) -> bool:
    """Whether a row is there already, or two sessions waited for each other."""
    number = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return getattr(error.orig, "sqlstate", "") in ("23505", "40P01") or number in (1062, 1213)


def kept(work: Callable[[int], object], failures: list[Exception]) -> Callable[[int], None]:
    """The work of a thread, whose failure the test gets to see; who came second with a key tries again."""

    def run(number: int) -> None:
        tried = 0
        while tried < 1000:
            tried += 1
            try:
                work(number * 1000 + tried)
            except DBAPIError as error:
                if not came_second(error):
                    failures.append(error)
                    return
            except Exception as error:  # noqa: BLE001  # the test tells it
                failures.append(error)
                return
            else:
                return

    return run


def refresh(circle: Circle, chunk: int) -> Refresh:
    [load] = loads(circle.engine, circle.log.names, ["t"], None, None)
    return Refresh(circle.log, load, RefreshPace(chunk=chunk))


class Walks:
    """The ranges of a load, of which any may go on next, and which is broken off and gone on with at times."""

    def __init__(self, circle: Circle, dice: random.Random) -> None:
        self.circle = circle
        self.dice = dice
        self.counts: set[int] = set()
        self.go_on()

    def go_on(self) -> None:
        self.work = refresh(self.circle, self.dice.randint(1, 4))
        self.stands = self.work.begin(jobs=self.dice.randint(1, 4))
        self.counts.add(len(self.stands))
        self.walks = [self.work.write_chunks(stand) for stand in self.stands if not stand.done]

    def step(self) -> None:
        walk = self.dice.choice(self.walks)
        if next(walk, None) is None:
            self.walks.remove(walk)


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["row-back", "field", "field-back"])
def test_keys_cross_bounds_between_stretches_of_any_range(engine: Engine, style: str) -> None:
    circle, dice = Circle(engine, style), random.Random(7)
    load = Walks(circle, dice)
    while load.walks:
        some_changes(engine, dice, 4)
        if dice.random() < 0.1:
            load.go_on()
        load.step()
        some_changes(engine, dice, 3)
        if dice.random() < 0.5:
            circle.publish()
    load.work.end(load.stands)
    circle.check()
    assert max(load.counts) > 4
    assert refresh(circle, 4).begin() == (RangeState(total=len(circle.rows("t"))),)


@contextmanager
def at_work(threads: Sequence[Thread], done: Event) -> Iterator[None]:
    """Threads that work until the block is left, and have ended then."""
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["row-back", "field"])
@pytest.mark.parametrize("database", databases()[1:])
def test_writers_publisher_and_ranges_at_the_same_time(
    request: pytest.FixtureRequest, database: str, style: str
) -> None:
    engine: Engine = request.getfixturevalue(database)
    circle = Circle(engine, style)
    done = Event()
    failures: list[Exception] = []
    ranges: list[int] = []

    def write(seed: int) -> None:
        dice = random.Random(seed)
        while not done.is_set():
            some_changes(engine, dice, 5)

    def load(_: int) -> None:
        for chunk in (1, 2, 3):
            work = refresh(circle, chunk)
            stands = work.begin(jobs=3)
            ranges.append(len(stands))
            work_on(work, stands, 3, ranges.append)

    writers = [Thread(target=kept(write, failures), args=(seed,)) for seed in (1, 2)]
    loader = Thread(target=kept(load, failures), args=(0,))
    with at_work([*writers, loader], done):
        while loader.is_alive():
            circle.publish()
    assert failures == []
    assert ranges[0] == 12
    circle.check()
