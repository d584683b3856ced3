"""Outputs of the journal that somebody pauses, resumes, forgets, or of whose rows somebody gives up some."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care import journal as care
from eventlog.care.journal import CaredJournal
from eventlog.care.outputs import find_kept_for, forget, pause, resume, skip
from eventlog.config.settings import Config, PublisherConfig
from eventlog.core.errors import UsageError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.daemon.health import PublisherHealth
from eventlog.explain.rows import explain
from eventlog.explain.states import OutputPlace, read_places
from eventlog.sources.marks import RowRanges
from eventlog.web.metrics import metrics
from tests.publisher.scene import Scene

BOTH = ("one", "two")


def places(scene: Scene) -> dict[str, OutputPlace]:
    with scene.log.transaction() as connection:
        return read_places(connection, scene.log)


def statuses(scene: Scene) -> dict[int, tuple[str, str | None]]:
    """Return each row's status and its note."""
    notes = {number: note for number, (_, _, note) in scene.table.outcomes().items()}
    return {number: (status, notes.get(number)) for number, status in scene.table.statuses().items()}


def test_a_paused_output_gets_nothing_and_everything_when_it_is_resumed(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    assert pause(scene.log, "two", BOTH, by="ann", why="they move")
    assert not pause(scene.log, "two", BOTH, by="bob")
    scene.write(1, 6)
    scene.publish()
    two = places(scene)["two"]
    assert (two.ahead, two.on_the_way, two.waits, two.kept) == (6, 0, (), 6)
    assert two.paused is not None
    assert two.paused.endswith(" by ann: they move")
    assert resume(scene.log, PublisherConfig(), "two", BOTH)
    assert not resume(scene.log, PublisherConfig(), "two", BOTH)
    resumed = scene.flow().lags["two"].resumed
    assert resumed is not None
    assert resumed.rows == 6
    scene.publish()
    assert [one.came for one in scene.receivers.values()] == [[*range(1, 7)]] * 2
    assert (scene.waiting(), scene.left()) == ([], {})


def test_an_output_can_be_paused_before_its_publisher_has_run(engine: Engine) -> None:
    scene = Scene(engine)
    assert pause(scene.log, "one", BOTH, by="ann")
    assert pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 2)
    scene.add("one")
    scene.add("two")
    scene.publish()
    assert scene.waiting() == [1, 2]
    assert resume(scene.log, PublisherConfig(), "two", BOTH)
    scene.publish()
    assert scene.receivers["two"].came == [1, 2]
    assert scene.waiting() == [1, 2]


def test_what_has_perhaps_another_name_still_is_not_made_anew(engine: Engine) -> None:
    scene = Scene(engine, "former")
    with pytest.raises(UsageError, match="No publisher has worked with the output one yet"):
        pause(scene.log, "one", BOTH, by="ann")
    with pytest.raises(UsageError, match="'three' is no output of the configuration"):
        pause(scene.log, "three", BOTH, by="ann")
    assert list(places(scene)) == ["former"]


def test_an_output_goes_on_under_its_new_name_with_all_that_it_had(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    scene.receivers["two"].again = {1}
    scene.write(1, 4)
    scene.publish()
    pause(scene.log, "two", BOTH, by="ann")
    before = places(scene)["two"]
    scene.journal.serve([("bus", ("two",))])
    after = places(scene)
    assert list(after) == ["bus", "one"]
    assert (after["bus"].waits, after["bus"].paused) == (before.waits, before.paused)
    assert [(one.reason, one.rows, one.first) for one in before.waits] == [("behind", 1, 4), ("retry", 1, 1)]


def test_rows_that_are_given_up_end_with_a_warning(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(care, "PIECE_ROWS", 2)
    scene = Scene(engine, *BOTH)
    scene.receivers["two"].again = {1}
    scene.write(1, 9)
    scene.publish()
    assert scene.waiting() == [1, 4, 7]
    assert [*find_kept_for(scene.log, "two")] == [1, 4, 7]
    assert skip(scene.log, "two", RowRanges([(1, 2)]), by="ann", why="they have it") == 1
    assert statuses(scene)[1] == ("W", "two: given up by ann: they have it")
    scene.publish()  # what was behind it goes
    assert scene.receivers["two"].came == [2, 3, 5, 6, 8, 9, 4, 7]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_row_that_its_outputs_ended_differently_keeps_what_each_of_them_said(engine: Engine) -> None:
    scene = Scene(engine, *BOTH, "three")
    scene.receivers["two"].refused = {1, 3}
    scene.receivers["one"].refused = scene.receivers["three"].refused = {3}
    scene.write(1, 3)
    scene.publish()
    told = dict(scene.ask("SELECT record_id, answers FROM event_log_outcome ORDER BY 1"))
    published = ["S", "published", None]
    answers = {"one": published, "two": ["E", "refused", "no group"], "three": published}
    assert {number: text and json.loads(text) for number, text in told.items()} == {1: answers, 3: None}
    explained = explain(engine, scene.table.names, Config(), 1)
    assert [answer.sentence for answer in explained.answers] == [
        "one: S published",
        "two: E refused: no group",
        "three: S published",
    ]
    assert explain(engine, scene.table.names, Config(), 3).answers == ()


def test_an_answer_that_comes_later_is_kept_with_its_output(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    scene.write(1, 1)
    scene.publish()
    refused = Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no group")
    scene.journal.answer_late("two", {1: refused}, {}, scene.journal.doubts)
    assert statuses(scene)[1] == ("E", "no group")
    [answer] = explain(engine, scene.table.names, Config(), 1).answers
    assert answer.sentence == "two: E refused: no group"


@pytest.mark.parametrize("piece", [2, 10_000])
def test_all_that_an_output_lacks_is_given_up(engine: Engine, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(care, "PIECE_ROWS", piece)
    scene = Scene(engine, *BOTH)
    scene.receivers["two"].again = {1}
    scene.write(1, 5)
    scene.publish()
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(6, 12)
    scene.publish()
    assert scene.waiting() == [1, 4, *range(6, 13)]
    assert [*find_kept_for(scene.log, "two")] == scene.waiting()
    assert skip(scene.log, "two", None, by="ann") == 9
    assert {status for status, _ in statuses(scene).values()} == {"S", "W"}
    assert (scene.waiting(), scene.left()) == ([], {})
    assert skip(scene.log, "two", None, by="ann") == 0
    resume(scene.log, PublisherConfig(), "two", BOTH)
    scene.write(13, 13)
    scene.publish()
    assert scene.receivers["two"].came == [2, 3, 5, 13]


def test_nothing_stays_of_a_row_that_somebody_settled_when_its_batch_is_passed(engine: Engine) -> None:
    scene = Scene(engine, "one", "two", "three")
    scene.write(1, 2)
    scene.publish("three")
    skip(scene.log, "one", RowRanges([(1, 1)]), by="ann")
    scene.table.run("UPDATE event_log SET status = 'X' WHERE record_id = 1")
    skip(scene.log, "two", RowRanges([(2, 2)]), by="ann")
    scene.table.run("UPDATE event_log SET status = 'N' WHERE record_id = 1")
    scene.publish()
    assert (scene.waiting(), scene.left()) == ([], {})
    assert statuses(scene)[1][0] == "S"


def test_a_row_that_others_lack_keeps_what_was_said_until_they_have_it(engine: Engine) -> None:
    scene = Scene(engine, "one", "two", "three")
    pause(scene.log, "two", [*scene.receivers], by="ann")
    pause(scene.log, "three", [*scene.receivers], by="ann")
    scene.write(1, 3)
    scene.publish()
    assert skip(scene.log, "two", RowRanges([(2, 2)]), by="ann") == 1
    assert scene.waiting() == [1, 2, 3]
    assert [(one.reason, one.rows) for one in places(scene)["two"].waits] == [("new", 2)]
    resume(scene.log, PublisherConfig(), "three", [*scene.receivers])
    scene.publish()
    assert statuses(scene)[2] == ("W", "two: given up by ann.")
    resume(scene.log, PublisherConfig(), "two", [*scene.receivers])
    scene.publish()
    assert scene.receivers["two"].came == [1, 3]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_rows_before_those_that_are_given_up_stay_in_their_order(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 8, objects=1)
    scene.publish()
    scene.table.run("UPDATE event_log_output SET paused = NULL")
    assert skip(scene.log, "two", RowRanges([(4, 5)]), by="ann") == 2
    scene.write(9, 10, objects=1)
    scene.publish()
    assert scene.receivers["two"].came == [1, 2, 3, 6, 7, 8, 9, 10]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_document_that_comes_again_and_again_can_be_given_up_whole(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    scene.receivers["two"].away = True
    scene.write(1, 3)
    scene.publish()
    assert places(scene)["two"].on_the_way == 3
    assert [*find_kept_for(scene.log, "two")] == [1, 2, 3]
    assert skip(scene.log, "two", RowRanges([(1, 1)]), by="ann") == 1
    assert statuses(scene)[1] == ("W", "two: given up by ann.")
    scene.receivers["two"].away = False
    scene.table.run("UPDATE event_log_planned SET due = 0")
    scene.publish()
    assert scene.receivers["two"].came == [2, 3]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_what_a_target_that_can_be_asked_may_have_is_not_given_up(engine: Engine) -> None:
    scene = Scene(engine, *BOTH, askable=True)
    scene.receivers["two"].away = True
    scene.write(1, 7)
    scene.publish()
    assert [*find_kept_for(scene.log, "two")] == [6, 7]
    assert skip(scene.log, "two", None, by="ann") == 2
    assert scene.waiting() == [1, 2, 3, 4, 5]
    scene.receivers["two"].away = False
    scene.publish()
    assert scene.receivers["two"].came == [1, 2, 3, 4, 5]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_forgotten_output_leaves_nothing(engine: Engine) -> None:
    scene = Scene(engine, *BOTH, askable=True)
    scene.receivers["two"].away = True
    scene.write(1, 7)
    scene.publish()
    with pytest.raises(UsageError, match="two is still configured"):
        forget(scene.log, "two", BOTH, by="ann")
    assert forget(scene.log, "two", ["one"], by="ann") == 7
    assert {status for status, _ in statuses(scene).values()} == {"S"}, "the other one had them"
    assert (list(places(scene)), scene.left()) == (["one"], {})
    with pytest.raises(UsageError, match="Nothing is kept for two"):
        forget(scene.log, "two", ["one"], by="ann")
    with pytest.raises(UsageError, match="Nothing is kept for two"):
        skip(scene.log, "two", None, by="ann")


def test_what_nobody_else_got_of_a_forgotten_output_is_a_warning(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 3)
    scene.publish()
    filtered = "INSERT INTO event_log_answer (record_id, output, status, reason) VALUES (2, 'one', 'S', 'filtered')"
    scene.table.run(filtered)
    forget(scene.log, "two", ["one"], by="ann")
    assert {number: status for number, (status, _) in statuses(scene).items()} == {1: "S", 2: "W", 3: "S"}
    assert statuses(scene)[2][1] == "two: given up by ann: it is not configured any more."
    assert (scene.waiting(), scene.left()) == ([], {})


def test_a_place_that_is_not_configured_is_paused_and_not_resumed(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    assert pause(scene.log, "two", ["one"], by="ann")
    with pytest.raises(UsageError, match="'two' is no output of the configuration"):
        resume(scene.log, PublisherConfig(), "two", ["one"])


@pytest.mark.parametrize("settings", [{"max_paused_seconds": 60}, {"max_paused_rows": 2}])
def test_a_pause_that_is_too_long_or_keeps_too_much_is_overdue(engine: Engine, settings: dict[str, Any]) -> None:
    scene = Scene(engine, *BOTH)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 2)
    scene.publish()
    assert not scene.flow(**settings).lags["two"].overdue
    scene.write(3, 3)
    scene.publish()
    if "max_paused_seconds" in settings:
        scene.table.run("UPDATE event_log_output SET paused = 'since 2026-01-01 10:00:00 UTC by ann'")
        scene.table.run("UPDATE event_log_output SET paused = NULL WHERE name = 'one'")
    assert scene.flow(**settings).lags["two"].overdue
    assert not scene.flow().lags["two"].overdue or "max_paused_seconds" in settings


def test_an_overdue_pause_is_a_metric_of_its_output(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 3)
    scene.publish()
    told = metrics(replace(PublisherHealth().reading(), flow=scene.flow(max_paused_rows=2))).decode()
    assert 'eventlog_output_pause_overdue{output="two"} 1.0' in told
    told = metrics(replace(PublisherHealth().reading(), flow=scene.flow(max_paused_rows=9))).decode()
    assert 'eventlog_output_pause_overdue{output="two"} 0.0' in told


def test_rows_given_up_leave_no_record_where_rows_leave_the_log(engine: Engine) -> None:
    scene = Scene(engine, *BOTH, delete_from_log=True)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 4)
    scene.publish()
    assert skip(scene.log, "two", None, by="ann", delete_from_log=True) == 4
    scene.publish()
    assert scene.ask("SELECT COUNT(*) FROM event_log") == [(0,)]
    assert scene.ask("SELECT record_id, status, reason FROM event_log_outcome") == []
    assert scene.left() == {}


def test_the_rows_of_the_last_output_wait_for_whoever_publishes_next(engine: Engine) -> None:
    scene = Scene(engine, "one")
    scene.receivers["one"].again = {1}
    scene.write(1, 4)
    scene.publish()
    assert forget(scene.log, "one", ["two"], by="ann") == 2
    assert (scene.waiting(), scene.left()) == ([1, 4], {})
    del scene.consumers["one"]
    scene.add("two")
    scene.publish()
    assert scene.receivers["two"].came == [1, 4]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_what_others_get_while_an_output_is_forgotten_is_over_for_all(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(engine, *BOTH)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 3)
    scene.publish()
    give_up_batch, last = CaredJournal._give_up_batch, 3

    def beside_a_publisher(*given: Any) -> int | None:
        nonlocal last
        scene.write(last + 1, last + 1)
        scene.publish("one")
        last += 1
        assert last < 9, "it seals as fast as rows are given up"
        return give_up_batch(*given)

    monkeypatch.setattr(CaredJournal, "_give_up_batch", beside_a_publisher)
    forget(scene.log, "two", ["one"], by="ann")
    assert (scene.waiting(), scene.left()) == ([], {})
    scene.publish("one")
    assert scene.receivers["one"].came == [*range(1, last + 1)]


def test_batches_of_the_last_output_wait_for_whoever_publishes_next(engine: Engine) -> None:
    scene = Scene(engine, *BOTH)
    pause(scene.log, "two", BOTH, by="ann")
    scene.write(1, 3)
    scene.publish()
    assert forget(scene.log, "one", ["three"], by="ann") == 0
    assert forget(scene.log, "two", ["three"], by="ann") == 3
    assert scene.waiting() == [1, 2, 3]
    scene.consumers.clear()
    scene.add("three")
    scene.publish()
    assert scene.receivers["three"].came == [1, 2, 3]
    assert (scene.waiting(), scene.left()) == ([], {})
