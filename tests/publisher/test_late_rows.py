"""Rows that become visible below others that are known already."""

from __future__ import annotations

from sqlalchemy import Engine

from eventlog.sources.marks import Stretches
from tests.publisher.scene import Scene


def test_a_change_is_not_cut_where_late_rows_are_more_than_a_batch(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    scene.write(1, 4, objects=10)
    for number, column in ((5, "fname"), (6, "lname")):
        scene.table.write(number, key="idu=50", column_name=column, new_value="x")
    scene.write(7, 9, objects=10)
    with scene.journal.reading() as view:
        view.memory.seen, view.memory.any_parked = Stretches.of([100]), True
        sealed = view.new_rows(5)
    assert sealed is not None
    assert [*sealed.records] == [1, 2, 3, 4, 5, 6]
