"""Rows of the journal that somebody holds, releases, sets back, purges: nobody gets what he must not, and all ends."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.care import journal as care
from eventlog.care.rows import EVERYTHING, Choice, hold, leave_before_deletion, release, requeue
from tests.publisher.scene import Scene

PROCESSED = Choice(statuses="SWEF")


def test_a_held_row_and_what_is_behind_it_wait_until_somebody_releases_it(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 9)
    held = hold(scene.log, [(4, 4), (100, 200)], by="ann", why="to be checked")
    assert (held.rows, held.late, held.sentence) == (1, (), "")
    assert hold(scene.log, [(4, 4)], by="bob").rows == 1  # it is held already, and stays ann's
    [(note,)] = scene.ask("SELECT note FROM event_log_hold")
    assert note.startswith("held since ")
    assert note.endswith(" by ann: to be checked")
    scene.publish()
    assert scene.waiting() == [4, 7]
    assert release(scene.log, [EVERYTHING]) == 1
    scene.publish()
    assert (scene.waiting(), scene.left()) == ([], {})
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 5, 6, 8, 9, 4, 7]] * 2


def test_who_holds_a_row_that_is_planned_is_told_that_it_is_being_delivered(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["two"].away = True
    scene.write(1, 3)
    scene.publish()
    held = hold(scene.log, [(2, 2)], by="ann")
    assert (held.rows, held.late) == (1, ("two",))
    assert held.sentence == "two: a row of these is being delivered, and is not kept from there."
    scene.receivers["two"].away = False
    scene.table.run("UPDATE event_log_planned SET due = 0")
    scene.publish()
    scene.journal.sweep()
    assert (scene.waiting(), scene.left()) == ([], {})  # the hold ends with the letter


def test_many_rows_are_held_and_released_in_pieces(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(care, "PIECE_ROWS", 4)
    scene = Scene(engine, "one")
    scene.write(1, 11)
    scene.table.run("UPDATE event_log SET status = 'S' WHERE record_id = 5")
    assert hold(scene.log, [(1, 10)], by="ann").rows == 9
    scene.publish()
    assert scene.waiting() == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert release(scene.log, [(1, 8)]) == 7
    scene.publish()
    assert scene.waiting() == [9, 10]


def test_requeued_rows_go_to_every_output_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(care, "PIECE_ROWS", 2)
    scene = Scene(engine, "one", "two")
    scene.write(1, 5)
    scene.publish()
    scene.table.run("UPDATE event_log SET status = 'E' WHERE record_id IN (1, 2, 5)")
    scene.table.run("INSERT INTO event_log_outcome (record_id, status, reason) VALUES (2, 'E', 'refused')")
    assert requeue(scene.log, [EVERYTHING], Choice(statuses="E", table="usr")) == 3
    assert requeue(scene.log, [EVERYTHING], Choice(statuses="E", table="usr")) == 0
    assert (scene.waiting(), scene.table.outcomes()) == ([1, 2, 5], {})
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 4, 5, 1, 2, 5]] * 2
    assert scene.left() == {}


def test_a_row_that_somebody_settled_and_set_back_is_new_for_all(engine: Engine) -> None:
    """It was over for one output, parked for another, ahead of a third, held; nothing of that holds for it now."""
    scene = Scene(engine, "one", "two", "three")
    scene.receivers["two"].again = {1}
    scene.receivers["three"].away = True
    scene.write(1, 1)
    scene.publish("one", "two")
    scene.write(2, 2, objects=1)
    hold(scene.log, [(1, 1)])
    scene.table.run("UPDATE event_log SET status = 'X' WHERE record_id = 1")
    scene.table.run("UPDATE event_log SET status = 'E' WHERE record_id = 1")
    assert requeue(scene.log, [(1, 1)], PROCESSED) == 1
    assert scene.left() == {}
    scene.receivers["two"].again = set()
    scene.receivers["three"].away = False
    scene.publish()
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 1, 2], [1, 2], [1, 2]]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_waiting_rows_that_are_purged_leave_everything(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["one"].again = {1}
    scene.receivers["two"].away = True
    scene.write(1, 6)
    scene.publish()
    hold(scene.log, [(1, 1), (5, 5)])
    with scene.log.transaction() as connection:
        leave_before_deletion(connection, scene.log, [1, 5, 6, 99])
        connection.exec_driver_sql("DELETE FROM event_log WHERE record_id IN (1, 5, 6)")
    assert scene.left() == {"planned": 5, "parked": 1}  # documents stay as they are, and their rows are no more
    scene.journal.sweep()
    scene.receivers["two"].away = False
    scene.table.run("UPDATE event_log_planned SET due = 0")
    scene.publish()
    assert scene.receivers["one"].came == [2, 3, 5, 6, 4]
    assert (scene.waiting(), scene.left()) == ([], {})
