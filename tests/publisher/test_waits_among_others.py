"""Many rows wait, and rows of other objects stand between them: new rows are found without a look at those that wait."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.care.journal import hold
from eventlog.publisher import memory
from eventlog.publisher.journal import Journal
from eventlog.sources.marks import SEEN, Marks, RowRanges
from eventlog.sql.log import id_list
from tests.publisher.scene import Scene

ROWS = 60
HELD = "idu=0"
"""Every second row is of this object."""


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_SEEN_RANGES", 5)
    monkeypatch.setattr(memory, "KEPT_NUMBERS", 4)


def held(engine: Engine, **how: bool) -> Scene:
    """Make a log with half of its rows behind a held one, and the others published."""
    scene = Scene(engine, "one", **how)
    scene.write(1, ROWS, objects=2)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(2, 2)], "")
    scene.publish()
    assert scene.waiting() == [*range(2, ROWS + 1, 2)]
    return scene


def begun_again(scene: Scene) -> Journal:
    """Make the journal of a publisher that has just begun."""
    return Journal(scene.log, scene.lock, scene.journal.settings)


def test_who_begins_anew_knows_that_all_between_them_is_done(sqlite: Engine) -> None:
    with begun_again(held(sqlite)).reading() as view:
        assert {*range(2, ROWS - 4)} <= {*view.memory.seen}  # the last few may not be written down yet


def test_a_late_row_between_them_is_found_by_who_begins_anew(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    scene.write(1, 20, objects=2)
    scene.write(22, ROWS, objects=2)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(2, 2)], "")
    scene.publish()
    scene.write(21, 21, objects=5)
    with begun_again(scene).reading() as view:
        assert 21 not in view.memory.seen
        sealed = view.rows.next(view, 5)
    assert sealed is not None
    assert [*sealed.records] == [21]


@pytest.mark.parametrize("begins_anew", [True, False])
def test_a_row_that_somebody_set_back_is_found_by_the_sweep(sqlite: Engine, begins_anew: bool) -> None:
    scene = held(sqlite)
    with sqlite.begin() as connection:
        connection.execute(text("UPDATE event_log SET status = 'N' WHERE record_id = 31"))
    journal = begun_again(scene) if begins_anew else scene.journal
    journal.sweep()
    with journal.reading() as view:
        sealed = view.rows.next(view, 5)
    assert sealed is not None
    assert [*sealed.records] == [31]


def test_a_new_row_of_the_future_is_found_between_them(sqlite: Engine) -> None:
    """Rows come in the order of their times then, so that the next one may have any number."""
    scene = held(sqlite, handle_future_events=True)
    scene.write(ROWS + 1, ROWS + 1, objects=7, seconds=+3600)
    scene.write(ROWS + 2, ROWS + 2, objects=7)
    journal = begun_again(scene)
    with journal.reading() as view:
        sealed = view.rows.next(view, 5)
    assert sealed is not None
    assert [*sealed.records] == [ROWS + 2]
    with scene.log.transaction() as connection:
        assert journal.anything(connection)
    scene.publish()
    with scene.log.transaction() as connection:
        assert not scene.journal.anything(connection)


def test_many_stretches_are_forgotten_but_for_the_longest(sqlite: Engine) -> None:
    scene = Scene(sqlite, "one")
    for number in range(10, 300, 10):
        scene.write(number, number, objects=1)
    scene.write(301, 310, objects=1)
    scene.write(320, 320, objects=1)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(10, 10)], "")
    scene.publish()
    with scene.journal.reading() as view:
        assert len(view.memory.seen.parts) <= 10
        assert (301, 310) in view.memory.seen.parts
        assert view.rows.next(view, 5) is None


def test_what_was_written_down_is_forgotten_with_the_last_row_that_waits(sqlite: Engine) -> None:
    scene = held(sqlite)
    with scene.log.transaction() as connection:
        assert Marks(scene.log).get(connection, SEEN) is not None
        connection.execute(text("UPDATE event_log SET status = 'X' WHERE status = 'N'"))
    while scene.journal.sweep():
        pass
    with scene.journal.reading() as view:
        assert view.memory.seen == RowRanges()


def test_the_server_looks_up_what_waits_of_an_object(postgresql: Engine) -> None:
    """And reads nothing else, also where all that waits is of one object, as its statistics say then."""
    scene = Scene(postgresql, "one")
    with postgresql.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO event_log_parked (output, record_id, object, reason, attempts)"
                " SELECT 'one', n, 'usr/idu=1', 'behind', 0 FROM generate_series(1, 20000) AS n"
            )
        )
        connection.execute(text("ANALYZE event_log_parked"))
        for name in ("parked_rows", "parked_first", "parked_objects"):
            asked = {"output": "one", "objects": '["usr/idu=2"]', "limit": 5}
            query = text(f"EXPLAIN (ANALYZE, FORMAT TEXT) {scene.log.query(name)}")
            plan = "\n".join(str(line) for (line,) in connection.execute(query, asked))
            assert "event_log_parked_object" in plan, plan
            assert "Rows Removed" not in plan, plan
        gaps = {"gaps": "[[20001, 30000]]", "ids": id_list([1]), "limit": 5}
        plan = "\n".join(
            str(line) for (line,) in connection.execute(text(f"EXPLAIN {scene.log.query('late_numbers')}"), gaps)
        )
    assert "Seq Scan on event_log_parked" not in plan, plan


def test_what_a_look_has_read_is_read_again_by_the_next_look(sqlite: Engine) -> None:
    """A receiver is away meanwhile; and somebody who uses SQL alone gives a row its status."""
    scene = Scene(sqlite, "one", askable=True)
    scene.write(1, 3)
    scene.publish()
    scene.write(4, 6)
    for _ in range(2):
        with scene.log.transaction() as connection:
            assert scene.journal.anything(connection)
            connection.execute(text("UPDATE event_log SET status = 'X' WHERE record_id = 5"))
    scene.publish()
    assert scene.receivers["one"].came == [1, 2, 3, 4, 6]
    assert scene.ask("SELECT status FROM event_log WHERE record_id = 5") == [("X",)]
