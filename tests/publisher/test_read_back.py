"""Rows that are read back: what such a row supersedes waits with it, and what had vanished once stays so."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.core.model import TABLE_FAULTS, Document, Event, Kind, Outcome, ReadBack, Reason, Row, RowId, Unreadable
from eventlog.core.rules import Options, Round
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.memory import Stamp
from eventlog.publisher.selection import Take
from eventlog.publisher.tables import Parked
from eventlog.sources.marks import RowRanges
from tests.publisher.scene import Scene
from tests.support.memory import MemoryRows
from tests.support.strategies import CATALOG

JACK: dict[RowId, Row] = {RowId(None, "usr", "idu=1"): {"fname": "Jack", "lname": None}}


def scene_with(engine: Engine, rows: Mapping[RowId, ReadBack], *, attempts: int = 0) -> Scene:
    """Make a log with a receiver, and these rows in its tables."""
    scene = Scene(engine, "out")
    former = scene.consumers["out"]
    settings = replace(former._settings, max_attempts=attempts)
    scene.consumers["out"] = Consumer(scene.journal, former.output, former.decider, settings)
    look(scene, rows)
    return scene


def look(scene: Scene, rows: Mapping[RowId, ReadBack]) -> None:
    scene.consumers["out"].decider = Decider(Round(catalog=CATALOG, reader=MemoryRows(rows)))


def retry_now(scene: Scene) -> None:
    """Make waiting rows due, and publish."""
    scene.table.run("UPDATE event_log_parked SET due = 0 WHERE due IS NOT NULL")
    scene.publish()


@pytest.mark.parametrize("attempts, statuses", [(0, {1: "S", 2: "S"}), (1, {1: "S", 2: "E"})])
def test_a_superseded_row_waits_as_long_as_its_winner(engine: Engine, attempts: int, statuses: dict[int, str]) -> None:
    scene = scene_with(engine, JACK, attempts=attempts)
    scene.receivers["out"].again = {2}
    scene.table.write(1)
    scene.table.write(2, event_type=Kind.UPDATE_ROW_BACK.value, column_name=None, new_value=None)
    scene.publish()
    assert scene.waiting() == ([] if attempts else [1, 2])
    scene.receivers["out"].again = set()
    retry_now(scene)
    assert scene.table.statuses() == statuses
    assert scene.table.outcomes()[1][1] == "superseded"
    assert scene.left() == {}


@pytest.mark.parametrize("reason", sorted(TABLE_FAULTS))
def test_rows_of_a_table_go_when_it_can_be_read_without_a_new_start(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, reason: Reason
) -> None:
    denied = Unreadable(note="permission denied", reason=reason)
    scene = scene_with(engine, {RowId(None, "usr", "idu=1"): denied, RowId(None, "usr", "idu=2"): denied})
    for number in (1, 2):
        kind = Kind.UPDATE_ROW_BACK.value
        scene.table.write(number, key=f"idu={number}", event_type=kind, column_name=None, new_value=None)
    scene.publish()
    assert scene.waiting() == [1, 2]
    rows = {RowId(None, "usr", f"idu={number}"): JACK[RowId(None, "usr", "idu=1")] for number in (1, 2)}
    scene.consumers["out"].decider.round = replace(scene.consumers["out"].decider.round, reader=MemoryRows(rows))
    scene.publish()
    assert scene.waiting() == [1, 2]  # it is not time yet
    later = scene.journal.now() + 7_200_000
    monkeypatch.setattr(scene.journal, "now", lambda: later)
    scene.publish()
    assert (scene.receivers["out"].came, scene.waiting(), scene.left()) == ([1, 2], [], {})


def test_what_had_vanished_stays_so_when_what_was_read_with_it_comes_again(engine: Engine) -> None:
    scene = scene_with(engine, {})
    scene.receivers["out"].again = {2}
    scene.table.write(1, event_type=Kind.UPDATE_ROW_BACK.value, column_name=None, new_value=None)
    scene.table.write(2, key="idu=2")
    scene.publish()
    assert scene.table.statuses() == {1: "W", 2: "N"}
    look(scene, JACK)
    scene.receivers["out"].again = set()
    retry_now(scene)
    assert (scene.receivers["out"].came, scene.table.statuses()) == ([2], {1: "W", 2: "S"})
    assert scene.table.outcomes()[1][1] == "vanished"


def test_an_output_that_read_a_row_later_is_told_no_earlier_reading_of_it(engine: Engine) -> None:
    """What was decided for one output is kept for the others, and one that has decided rows by itself since reads anew."""
    names = dict(JACK)
    scene = Scene(engine, "near", "far", askable=True)
    shared = Decider(Round(catalog=CATALOG, reader=MemoryRows(names)))
    for consumer in scene.consumers.values():
        consumer.decider = shared
    for batch in ([1, 2, 3], [4, 5], [6]):
        for number in batch:
            scene.table.write(number, event_type=Kind.UPDATE_ROW_BACK.value, column_name=None, new_value=None)
        scene.publish("near")
    names[RowId(None, "usr", "idu=1")] = {"fname": "Joe", "lname": None}
    told: list[bytes] = []
    commit = scene.receivers["far"].commit

    def commit_and_note(plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        told.extend(one.body for one in documents)
        return commit(plan, documents)

    with patch.object(scene.receivers["far"], "commit", commit_and_note):
        scene.publish("far")  # the first two batches together, which nobody else has decided so; then the last one
    assert scene.waiting() == []
    assert [b"Joe" in one for one in told] == [True, True]


def test_a_number_that_another_row_has_since_is_decided_anew() -> None:
    """What was decided for one output counts for another that has the same rows, and not one that has the same numbers."""
    decider = Decider(Round(options=Options()))

    def decided(output: str, value: str) -> Any:
        event = Event(position=(1,), kind=1, table="usr", key="idu=1", column="fname", new=value, time="2026-01-01")
        taken = Take(stamp=Stamp(), events=[event], records=RowRanges.of([1]))
        [part] = decider.decide(taken, [[event]], dt.datetime.now, output=output, outputs=3)
        return part.decision.changes[0].edits[0].new

    assert [decided("near", "a"), decided("far", "a")] == ["a", "a"]
    assert decided("late", "b") == "b"


def test_what_was_decided_apart_for_one_output_is_decided_together_for_another() -> None:
    decider = Decider(Round(options=Options()))
    time = "2026-01-01"
    first = Event(position=(1,), kind=1, table="usr", key="idu=1", column="fname", new="a", time=time)
    second = Event(position=(2,), kind=1, table="usr", key="idu=1", column="lname", new="b", time=time)
    taken = Take(stamp=Stamp(), events=[first, second], records=RowRanges.of([1, 2]))

    def changes(output: str, *groups: Sequence[Event]) -> int:
        parts = decider.decide(taken, groups, dt.datetime.now, output=output, outputs=2)
        return sum(len(part.decision.changes) for part in parts)

    assert (changes("near", [first], [second]), changes("far", [first, second])) == (2, 1)


def test_outputs_for_which_the_same_row_waits_share_one_reading_of_the_others() -> None:
    read: list[int] = []

    class Reader(MemoryRows):
        def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
            read.append(len(wanted))
            return super().rows(wanted)

    decider = Decider(Round(catalog=CATALOG, reader=Reader(JACK)))
    event = Event(position=(1,), kind=Kind.UPDATE_ROW_BACK.value, table="usr", key="idu=1", time="2026-01-01")
    for output in ("near", "far"):
        waits = Parked(output=output, record=2, object="usr/idu=2", reason=Reason.HELD.value)
        taken = Take(stamp=Stamp(), events=[event], parked=[waits], records=RowRanges.of([1, 2]))
        decider.decide(taken, [[event]], dt.datetime.now, output=output, outputs=2)
    assert read == [1]
