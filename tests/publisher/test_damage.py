"""Tables of the journal that somebody has edited: `check` names each fault, and a publisher that meets it says it too."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.care.rows import hold
from eventlog.check.damage import BY_ITSELF, Damage, damages, read_journal
from eventlog.check.journal import journal_points
from eventlog.check.point import PointLevel
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import DataError
from eventlog.sinks.outputs import FilesOutput
from tests.publisher.scene import Scene


def scene_at_work(engine: Engine, *, askable: bool = False) -> Scene:
    """Make a scene in good order with rows ahead of an output and on their way to it, parked for the other, and
    held.
    """
    scene = Scene(engine, "one", "two", askable=askable)
    scene.receivers["one"].again = set() if askable else {1}
    scene.receivers["two"].away = True
    scene.write(1, 12)
    hold(scene.log, [(2, 2)])
    scene.publish()
    return scene


def found(scene: Scene) -> list[Damage]:
    with scene.log.transaction() as connection:
        return list(damages(read_journal(connection, scene.log)))


@pytest.mark.parametrize("askable", [False, True])
def test_a_journal_at_work_has_no_fault(engine: Engine, askable: bool) -> None:
    scene = scene_at_work(engine, askable=askable)
    assert {"batch", "planned", "parked", "hold"} <= scene.left().keys()
    assert found(scene) == []


UNREADABLE = {
    "records of batch ": "UPDATE event_log_batch SET records = '[[6,10'",
    "a range of rows is from 10 to 6": "UPDATE event_log_batch SET records = '[[10,6]]'",
    "output.transactions of two": "UPDATE event_log_output SET transactions = '[]' WHERE name = 'two'",
    "records of plan 0": "UPDATE event_log_planned SET records = '7'",
    "details of plan 0": "UPDATE event_log_planned SET details = 'what?'",
    "objects of plan 0": "UPDATE event_log_planned SET objects = '7'",
    "covers of plan 0": "UPDATE event_log_planned SET covers = '[1]'",
}


@pytest.mark.parametrize("said", UNREADABLE)
def test_what_cannot_be_read_is_named_and_stops_the_publisher_with_a_sentence(engine: Engine, said: str) -> None:
    scene = scene_at_work(engine)
    scene.table.run(UNREADABLE[said])
    [first, *others] = found(scene)
    assert said in first.said
    assert first.serious
    assert all(one.said.startswith("The journal beside the log cannot be read") for one in others)
    scene.journal.forget_memory()
    with pytest.raises(DataError) as told:
        scene.publish("two")
    assert said in told.value.message
    assert told.value.hint == first.mend


def test_a_position_ahead_of_the_batches(engine: Engine) -> None:
    scene = scene_at_work(engine)
    scene.table.run("UPDATE event_log_output SET position = 99 WHERE name = 'two'")
    [one] = found(scene)
    newest = scene.ask("SELECT MAX(id) FROM event_log_batch")[0][0]
    assert f"has the output two at batch 99, and {newest} is the newest" in one.said
    assert f"set the position to {newest}" in one.mend


def test_rows_that_the_journal_waits_for_and_that_wait_no_longer(engine: Engine) -> None:
    scene = scene_at_work(engine)
    scene.table.run("DELETE FROM event_log WHERE record_id IN (1, 9)")
    scene.table.run("UPDATE event_log SET status = 'X' WHERE record_id IN (2, 12)")
    assert [(one.said, one.mend) for one in found(scene)] == [
        (f"event_log_{what} that the log does not have, or that has a letter there: {which}.", BY_ITSELF)
        for what, which in (
            ("parked has 2 rows waiting for one", "row 1 first"),
            ("parked has 1 row waiting for two", "row 2"),
            ("batch has 2 rows to be published", "row 9 first"),
            ("hold holds 1 row", "row 2"),
        )
    ]
    scene.receivers["two"].away = False
    scene.table.run("UPDATE event_log_planned SET due = 0")
    scene.journal.sweep()
    scene.publish()
    scene.journal.sweep()
    assert found(scene) == []


def test_rows_and_plans_of_an_output_that_is_not_there(engine: Engine) -> None:
    scene = scene_at_work(engine)
    scene.table.run("DELETE FROM event_log_output WHERE name = 'two'")
    sentences = [one.said for one in found(scene)]
    end = "for the output two, which event_log_output does not have: the rows behind them never get a letter."
    parked = scene.ask("SELECT COUNT(*) FROM event_log_parked WHERE output = 'two'")[0][0]
    assert sentences == [f"Plans in event_log_planned are {end}", f"{parked} rows in event_log_parked are {end}"]


def test_a_plan_that_is_not_the_last_one_of_its_output(engine: Engine) -> None:
    scene = scene_at_work(engine, askable=True)
    scene.table.run("UPDATE event_log_output SET plan = 'another' WHERE name = 'two'")
    [one] = found(scene)
    assert one.said.endswith("of two, and event_log_output says that another was its last one.")


def test_a_letter_that_nobody_writes(engine: Engine) -> None:
    scene = scene_at_work(engine)
    scene.table.run(
        "INSERT INTO event_log_answer (record_id, output, status, reason) VALUES (7, 'one', 'Q', 'published')"
    )
    [one] = found(scene)
    assert one.said.startswith("event_log_answer says of row 7 that it ends as 'Q' with the reason 'published'")
    scene.table.run(
        "INSERT INTO event_log_answer (record_id, output, status, reason)"
        " SELECT record_id, 'one', 'Q', 'published' FROM event_log WHERE record_id <> 7"
    )
    scene.receivers["two"].away = False
    scene.journal.forget_memory()
    with pytest.raises(DataError, match="status of row"):
        scene.publish("two")


def test_check_tells_of_faults_and_of_outputs_that_are_no_more(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    source = SourceConfig(url=str(engine.url))
    both = tuple(FilesOutput(name=name, path="out") for name in ("one", "two"))
    points = list(journal_points(engine, scene.log.names, Config(source=source, output=both)))
    assert [(point.level, point.said) for point in points] == [(PointLevel.OK, "its tables fit each other and the log")]
    [_, gone] = journal_points(engine, scene.log.names, Config(source=source, output=both[:1]))
    assert (gone.level, gone.exit_code) == (PointLevel.FAILURE, 78)
    assert "has a place for two, and this configuration has one alone" in gone.said
    scene.table.run("UPDATE event_log_output SET transactions = 'x' WHERE name = 'one'")
    levels = [point.level for point in journal_points(engine, scene.log.names, Config(source=source, output=both))]
    assert levels == [PointLevel.FAILURE]


def test_a_target_that_was_restored_is_told(sqlite: Engine, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(sqlite, "one", askable=True)
    scene.write(1, 3)
    scene.publish()
    scene.receivers["one"].plan = "an earlier one"
    scene.receivers["one"].away = True
    scene.write(4, 4)
    scene.publish()  # after its failure the target is asked
    scene.receivers["one"].away = False
    scene.publish()
    [damage] = found(scene)
    assert "one: The target is not where the journal left it: it has plan an earlier one, and " in damage.said
    assert sum("one: The target is " in message for message in caplog.messages) == 1
    assert not damage.serious
    scene.table.run("UPDATE event_log_output SET warning = NULL")
    assert found(scene) == []
