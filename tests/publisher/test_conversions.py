"""`convert --mark` beside a publisher: it overtakes nobody, takes what is nobody's, and after a kill nothing is lost or twice."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.care import outputs
from eventlog.care.rows import EVERYTHING, hold, release
from eventlog.config.settings import PublisherConfig
from eventlog.convert import free_rows, to_change_tables
from eventlog.convert.commit import SUCCESS, UNMARKED
from eventlog.convert.local import convert
from eventlog.convert.marks import marking
from eventlog.convert.place import ConversionPlace, name_conversion
from eventlog.convert.settings import SentTables
from eventlog.core.errors import OccupiedError, SinkError, UsageError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sources.marks import RowRanges
from tests.publisher.converting import convert_alone, converted, dying, order, ordered, publisher_stopped
from tests.publisher.scene import Scene

PLANNED = 8
"""The point at which a process dies when its rows are planned."""


def pause(scene: Scene, name: str) -> None:
    outputs.pause(scene.log, name, list(scene.receivers), by="ann")


def resume(scene: Scene, name: str) -> None:
    outputs.resume(scene.log, PublisherConfig(), name, list(scene.receivers))


def test_while_a_publisher_works_nothing_is_converted_and_marked(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 3)
    with pytest.raises(OccupiedError, match="Another publisher works on the event log"):
        ordered(order(scene, tmp_path / "out"))
    assert scene.waiting() == [1, 2, 3]
    assert not (tmp_path / "out").exists()


def test_a_backlog_that_nobody_has_read_is_done_for_all_outputs(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 6)
    scene.publish()
    scene.write(7, 12)
    with publisher_stopped(scene):
        marked = ordered(order(scene, tmp_path / "out"))
        assert ordered(order(scene, tmp_path / "out")) is None  # it is complete
    assert marked is not None
    assert (marked.rows, converted(tmp_path / "out")) == (6, [7, 8, 9, 10, 11, 12])
    scene.write(13, 13)
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 4, 5, 6, 13]] * 2
    assert (scene.waiting(), scene.left(), list(tmp_path.glob("out/_*"))) == ([], {}, [tmp_path / "out" / SUCCESS])


@pytest.mark.parametrize("marks", [True, False])
def test_nothing_overtakes_a_held_row(engine: Engine, tmp_path: Path, marks: bool) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 9)
    hold(scene.log, [(4, 4)], by="ann")
    convert_alone(scene, tmp_path / "out", marks=marks)
    assert converted(tmp_path / "out") == [1, 2, 3, 5, 6, 8, 9]
    assert scene.waiting() == ([4, 7] if marks else [1, 2, 3, 4, 5, 6, 7, 8, 9])
    if marks:
        assert convert_alone(scene, tmp_path / "out") is None  # it is complete, whatever it has left
        scene.publish()
        release(scene.log, [EVERYTHING])
        scene.publish()
        assert scene.receivers["one"].came == [4, 7]
        assert (scene.waiting(), scene.left()) == ([], {})


def test_what_an_output_lacks_stays_for_it_and_so_does_what_comes_behind(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["one"].again = {1}
    scene.receivers["two"].away = True
    scene.write(1, 4)
    scene.publish()  # 1 and 4 are parked for one; two lacks them all
    scene.write(5, 9, objects=7)
    convert_alone(scene, tmp_path / "out")
    assert converted(tmp_path / "out") == [5, 6]  # 7 to 9 are of objects that outputs lack rows of
    assert scene.waiting() == [1, 2, 3, 4, 7, 8, 9]
    scene.receivers["one"].again, scene.receivers["two"].away = set(), False
    scene.table.run("UPDATE event_log_planned SET due = 0")
    scene.table.run("UPDATE event_log_parked SET due = 0 WHERE due IS NOT NULL")
    scene.publish()
    scene.publish()
    assert sorted(scene.receivers["one"].came) == sorted(scene.receivers["two"].came) == [1, 2, 3, 4, 7, 8, 9]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_paused_output_gets_what_is_converted_when_it_is_resumed(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one", "two")
    pause(scene, "two")
    scene.write(1, 3)
    scene.publish()
    scene.write(4, 20)
    scene.table.write(21, key="nonsense")
    marked = convert_alone(scene, tmp_path / "out")
    assert marked is not None
    assert marked.kept_for == ("two",)
    assert scene.waiting() == list(range(1, 22))
    resume(scene, "two")
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3]
    assert scene.receivers["two"].came == list(range(1, 21))
    assert (scene.waiting(), scene.left()) == ([], {})
    assert scene.table.statuses()[21] == "E"
    assert scene.table.outcomes()[21][1] == "invalid"


def test_an_output_that_was_paused_gets_the_next_conversion_as_well(engine: Engine, tmp_path: Path) -> None:
    """It has rows ahead that were converted: parked, they would go to an output that comes later."""
    scene = Scene(engine, "one")
    pause(scene, "one")
    scene.write(1, 3)
    convert_alone(scene, tmp_path / "first")
    resume(scene, "one")
    scene.write(4, 6)
    marked = convert_alone(scene, tmp_path / "second")
    assert marked is not None
    assert (marked.kept_for, converted(tmp_path / "second")) == (("one",), [4, 5, 6])
    scene.add("two")
    scene.write(7, 7)
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 4, 5, 6, 7], [7]]
    assert (scene.waiting(), scene.left()) == ([], {})


@pytest.mark.parametrize("killed", [False, True])
def test_an_output_that_comes_later_does_not_get_what_was_converted(
    engine: Engine, tmp_path: Path, killed: bool
) -> None:
    scene = Scene(engine, "one")
    pause(scene, "one")
    scene.write(1, 3)
    with publisher_stopped(scene), dying(PLANNED if killed else 0):
        ordered(order(scene, tmp_path / "out"))
    scene.write(4, 6)
    scene.add("two")
    scene.publish()
    if killed:
        convert_alone(scene, tmp_path / "out", overwrite=True)
        assert converted(tmp_path / "out") == [1, 2, 3, 4, 5, 6]
        scene.write(7, 7)
        scene.publish()
        assert scene.receivers["two"].came == [7]
        return
    scene.write(7, 7)
    scene.publish()
    scene.add("three")
    resume(scene, "one")
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7], []]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_conversion_that_was_not_told_to_mark_marks_later_what_is_still_free(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 9)
    convert_alone(scene, tmp_path / "out", marks=False)
    assert scene.waiting() == list(range(1, 10))
    hold(scene.log, [(4, 4)], by="ann")
    scene.table.run("UPDATE event_log SET status = 'S' WHERE record_id = 1")
    marked = convert_alone(scene, tmp_path / "out")
    assert marked is not None
    assert (marked.rows, marked.left, scene.waiting()) == (6, 2, [4, 7])
    assert not (tmp_path / "out" / UNMARKED).exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_note_whose_writer_was_killed_is_that_of_the_output_beside_it(
    engine: Engine, tmp_path: Path, overwrite: bool
) -> None:
    """Where files are seen before they are closed, it is empty. A folder has none, but an address of HDFS."""
    scene = Scene(engine, "one")
    scene.write(1, 3)
    out, conversion = tmp_path / "out", order(scene, tmp_path / "out")
    with publisher_stopped(scene):
        with marking(conversion) as place:
            convert(conversion, jobs=1, marking=place)
        (out / UNMARKED).write_bytes(b"")
        with pytest.raises(UsageError, match=r"is not empty|were being marked"):
            ordered(order(scene, out, part_events=1))
        ordered(order(scene, out, overwrite=overwrite))
    assert (scene.waiting(), converted(out), scene.left(), list(out.glob("_*"))) == ([], [1, 2, 3], {}, [out / SUCCESS])


def test_who_holds_a_row_that_is_being_converted_is_too_late(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a conversion of hours would be in vain."""
    scene = Scene(engine, "one")
    scene.write(1, 6)
    seal, late = ConversionPlace.seal, list[tuple[str, ...]]()

    def held_then(self: Any, *given: Any) -> Any:
        found = seal(self, *given)
        late.append(hold(scene.log, [(2, 2)], by="ann").late)
        return found

    monkeypatch.setattr(ConversionPlace, "seal", held_then)
    marked = convert_alone(scene, tmp_path / "out")
    assert marked is not None
    assert (marked.rows, scene.waiting(), late) == (6, [], [(name_conversion(str(tmp_path / "out")),)])


def test_who_holds_rows_all_the_time_keeps_no_conversion_from_its_end(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 20)
    monkeypatch.setattr(free_rows, "PAGE_ROWS", 2)
    monkeypatch.setattr("eventlog.convert.place.SEAL_PIECES", 1)
    transaction, last = ConversionPlace.transaction, [20]

    def held_before(self: Any, **more: Any) -> Any:
        last[0] += 1
        scene.write(last[0], last[0], objects=1)
        hold(scene.log, [(last[0], last[0])], by="ann")
        return transaction(self, **more)

    monkeypatch.setattr(ConversionPlace, "transaction", held_before)
    marked = convert_alone(scene, tmp_path / "out")
    assert marked is not None
    assert converted(tmp_path / "out") == list(range(1, 21))
    assert scene.waiting() == list(range(21, last[0] + 1))


def test_what_comes_while_rows_are_converted_is_left_to_the_next_one(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 6)
    seal = ConversionPlace.seal

    def written_then(self: Any, *given: Any) -> Any:
        found = seal(self, *given)
        scene.write(-3, 0)  # of a transaction that commits late
        scene.write(7, 9)
        return found

    monkeypatch.setattr(ConversionPlace, "seal", written_then)
    convert_alone(scene, tmp_path / "out")
    assert (converted(tmp_path / "out"), scene.waiting()) == ([1, 2, 3, 4, 5, 6], [-3, -2, -1, 0, 7, 8, 9])


def test_a_conversion_of_which_nothing_has_appeared_is_given_back_by_who_comes_next(
    engine: Engine, tmp_path: Path
) -> None:
    scene = Scene(engine, "one")
    scene.write(1, 3)
    with publisher_stopped(scene), marking(order(scene, tmp_path / "out")) as place:
        place.begin(sending=False)
        assert place.taken.numbers == RowRanges([(1, 3)])
    scene.publish()
    assert (scene.receivers["one"].came, scene.waiting(), scene.left()) == ([1, 2, 3], [], {})


@pytest.mark.parametrize("page", [2, 3, 100])
@pytest.mark.parametrize("held, gone", [(4, [1, 2, 3]), (1, [2, 3])], ids=["it is held", "one before it is held"])
def test_nothing_goes_behind_a_row_about_a_whole_table_that_waits(
    engine: Engine, tmp_path: Path, page: int, held: int, gone: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_rows, "PAGE_ROWS", page)
    scene = Scene(engine, "one")
    scene.write(1, 3)
    scene.table.write(4, key="*", event_type=7)
    scene.write(5, 7)
    hold(scene.log, [(held, held)], by="ann")
    convert_alone(scene, tmp_path / "out")
    left = [number for number in range(1, 8) if number not in gone]
    assert (converted(tmp_path / "out"), scene.waiting()) == (gone, left)


@pytest.mark.parametrize("page", [2, 3, 100])
def test_rows_of_one_number_are_left_together_with_what_is_behind_each_of_them(
    engine: Engine, tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_rows, "PAGE_ROWS", page)
    scene = Scene(engine, "one")
    scene.write(1, 3)
    for key in ("idu=8", "idu=9"):
        scene.table.write(4, key=key)
    for number, key in ((5, "idu=7"), (6, "idu=8"), (7, "idu=9"), (8, "nonsense")):
        scene.table.write(number, key=key)
    hold(scene.log, [(4, 4)], by="ann")
    convert_alone(scene, tmp_path / "out")
    assert (converted(tmp_path / "out"), scene.waiting()) == ([1, 2, 3, 5], [4, 4, 6, 7])


def test_rows_that_are_given_back_while_they_are_sealed_are_not_converted(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_rows, "PAGE_ROWS", 2)
    monkeypatch.setattr("eventlog.convert.place.SEAL_PIECES", 1)
    scene = Scene(engine, "one")
    scene.write(1, 9)
    transaction, name = ConversionPlace.transaction, name_conversion(str(tmp_path / "out"))

    def forgotten_before(self: Any, **more: Any) -> Any:
        if outputs.is_conversion(scene.log, name):
            outputs.forget(scene.log, name, ["one"], by="ann")
        return transaction(self, **more)

    monkeypatch.setattr(ConversionPlace, "transaction", forgotten_before)
    with publisher_stopped(scene), pytest.raises(UsageError, match="were given back"):
        ordered(order(scene, tmp_path / "out"))
    scene.publish()
    assert (scene.receivers["one"].came, scene.waiting(), scene.left()) == ([*range(1, 10)], [], {})


def test_a_paused_output_and_holds_leave_each_their_rows(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 3)
    pause(scene, "two")
    scene.publish()  # two has 1 to 3 ahead, which block nothing
    scene.write(4, 9)
    hold(scene.log, [(5, 5)], by="ann")
    marked = convert_alone(scene, tmp_path / "out")
    assert marked is not None
    assert converted(tmp_path / "out") == [4, 6, 7, 9]
    release(scene.log, [EVERYTHING])
    resume(scene, "two")
    scene.publish()
    assert [sorted(one.came) for one in scene.receivers.values()] == [[1, 2, 3, 5, 8], [*range(1, 10)]]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_an_interrupted_conversion_is_given_back_and_nothing_goes_out_before(engine: Engine, tmp_path: Path) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 3)
    scene.publish()
    scene.write(4, 6)
    name = name_conversion(str(tmp_path / "out"))
    with publisher_stopped(scene), dying(PLANNED) as death:
        ordered(order(scene, tmp_path / "out"))
    assert death.is_dead
    scene.write(7, 9)
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3]
    with publisher_stopped(scene), pytest.raises(UsageError, match="A conversion of this log was interrupted"):
        ordered(order(scene, tmp_path / "other"))
    with pytest.raises(UsageError, match="is a conversion"):
        outputs.skip(scene.log, name, None, by="ann")
    assert hold(scene.log, [(4, 4)], by="ann").late == (name,)
    release(scene.log, [EVERYTHING])
    assert [one.state for one in outputs.list_outputs(scene.log, PublisherConfig(), ["one", "two"])][-1] == "conversion"
    assert outputs.forget(scene.log, name, ["one", "two"], by="ann") == 3
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 4, 5, 6, 7, 8, 9]] * 2
    assert (scene.waiting(), scene.left()) == ([], {})


@pytest.mark.in_turn
@pytest.mark.parametrize("paused", [False, True])
def test_killed_at_any_point_and_given_again_it_loses_nothing_and_doubles_nothing(
    engine: Engine, tmp_path: Path, paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_rows, "PAGE_ROWS", 2)
    monkeypatch.setattr("eventlog.convert.place.SEAL_PIECES", 2)
    # Where transactions take long, some of the points are looked at, others with the other parameter.
    for number in range(1 + paused, 100, 2 if engine.dialect.name == "sqlite" else 6):
        metadata = sa.MetaData()
        metadata.reflect(engine)
        metadata.drop_all(engine)
        scene = Scene(engine, "one", "two")
        scene.write(1, 2)
        scene.publish()
        if paused:
            pause(scene, "two")
        scene.write(3, 11)
        out = tmp_path / str(number)
        with publisher_stopped(scene), dying(number) as death:
            ordered(order(scene, out))
        scene.publish()  # a publisher comes first
        convert_alone(scene, out)
        resume(scene, "two")
        scene.write(12, 12)
        scene.publish()
        gone = {receiver: one.came for receiver, one in scene.receivers.items()}
        assert sorted(gone["one"] + converted(out)) == list(range(1, 13)), number
        both = gone["two"] + ([] if paused and converted(out) else converted(out))
        assert sorted(both) == list(range(1, 13)), number
        assert (scene.waiting(), scene.left(), list(out.glob("_*"))) == ([], {}, [out / SUCCESS]), number
        if not death.is_dead:
            return
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("after", [0, 1, 2])
def test_killed_while_it_sends_it_goes_on_with_the_rows_that_it_has_reserved(
    engine: Engine, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(to_change_tables, "DOCUMENT_ROWS", 2)
    scene = Scene(engine, "one")
    scene.write(1, 6)
    target = SentTables(into=DatabaseSettings(url=f"sqlite:///{tmp_path / 't.db'}"))
    usr = Table(name="usr", columns=(Column(name="idu", type="integer", key=1), Column(name="fname", type="text")))
    sends = order(scene, tmp_path / "out", format=target, catalog=Catalog([usr]))
    commit, left = DatabaseSink.commit, [after]

    def away(*given: Any) -> Any:
        left[0] -= 1
        found = commit(*given)
        if left[0] < 0:
            raise SinkError("The database is away.")
        return found

    monkeypatch.setattr(DatabaseSink, "commit", away)
    with publisher_stopped(scene), pytest.raises(SinkError):
        ordered(sends)
    monkeypatch.setattr(DatabaseSink, "commit", commit)
    scene.write(7, 7)
    scene.publish()
    assert scene.receivers["one"].came == []  # nothing may overtake what is with the receiver, or on its way
    with publisher_stopped(scene):
        ordered(sends)
    scene.publish()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        told = connection.execute("SELECT fname FROM usr__ct ORDER BY header__change_seq").fetchall()
    connection.close()
    assert [value for (value,) in told] == [f"value-{number}" for number in range(1, 7)]
    assert scene.receivers["one"].came == [7]
    assert (scene.waiting(), scene.left()) == ([], {})
