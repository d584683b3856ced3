"""A conversion on Spark sends what the local engine does, byte for byte and those of one key in the same order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.convert import local, plan, streams, to_change_tables
from eventlog.convert.commit import Summary
from eventlog.convert.settings import Conversion, LogInput, SentMessages, SentTables, SnapshotRows, StreamInput
from eventlog.core.errors import SinkError, UsageError
from eventlog.core.model import Document, Outcome
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sources.gbase.files import splits
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog_spark.convert import convert
from eventlog_streams_tools.gbase.emulator import reads, shop
from tests.conformance.event_logs import installed
from tests.spark.inputs import Row, many_histories, order, rows_of, write_rows, write_snapshot
from tests.support.converting import outcomes_of
from tests.support.lakes import LAKES, Mode
from tests.support.servers_kafka import consumed, settings, stand_in
from tests.support.strategies import CATALOG, History

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Messages = list[tuple[bytes | None, bytes | None]]
SMALL = MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta", batch_size=50, tombstones=True)
FORMS = [
    SMALL,
    MessageSettings(encoding="avro", avro_key=True, batch_size=3),
    MessageSettings(key="table", mode="envelope"),
    MessageSettings(key="none"),
]
_numbers = count(1)


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    """Two clusters, one for each engine."""
    with stand_in() as here, stand_in() as there:
        yield here, there


@pytest.fixture
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SPAN_EVENTS", 100)


def fresh(form: MessageSettings) -> MessageSettings:
    """The same to topics that nobody has written to."""
    number = next(_numbers)
    return replace(form, topic=f"data-{number}", metadata_topic=f"metadata-{number}")


def rows(count: int) -> list[Row]:
    """Forty objects that change again and again; of each tenth the last row is its end."""
    return [_row(number, ends=number > count - 40 and number % 10 == 0) for number in range(1, count + 1)]


def _row(number: int, *, ends: bool) -> Row:
    told = (None, None, None) if ends else ("fname", f"o{number}", f"n{number}")
    return number, "N", 4 if ends else 2, "2026-01-01 00:00:00", "app", "usr", f"idu={number % 40}", *told


def messages_in(servers: str, topic: str) -> Messages:
    """The messages by their keys, those of one key in their order; they come from several partitions."""
    found = [(one.key, one.value) for one in consumed(servers, topic)]
    return sorted(found, key=lambda one: (one[0] or b"", (one[1] or b"") if one[0] is None else b""))


def both(clusters: tuple[str, str], conversion: Conversion, form: MessageSettings) -> tuple[Summary, Messages]:
    """What both engines send in the same way, each to its cluster under the same name."""
    own, place, made = settings(clusters[0]), conversion.destination, []
    for name, engine, servers in (
        ("here", partial(local.convert, jobs=1), clusters[0]),
        ("there", convert, clusters[1]),
    ):
        target = SentMessages(settings=form, into=replace(own, servers=servers))
        done = engine(replace(conversion, destination=place / name, format=target))
        outcomes = (place / name / "outcomes.parquet").read_bytes()
        made.append((done, outcomes, messages_in(servers, form.topic) if done.changes else []))
        ended = "_DAMAGED" if done.damage else "_SUCCESS"
        assert sorted(entry.name for entry in (place / name).iterdir()) == [ended, "outcomes.parquet"]
    assert made[0] == made[1]
    return made[1][0], made[1][2]


@trying(max_examples=2)
@given(many_histories(), st.sampled_from(FORMS))
def test_random_histories_in_every_form(
    spark: SparkSession, clusters: tuple[str, str], history: History, form: MessageSettings
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SPAN_EVENTS", 7)
        place = Path(folder)
        back = SnapshotRows(folder=write_snapshot(place / "snapshot", history))
        (place / "in").mkdir()
        write_rows(place / "in" / "a.parquet", rows_of(history.events))
        done, found = both(clusters, order(place / "in", place, part_events=3, read_back=back), fresh(form))
        assert sum(value is not None for _, value in found) == done.changes


@pytest.mark.usefixtures("_small_steps")
def test_every_row_in_the_order_of_its_changes(spark: SparkSession, clusters: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(700))
    form = fresh(SMALL)
    done, found = both(clusters, order(tmp_path / "in", tmp_path, part_events=100), form)
    assert (done.changes, done.statuses) == (700, {"S": 700})
    assert len({key for key, _ in found}) == 40
    assert sum(value is None for _, value in found) == 4
    assert [len(messages_in(servers, form.metadata_topic)) for servers in clusters] == [1, 1]


@pytest.mark.usefixtures("_small_steps")
def test_the_next_conversion_goes_on_with_the_numbers_whichever_engine_it_has(
    spark: SparkSession, clusters: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(150))
    form = fresh(SMALL)
    conversion = order(tmp_path / "in", tmp_path, format=SentMessages(settings=form, into=settings(clusters[0])))
    convert(replace(conversion, destination=tmp_path / "one"))
    local.convert(replace(conversion, destination=tmp_path / "two"), jobs=1)
    convert(replace(conversion, destination=tmp_path / "three"))
    values = [value for _, value in messages_in(clusters[0], form.topic) if value is not None]
    numbers = [msgspec.json.decode(value)["message"]["headers"]["changeSequence"] for value in values]
    assert sorted(int(number[16:]) for number in numbers) == list(range(1, 451))
    assert len(messages_in(clusters[0], form.metadata_topic)) == 1


def test_streams_of_gbase(
    spark: SparkSession, clusters: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "splits", partial(splits, size=1))
    stream = tmp_path / "capture.bin"
    stream.write_bytes(b"".join(reads(shop(400, seed=3))) + b"\xff" * 40)
    told = GBaseSettings(
        tables={"1": "shop.customer", "2": "shop.purchase"},
        keys={"shop.customer": ("id",), "shop.purchase": ("id",)},
    )
    source = StreamInput(places=(str(stream),), settings=told)
    form = fresh(SMALL)
    done, _ = both(clusters, Conversion(input=source, destination=tmp_path, part_events=40), form)
    assert done.changes > 200
    assert "capture.bin, byte" in (done.damage or "")
    assert len(messages_in(clusters[1], form.metadata_topic)) == 2


def test_messages_that_no_broker_takes_are_errors(
    spark: SparkSession, clusters: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    told = [(*row[:-1], "x" * 3000) if row[0] in (2, 5) else row for row in rows(9)]
    write_rows(tmp_path / "in" / "a.parquet", told)
    form, own = fresh(replace(SMALL, mode="bare")), settings(clusters[1], max_message_bytes=2000)
    target = SentMessages(settings=form, into=own)
    done = convert(order(tmp_path / "in", tmp_path / "out", format=target))
    assert done.outcomes == {"E refused": 2, "S published": 7}
    bad = [(one["position"], "more than topic" in one["note"]) for one in outcomes_of(tmp_path / "out") if one["note"]]
    assert bad == [(2, True), (5, True)]
    assert len(consumed(clusters[1], form.topic)) == 7


def test_metadata_that_no_broker_takes_end_the_conversion(
    spark: SparkSession, clusters: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(9))
    target = SentMessages(settings=fresh(SMALL), into=settings(clusters[1], max_message_bytes=1000))
    with pytest.raises(SinkError, match=r"metadata message of usr has \d+ bytes, more than topic metadata-\d+ takes"):
        convert(order(tmp_path / "in", tmp_path / "out", format=target))


def test_a_broker_that_does_not_answer_is_noticed_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(9))
    target = SentMessages(settings=SMALL, into=settings("127.0.0.1:1", timeout=0.5))
    with pytest.raises(SinkError, match="Nothing was done yet"):
        convert(order(tmp_path / "in", tmp_path / "out", format=target))
    assert not (tmp_path / "out").exists()


def sent_rows(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM usr__ct ORDER BY header__change_seq").fetchall()


def test_an_interrupted_conversion_of_a_log_sends_the_rows_that_it_began_with(
    spark: SparkSession, sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(to_change_tables, "DOCUMENT_ROWS", 5)
    log, left, commit = installed(sqlite), iter(range(2)), DatabaseSink.commit

    def fail(sink: DatabaseSink, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        outcomes = commit(sink, plan, documents)
        if next(left, None) is None:
            raise SinkError("The database is away.")
        return outcomes

    for number in range(1, 21):
        log.write(number, f"idu={number}", event_type=1, column_name="fname", new_value=f"n{number}")
    made = []
    for name, engine in (("here", partial(local.convert, jobs=1)), ("there", convert)):
        source = LogInput(url=str(sqlite.url))
        target = SentTables(into=DatabaseSettings(url=f"sqlite:///{tmp_path / name}.db"))
        conversion = Conversion(input=source, destination=tmp_path / name, catalog=CATALOG, format=target)
        if name == "there":
            with monkeypatch.context() as patch:
                patch.setattr(DatabaseSink, "commit", fail)
                with pytest.raises(SinkError, match="Give the same command once more"):
                    engine(conversion)
            with pytest.raises(UsageError, match="interrupted while it was sent"):
                engine(replace(conversion, part_events=7))
            log.write(21, "idu=21", event_type=1, column_name="fname", new_value="later")
        done = engine(conversion)
        assert (done.changes, done.statuses) == (20, {"S": 20})
        made.append(sent_rows(tmp_path / f"{name}.db"))
        assert len(outcomes_of(tmp_path / name)) == 20
    assert len(made[0]) == 20
    assert made[0] == made[1]


@pytest.mark.parametrize("kind, mode", [("delta", "append"), ("iceberg", "mirror")])
def test_tables_of_a_lake(spark: SparkSession, tmp_path: Path, kind: str, mode: Mode) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(120))
    made = []
    for name, engine in (("here", partial(local.convert, jobs=1)), ("there", convert)):
        lake = LAKES[kind](tmp_path / f"{name}-lake", mode)
        target = SentTables(into=lake.settings)
        done = engine(order(tmp_path / "in", tmp_path / name, format=target, catalog=CATALOG))
        assert done.statuses == {"S": 120}
        made.append((done.changes, lake.rows("usr__ct" if mode == "append" else "usr")))
    assert made[0][1]
    assert made[0] == made[1]
