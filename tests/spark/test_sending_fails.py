"""Executors and drivers that fail while they send to a real Kafka: every message is there once, whoever tried how often."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from eventlog.convert import lanes
from eventlog.convert.commit import SUCCESS, WORK, summary_from
from eventlog.convert.sending import SENDING
from eventlog.convert.settings import Conversion, FilesInput, SentMessages
from eventlog.core.errors import EventlogError, SinkError, UsageError
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog_spark import sending
from eventlog_spark.convert import convert
from tests.spark.dying import SMALL, WAYS, dying, rows
from tests.spark.inputs import order, write_rows
from tests.support.converting import outcomes_of
from tests.support.servers_kafka import Broker, consumed, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
ROWS = 1_000


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LANE_CHANGES", 300)


@pytest.fixture
def conversion(broker: Broker, tmp_path: Path) -> Conversion:
    """A thousand changes in four lanes of several transactions each, to topics of its own."""
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(ROWS))
    form = replace(SMALL, topic=broker.topic(partitions=3), metadata_topic=broker.topic())
    target = SentMessages(settings=form, into=settings(broker.servers))
    return order(tmp_path / "in", tmp_path / "out", format=target)


def told(target: object) -> tuple[KafkaSettings, MessageSettings]:
    """Where a conversion sends, and how."""
    assert isinstance(target, SentMessages)
    return target.into, target.settings


def assert_all_is_there_once(conversion: Conversion) -> None:
    """As a consumer sees it that reads what was committed."""
    into, form = told(conversion.format)
    values = [one.value for one in consumed(into.servers, form.topic)]
    found = [msgspec.json.decode(value)["message"]["headers"] for value in values if value is not None]
    assert sorted(int(headers["changeSequence"][16:]) for headers in found) == list(range(1, ROWS + 1))
    assert values.count(None) == 4
    keyed: dict[bytes | None, list[int]] = {}
    for one in consumed(into.servers, form.topic):
        if one.value is not None:
            position = msgspec.json.decode(one.value)["message"]["headers"]["streamPosition"]
            keyed.setdefault(one.key, []).append(int(position))
    assert [positions for positions in keyed.values() if positions != sorted(positions)] == []
    assert len(consumed(into.servers, form.metadata_topic)) == 1
    done = summary_from((conversion.destination / SUCCESS).read_bytes())
    assert (done.changes, done.statuses) == (ROWS, {"S": ROWS})
    assert Counter(one["status"] for one in outcomes_of(conversion.destination)) == {"S": ROWS}
    assert sorted(entry.name for entry in conversion.destination.iterdir()) == ["_SUCCESS", "outcomes.parquet"]


@pytest.mark.in_turn
@pytest.mark.parametrize("way", WAYS)
def test_who_gives_the_command_once_more_sends_what_is_missing(
    spark: SparkSession, conversion: Conversion, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sending, "lanes_sent", dying(way))
        with pytest.raises(EventlogError) as raised:
            convert(conversion)
    if way != "killed":
        assert "The broker is away. Give the same command once more" in str(raised.value)
    assert not (conversion.destination / "_SUCCESS").exists()
    with pytest.raises(UsageError, match="interrupted while it was sent"):
        convert(replace(conversion, part_events=7))
    convert(conversion)
    assert_all_is_there_once(conversion)


@pytest.mark.in_turn
def test_a_task_that_spark_repeats_doubles_nothing(java: None, conversion: Conversion) -> None:
    into, form = told(conversion.format)
    assert isinstance(conversion.input, FilesInput)
    words = ["killed", conversion.input.places[0], str(conversion.destination)]
    described = [msgspec.json.encode(one).decode() for one in (into, form)]
    command = [sys.executable, "-m", "tests.spark.dying", *words, *described]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_all_is_there_once(conversion)


def test_others_that_wrote_meanwhile_are_noticed(
    spark: SparkSession, conversion: Conversion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sending, "lanes_sent", dying("committed"))
        with pytest.raises(SinkError, match="is away"):
            convert(conversion)
    (tmp_path / "other").mkdir()
    write_rows(tmp_path / "other" / "a.parquet", rows(9))
    convert(order(tmp_path / "other", tmp_path / "done", format=conversion.format))
    with pytest.raises(SinkError, match="Something else was written there since"):
        convert(conversion)
    assert list((conversion.destination / WORK).glob(f"*/{SENDING}"))
