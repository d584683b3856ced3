"""The counters of transactions on a real log, through a broker: 1 to n and one last, however sessions mix and batches cut."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, Engine, create_engine, text

from eventlog.admin.rows import Choice, hold, release, requeue
from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import SinkError
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.integration.publishing import publish_all
from tests.support.logged import run
from tests.support.servers_kafka import consumed
from tests.unit.delivery.test_counting import runs

Place = tuple[int | None, bool | None]
SESSIONS = 3
TABLE = "CREATE TABLE thing (id INTEGER PRIMARY KEY, n INTEGER, note TEXT, born DATE)"
STATEMENTS = (
    "INSERT INTO thing SELECT :id + k * 3, k, 'new' FROM generate_series(0, :more) AS k ON CONFLICT (id) DO NOTHING",
    "UPDATE thing SET n = n + 1 WHERE id % 3 = :id % 3 AND id < :id + 9",
    "UPDATE thing SET note = :note WHERE id = :id",
    "UPDATE thing SET born = CASE WHEN born IS NULL THEN CAST('infinity' AS date) END WHERE id % 3 = :id % 3",
    "UPDATE thing SET note = repeat('long', 1000) WHERE id = :id",
    "DELETE FROM thing WHERE id = :id",
)


@pytest.fixture
def published(postgresql: Engine, mock_cluster: str, request: pytest.FixtureRequest) -> Config:
    """A log of our own with whole images, batches of seven rows, and a topic of one test."""
    install(postgresql)
    run(postgresql, TABLE)
    track(postgresql, ["thing"], TriggerOptions(style=Style.IMAGE))
    topic = f"counters.{request.node.name.partition('[')[0]}.{random.getrandbits(40):x}"
    output: dict[str, Any] = {
        "sink": "kafka",
        "servers": mock_cluster,
        "transactional_id": topic,
        "marks_topic": f"{topic}.marks",
        "max_message_bytes": 3000,
        "messages": {"topic": topic, "on_value": "refuse-object", "batch_size": 3},
    }
    url = postgresql.url.render_as_string(hide_password=False)
    settings = {"source": {"url": url}, "publisher": {"query_limit": 7, "allow_loopback": True}, "output": [output]}
    return from_settings(settings, {}, origin="the test")


def change(sessions: list[Connection], chance: random.Random, count: int) -> None:
    """Sessions that write in turn, each to rows of its own, with savepoints; their transactions end at any time."""
    for _ in range(count):
        number = chance.randrange(len(sessions))
        connection, what = sessions[number], chance.random()
        if what < 0.35:
            connection.rollback() if chance.random() < 0.15 else connection.commit()
            continue
        saved = what < 0.5
        if saved:
            connection.execute(text("SAVEPOINT one"))
        values = {"id": 3 * chance.randint(0, 8) + number, "more": chance.randint(0, 3), "note": f"{what}"}
        connection.execute(text(chance.choice(STATEMENTS)), values)
        if saved:
            connection.execute(text(chance.choice(["RELEASE SAVEPOINT one", "ROLLBACK TO SAVEPOINT one"])))
    for connection in sessions:
        connection.commit()


def places(config: Config) -> dict[str, list[Place]]:
    """What the messages of each transaction say, in the order of their numbers."""
    (output,) = config.output
    assert isinstance(output, KafkaOutput)
    sent = consumed(output.servers, output.messages.topic)
    found = [msgspec.json.decode(one.value or b"")["headers"] for one in sent]
    told: dict[str, list[Place]] = defaultdict(list)
    for one in sorted(found, key=lambda headers: headers["changeSequence"]):
        told[one["transactionId"]].append((one["transactionEventCounter"], one["transactionLastEvent"]))
    return dict(told)


def wrote(engine: Engine, count: int, seed: int) -> None:
    url = engine.url.render_as_string(hide_password=False)
    engines = [create_engine(url) for _ in range(SESSIONS)]
    sessions = [one.connect() for one in engines]
    change(sessions, random.Random(seed), count)
    for session in sessions:
        session.close()
    for one in engines:
        one.dispose()


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_each_transaction_is_told_whole(
    postgresql: Engine, published: Config, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote(postgresql, 60, seed)
    chance = random.Random(seed)
    written = "eventlog.publisher.journal.settle"
    from eventlog.publisher.settling import settle

    def dying(*given: Any, **named: Any) -> None:
        if chance.random() < 0.3:
            raise SinkError("It dies before it settles.")
        settle(*given, **named)

    with monkeypatch.context() as crashes:
        crashes.setattr(written, dying)
        for _ in range(12):
            try:
                publish_all(published)
            except SinkError:
                continue
    publish_all(published)
    told = places(published)
    assert {one: runs(found) for one, found in told.items()} == dict.fromkeys(told, 1)
    with postgresql.connect() as connection:
        query = "SELECT status, count(DISTINCT eventlog_transaction), count(*) FROM event_log GROUP BY 1 ORDER BY 1"
        letters = {letter: (several, rows) for letter, several, rows in connection.exec_driver_sql(query)}
        unfinished = connection.exec_driver_sql("SELECT told FROM event_log_output").scalars().all()
    assert letters["E"][1] > 0, "some are refused"
    assert "N" not in letters
    assert len(told) > 3
    assert not any(unfinished)


def test_what_is_held_or_requeued_is_told_in_runs_that_end(postgresql: Engine, published: Config) -> None:
    wrote(postgresql, 50, 7)
    log = Log(postgresql, LogNames())
    hold(log, [(5, 9), (20, 21)])
    with Publisher(published) as publisher:

        def publish() -> None:
            for _ in publisher.rounds(until_empty=True):
                pass

        publish()
        unfinished = [one for one, found in places(published).items() if not found[-1][1]]
        assert unfinished, "what is held has its end to come"
        release(log, [(1, 1000)])
        publish()
        once = {one: runs(found) for one, found in places(published).items()}
        assert {once[one] for one in unfinished} == {1}
        # Requeued rows come again, and the rows of their transaction behind them do not.
        requeue(log, [(3, 12)], Choice(letters="S"))
        publish()
        again = {one: runs(found) for one, found in places(published).items()}
    assert again != once
    assert all(again[one] - once[one] in (0, 1) for one in again)


def test_a_log_that_guesses_at_transactions_counts_nothing(postgresql: Engine, published: Config) -> None:
    from eventlog.sql.names import TRANSACTION

    run(postgresql, f"ALTER TABLE event_log DROP COLUMN {TRANSACTION}")
    run(postgresql, "INSERT INTO thing VALUES (1, 1, 'a'), (2, 2, 'b')")
    publish_all(published)
    assert [place for found in places(published).values() for place in found] == [(None, None)] * 2
