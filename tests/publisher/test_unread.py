"""New rows that have to wait for every output are parked by their objects, and nobody reads their values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from sqlalchemy import Engine, event, text

from eventlog.care.journal import hold, release
from eventlog.core.rules import Options, Round
from eventlog.delivery.answers import Strictness
from eventlog.publisher import blocked_rows
from eventlog.publisher.blocked_rows import park_unread
from eventlog.publisher.decide import Decider
from eventlog.publisher.output_queue import OutputQueue
from eventlog.publisher.turn_report import ConsumerSettings
from tests.publisher.scene import Scene

ROWS = 1_000
FEW_BYTES = 48_000
"""Of so many a take has few rows of one object."""


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Collect the statements sent to the database during the block."""
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(engine, "before_cursor_execute", note)


def held(scene: Scene, *numbers: int) -> None:
    with scene.log.transaction() as connection:
        for number in numbers:
            hold(connection, scene.log, [(number, number)], "")


def freed(scene: Scene, number: int) -> None:
    with scene.log.transaction() as connection:
        release(connection, scene.log, [(number, number)])


def parked(scene: Scene, name: str = "one") -> dict[int, tuple[str, bool]]:
    """Return the rows waiting for an output, with the reason and True for a leading one."""
    rows = scene.ask(f"SELECT record_id, reason, due FROM event_log_parked WHERE output = '{name}' ORDER BY 1")
    return {int(number): (reason, due is not None) for number, reason, due in rows}


def parks(scene: Scene) -> bool:
    return park_unread(scene.journal, scene.consumers["one"].decider, 5)


def behind_a_held_row(engine: Engine, *names: str, **how: Any) -> Scene:
    """Row 1 is held, and waits for these outputs."""
    scene = Scene(engine, *names, **how)
    scene.write(1, 1, objects=1)
    held(scene, 1)
    scene.publish()
    return scene


@pytest.mark.in_turn
def test_many_rows_behind_a_held_one_are_parked_by_few_statements(engine: Engine) -> None:
    scene = Scene(engine, "one", query_bytes=FEW_BYTES)
    scene.write(1, ROWS, objects=1)
    scene.write(ROWS + 1, ROWS + 1, objects=ROWS)
    held(scene, 1)
    with statements(engine) as asked:
        scene.publish()
    assert scene.receivers["one"].came == [ROWS + 1]
    assert parked(scene) == {1: ("held", False)} | dict.fromkeys(range(2, ROWS + 1), ("behind", False))
    assert len(asked) < 100
    freed(scene, 1)
    scene.publish()
    assert scene.receivers["one"].came == [ROWS + 1, *range(1, ROWS + 1)]
    assert scene.left() == {}


def test_every_output_gets_rows_that_nobody_has_read(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one", "two")
    scene.write(2, 50, objects=1)
    held(scene, 7)
    assert parks(scene)
    assert parked(scene, "two") == parked(scene, "one")
    assert parked(scene)[7] == ("behind", False)  # that it is held is asked when its turn comes
    assert list(parked(scene)) == [*range(1, 51)]
    freed(scene, 1)
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[1, 2, 3, 4, 5, 6]] * 2
    freed(scene, 7)
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[*range(1, 51)]] * 2
    assert scene.left() == {}


def test_rows_that_do_not_wait_for_every_output_are_left(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one", "two")
    scene.receivers["two"].again = {1}
    scene.write(1, 1, objects=1)
    scene.publish()
    scene.write(2, 20, objects=1)
    assert not parks(scene)
    assert (parked(scene), list(parked(scene, "two"))) == ({}, [1])


def test_nothing_is_parked_unread_while_an_output_has_a_batch_ahead(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one", "two")
    scene.write(2, 4, objects=1)
    scene.publish("one")
    scene.write(5, 20, objects=1)
    assert not parks(scene)
    assert list(parked(scene)) == [1, 2, 3, 4]


def test_only_few_rows_of_other_objects_are_passed(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one")
    scene.write(2, 30, objects=2)
    assert parks(scene)
    assert list(parked(scene)) == [1, 2, 4, 6, 8, 10, 12]
    assert not parks(scene)  # those between go first
    scene.publish()
    assert scene.receivers["one"].came == [*range(3, 30, 2)]
    assert list(parked(scene)) == [1, *range(2, 31, 2)]


def test_no_row_is_passed_where_it_counts_which_one_ends_a_transaction(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one", ends=True)
    scene.write(2, 3, objects=1)
    scene.write(4, 10, objects=2)
    assert parks(scene)
    assert list(parked(scene)) == [1, 2, 3, 4]


def test_rows_that_became_visible_below_known_ones_are_parked_too(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    scene.write(5, 5, objects=1)
    held(scene, 5)
    scene.publish()
    scene.write(2, 4, objects=1)
    scene.write(6, 20, objects=1)
    assert parks(scene)
    assert list(parked(scene)) == [*range(2, 21)]


def test_rows_with_one_number_are_parked_together(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one")
    scene.write(2, 20, objects=1)
    scene.write(20, 20, objects=1)
    assert parks(scene)
    assert list(parked(scene)) == [*range(1, 21)]
    freed(scene, 1)
    scene.publish()
    assert (scene.receivers["one"].came, scene.left()) == ([*range(1, 20)], {})
    assert scene.ask("SELECT DISTINCT record_id, status FROM event_log WHERE record_id > 18") == [(19, "S"), (20, "E")]


def test_a_row_that_names_no_object_is_left(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one")
    scene.table.write(2, table_key=None)
    assert not parks(scene)
    assert list(parked(scene)) == [1]


def test_a_change_is_not_cut_where_so_many_rows_were_looked_at(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_rows, "UNREAD_ROWS", 8)
    scene = behind_a_held_row(sqlite, "one")
    scene.write(2, 8, objects=1)
    for number, column in ((9, "fname"), (10, "lname")):
        scene.table.write(number, key="idu=0", column_name=column, new_value="x")
    scene.write(11, 60, objects=1)
    assert parks(scene)
    assert list(parked(scene)) == [*range(1, 9)]


def test_nothing_is_parked_unread_of_a_paused_output(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one")
    scene.write(2, 20, objects=1)
    consumer, now = scene.consumers["one"], scene.journal.now()
    queue = OutputQueue(scene.journal, consumer.output, ConsumerSettings(limit=5))
    scene.journal.pause("one", "looked at")
    assert not queue.parks_unread(consumer.decider, now)
    scene.journal.pause("one", None)
    assert queue.parks_unread(consumer.decider, now)


def test_nothing_is_parked_unread_where_an_answer_stops_everything(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    scene.receivers["one"].again = {1}
    scene.write(1, 1, objects=1)
    scene.publish()
    scene.write(2, 20, objects=1)
    consumer = scene.consumers["one"]
    now = scene.journal.now()
    choices: list[tuple[Literal["stop", "object"], bool]] = [("stop", False), ("object", True)]
    for on_retry, parks_them in choices:
        settings = ConsumerSettings(limit=5, strictness=Strictness(on_retry=on_retry))
        queue = OutputQueue(scene.journal, consumer.output, settings)
        assert queue.parks_unread(consumer.decider, now) is parks_them


def test_nothing_is_parked_unread_by_who_does_not_know_the_tables(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one")
    scene.write(2, 20, objects=1)
    decider = Decider(Round(options=Options()), tracked="before")
    assert not park_unread(scene.journal, decider, 5)
    assert not park_unread(scene.journal, Decider(Round(options=Options()), stamp=7), 5)
    assert parks(scene)


def test_the_head_of_a_change_is_not_parked_without_its_rest(sqlite: Engine) -> None:
    scene = behind_a_held_row(sqlite, "one", ends=True)
    scene.write(2, 6, objects=1)
    fields = [(2, "idu=0", "v"), (3, "idu=0", "v"), (4, "idu=9", "v"), (5, "idu=0", "w"), (6, "idu=9", "w")]
    with sqlite.begin() as connection:
        for number, key, column in fields:  # row 5 goes on with the change of row 3
            values = {"number": number, "key": key, "name": column}
            connection.execute(
                text(
                    "UPDATE event_log SET event_type = 2, table_key = :key, column_name = :name WHERE record_id = :number"
                ),
                values,
            )
    assert parks(scene)
    assert list(parked(scene)) == [1, 2]
