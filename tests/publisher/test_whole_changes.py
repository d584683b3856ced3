"""Rows that waited go again so many at a time, and a change that has several rows is not cut by that."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import Engine, text

from eventlog.care.journal import hold, release
from eventlog.sources.log.reading import NEAR_ROWS
from tests.publisher.scene import Scene

COLUMNS = ("fname", "lname", "title")


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(16))
def test_rows_that_waited_come_in_whole_changes(sqlite: Engine, seed: int) -> None:
    dice = random.Random(seed)
    scene = Scene(sqlite, "one")
    number, changes = 0, list[list[int]]()
    objects = dice.choice([1, 4, 10 * NEAR_ROWS])
    for _ in range(6 * NEAR_ROWS):
        key = f"idu={dice.randrange(objects)}"
        rows = list(range(number + 1, number + 1 + dice.randint(1, len(COLUMNS))))
        for record, column in zip(rows, COLUMNS, strict=False):
            scene.table.write(record, key=key, column_name=column, new_value=f"value-{record}")
        number = rows[-1]
        changes.append(rows)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(1, number)], "ann")
    scene.publish()
    assert scene.receivers["one"].came == []
    with scene.log.transaction() as connection:
        release(connection, scene.log, [(1, number)])
        # Objects whose turn came at other times come in the order of these, and not of their numbers.
        for record in dice.sample(range(1, number + 1), number // 3):
            values = {"record": record, "due": dice.randrange(1000)}
            connection.execute(
                text("UPDATE event_log_parked SET due = :due WHERE record_id = :record AND due IS NOT NULL"), values
            )
    with_next = {record: rows for rows in changes for record in rows}
    assert scene.lock.tenure is not None
    while scene.waiting():
        before = len(scene.receivers["one"].came)
        scene.consumers["one"].turn(scene.lock.tenure)
        came = set(scene.receivers["one"].came[before:])
        assert came == {other for record in came for other in with_next[record]}
    assert sorted(scene.receivers["one"].came) == [*range(1, number + 1)]
