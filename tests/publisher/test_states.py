"""Where the journal has one row, in words: for each output, and once where it is the same for all."""

from __future__ import annotations

from sqlalchemy import Engine

from eventlog.care.rows import hold
from eventlog.delivery.output import OutputState
from eventlog.explain.states import failing_sentences, stages_of, waiting_sentences
from eventlog.sources.marks import OUTPUTS, Marks, as_text
from tests.publisher.scene import Scene


def said(scene: Scene, record: int) -> list[str]:
    with scene.log.transaction() as connection:
        return list(waiting_sentences(connection, scene.log, record))


def where(scene: Scene, record: int) -> list[tuple[str, str]]:
    with scene.log.transaction() as connection:
        return [(one.output, one.stage) for one in stages_of(connection, scene.log, record)]


def test_a_row_that_nobody_has_read_waits(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 1)
    assert (where(scene, 1), said(scene, 1)) == ([("one", "unsealed"), ("two", "unsealed")], ["It waits."])


def test_a_held_row_says_who_holds_it_and_others_that_they_are_behind_it(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.write(1, 6)
    hold(scene.log, [(2, 2)], by="ann", why="to be checked")
    scene.publish()
    [who, waits] = said(scene, 2)
    assert who.startswith("It is held since ")
    assert who.endswith(" by ann: to be checked.")
    assert waits == "It waits until somebody releases it."
    assert said(scene, 5) == ["It waits behind row 2 of the same object, which is held."]


def test_a_row_that_comes_again_says_how_often_it_was_offered(engine: Engine) -> None:
    scene = Scene(engine, "one")
    scene.receivers["one"].again = {1}
    scene.write(1, 6)
    scene.publish()
    with scene.log.transaction() as connection:
        [place] = stages_of(connection, scene.log, 1)
    assert (place.reason, place.note, place.attempts, place.behind) == ("retry", "busy", 1, None)
    assert place.due is not None
    assert said(scene, 1) == ["It is offered again after 1 attempt."]
    assert said(scene, 4) == ["It waits behind row 1 of the same object, which is offered again first."]


def test_outputs_that_wait_for_different_things_are_told_apart(engine: Engine) -> None:
    scene = Scene(engine, "one", "three", "two")
    scene.receivers["one"].again = {1}
    scene.receivers["two"].away = True
    scene.journal.pause("three", "since noon")
    scene.write(1, 7)
    scene.publish()
    assert where(scene, 1) == [("one", "parked"), ("three", "ahead"), ("two", "planned")]
    assert said(scene, 1) == [
        "one: It is offered again after 1 attempt.",
        "three: It waits until somebody resumes the output.",
        "two: It is being delivered.",
    ]
    assert where(scene, 2) == [("one", "over"), ("three", "ahead"), ("two", "planned")]
    assert said(scene, 2) == ["three: It waits until somebody resumes the output.", "two: It is being delivered."]
    assert where(scene, 7) == [("one", "parked"), ("three", "ahead"), ("two", "ahead")]


def test_a_row_that_waits_for_an_output_that_fails_says_why_it_fails(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.receivers["two"].away = True
    scene.write(1, 1)
    scene.publish()
    failing = {name: OutputState(error="Nobody is there.", failed_at=1.0) for name in ("one", "two")}
    with scene.log.transaction() as connection:
        Marks(scene.log).set(connection, OUTPUTS, as_text(failing))
    assert said(scene, 1) == ["two: It is being delivered."]
    with scene.log.transaction() as connection:
        assert [*failing_sentences(connection, scene.log, 1)] == ["two fails: Nobody is there."]


def test_what_an_output_said_of_a_row_is_told_until_all_have_it(engine: Engine) -> None:
    scene = Scene(engine, "one", "two")
    scene.journal.pause("two", "since noon")
    scene.write(1, 1)
    scene.table.run("UPDATE event_log SET event_type = 77")
    scene.publish()
    assert where(scene, 1) == [("one", "over"), ("two", "ahead")]
    assert said(scene, 1) == ["one: It is over: invalid.", "two: It waits until somebody resumes the output."]
