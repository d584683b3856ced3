"""Rows that become visible below others that are known already, or go while they are read ahead."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.care.journal import hold, release
from eventlog.explain.states import WaitingFor, read_places
from eventlog.sources.marks import RowRanges
from tests.publisher.scene import Scene
from tests.publisher.sharing import have_key


def test_a_change_is_not_cut_where_late_rows_are_more_than_a_batch(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    scene.write(1, 4, objects=10)
    for number, column in ((5, "fname"), (6, "lname")):
        scene.table.write(number, key="idu=50", column_name=column, new_value="x")
    scene.write(7, 9, objects=10)
    with scene.journal.reading() as view:
        view.memory.seen, view.memory.any_parked = RowRanges.of([100]), True
        sealed = view.rows.next(view, 5)
    assert sealed is not None
    assert [*sealed.records] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("wait, then", [([], [3, 7]), ([2], [7, 3])])
def test_a_number_that_comes_twice_is_looked_for_at_once_where_nothing_waits(
    sqlite: Engine, wait: list[int], then: list[int]
) -> None:
    scene = Scene(sqlite, "one")
    with sqlite.begin() as connection:
        have_key(connection, wanted=False)
    one = scene.receivers["one"]
    one.again = set(wait)
    scene.write(2, 2, objects=4)
    scene.publish()
    scene.write(3, 4, objects=4)  # sealed while 2 waits, if it does
    scene.publish()
    scene.write(3, 3, objects=4)  # another row of the object of 3, under its number
    scene.write(7, 7, objects=4)  # and a later one
    scene.publish()
    scene.journal.sweep()  # finds what was sealed and waits again
    scene.publish()
    assert one.came == [number for number in (2, 3, 4) if number not in wait] + then
    assert scene.waiting() == wait


@pytest.mark.parametrize("first", [2**62 - 5, 2**63 - 9])
def test_rows_near_the_end_of_all_numbers_go_while_one_is_held(engine: Engine, first: int) -> None:
    scene = Scene(engine, "one", "other")
    scene.write(first, first + 1, objects=99)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(first, first)], "somebody")
    scene.publish()
    scene.write(first + 2, first + 8, objects=99)
    scene.publish()
    assert scene.waiting() == [first]
    assert [(row.rows, row.reason) for row in _waiting(scene)] == [(1, "held"), (1, "held")]
    with scene.log.transaction() as connection:
        release(connection, scene.log, [(first, first)])
    scene.publish()
    assert (scene.waiting(), scene.left()) == ([], {})
    assert all(sorted(receiver.came) == [*range(first, first + 9)] for receiver in scene.receivers.values())


def _waiting(scene: Scene) -> list[WaitingFor]:
    with scene.log.transaction() as connection:
        return [why for place in read_places(connection, scene.log).values() for why in place.waits]
