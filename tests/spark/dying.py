"""An executor that fails once while it sends messages, and a conversion with such a one in a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from eventlog.convert import lanes
from eventlog.convert.settings import Conversion, SentMessages
from eventlog.core.errors import SinkError
from eventlog.qlik.messages.document import Message
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.kafka.marks import KafkaMarks, mark_messages
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.kafka.sink import KafkaSink
from eventlog_spark import sending
from eventlog_spark.cluster import Cluster
from eventlog_spark.convert import convert
from eventlog_spark.deciding import unpack_tasks
from eventlog_spark.sending import lanes_sent
from tests.spark.inputs import Row, order
from tests.spark.processes import JAVA_OPTIONS

WAYS = ("committed", "killed")
"""By an error after a commit that nobody heard of; by a kill with everything at the broker and nothing committed."""

SMALL = MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta", batch_size=50, tombstones=True)
COMMIT = KafkaSink._commit
Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def rows(count: int) -> list[Row]:
    """Forty objects that change again and again; of each tenth the last row is its end."""
    return [_row(number, ends=number > count - 40 and number % 10 == 0) for number in range(1, count + 1)]


def _row(number: int, *, ends: bool) -> Row:
    told = (None, None, None) if ends else ("fname", f"o{number}", f"n{number}")
    return number, "N", 4 if ends else 2, "2026-01-01 00:00:00", "app", "usr", f"idu={number % 40}", *told


def dying(way: str) -> Callable[[Conversion, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Sends lanes as they are sent; but the first that comes to a second transaction fails there."""
    return partial(_dying, way)


def _dying(way: str, conversion: Conversion, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    known = list(batches)
    with pytest.MonkeyPatch.context() as patch:
        for task in unpack_tasks(conversion, iter(known)):
            patch.setattr(KafkaSink, "_commit", _failing(way, Path(task.folder) / "died"))
        yield from lanes_sent(conversion, iter(known))


def _failing(way: str, died: Path) -> Callable[[KafkaSink, KafkaMarks], None]:
    def commit(sink: KafkaSink, marks: KafkaMarks) -> None:
        if not sink.last() or died.exists():
            COMMIT(sink, marks)
            return
        died.touch()
        if way == "killed":
            _all_but_committed(sink, marks)
            os._exit(1)
        COMMIT(sink, marks)
        raise SinkError("The broker is away.")

    return commit


def _all_but_committed(sink: KafkaSink, marks: KafkaMarks) -> None:
    producer, ours = sink._require_producer(), sink._settings
    for key, value in mark_messages(ours, marks.state, {}):
        sink._produce(producer, Message(topic=ours.marks_topic, key=key, value=value))
    producer.flush(10)


def main(way: str, source: str, destination: str, into: str, form: str) -> None:
    """Converts where Spark tries a task again that failed."""
    target = SentMessages(
        settings=msgspec.json.decode(form, type=MessageSettings), into=msgspec.json.decode(into, type=KafkaSettings)
    )
    conversion = order(Path(source), Path(destination), format=target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "LANE_CHANGES", 300)
        patch.setattr(sending, "lanes_sent", dying(way))
        conf = {"spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.driver.memory": "1g"}
        convert(conversion, cluster=Cluster(master="local[2,4]", conf=conf))


if __name__ == "__main__":
    main(*sys.argv[1:])
