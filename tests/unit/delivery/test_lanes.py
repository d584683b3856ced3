"""Documents side by side: what goes together, what an answer or a failure stops, and that no thread stays behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from eventlog.core.errors import MachineError, SinkError
from eventlog.core.model import Change, Op, Position, Reason, RowId, Status
from eventlog.delivery.output import Delivery, Output, Piece, Strictness
from eventlog.sources.notes import Progress, read_positions
from tests.support.lanes import Fate, LanedSink, success
from tests.support.memory import OneEach

BY_OBJECT = Strictness(on_retry="object")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def changes(objects: str) -> list[Change]:
    """A change of each of these objects, called by letters; `*` empties the table."""
    return [
        Change(
            row=RowId(None, "usr", "" if letter == "*" else f"idu={letter}"),
            op=Op.TRUNCATE if letter == "*" else Op.MODIFY,
            positions=((number,),),
        )
        for number, letter in enumerate(objects, 1)
    ]


def delivery(objects: str, sink: LanedSink, strictness: Strictness | None = None, **former: Any) -> Delivery:
    output = Output(format=OneEach(), sink=sink, answers=True)
    return Delivery(output, [Piece(changes=changes(objects))], Progress(**former), strictness or Strictness())


def delivered(objects: str, sink: LanedSink, strictness: Strictness | None = None) -> Delivery:
    made = delivery(objects, sink, strictness)
    made.run(None, lambda: None, lambda: None)
    return made


def fated(**fates: Status | BaseException) -> Fate:
    """What becomes of documents by their ids, as `_3`."""
    return lambda identity: fates.get(f"_{identity}")


def waiting(made: Delivery) -> dict[int, Reason]:
    return {position[0]: said.reason for position, said in made.said.answers.items() if said.status is Status.NEW}


def done(made: Delivery) -> list[int]:
    return [position[0] for position in read_positions(made.done())]


def test_documents_of_different_objects_go_together() -> None:
    sink = LanedSink(4, meet=4)
    made = delivered("abcd", sink)
    assert max(map(len, sink.together)) == 4
    assert (made.documents, done(made)) == (4, [1, 2, 3, 4])


def test_no_more_go_together_than_there_are_lanes() -> None:
    sink = LanedSink(2, meet=2)
    delivered("abcdefgh", sink)
    assert max(map(len, sink.together)) == 2


def test_documents_of_one_object_never_go_together() -> None:
    sink = LanedSink(4)
    delivered("aaaabaaa", sink)
    assert [identity for identity in sink.answered if identity != "5"] == ["1", "2", "3", "4", "6", "7", "8"]
    assert all(len(here - {"5"}) == 1 for here in sink.together if here != {"5"})


def test_a_change_of_a_whole_table_goes_alone() -> None:
    sink = LanedSink(3)
    delivered("ab*ab", sink)
    assert sink.answered.index("3") == 2
    assert sink.together[sink.came.index("3")] == {"3"}
    assert set(sink.answered[:2]) == {"1", "2"}


def test_a_single_document_needs_no_thread() -> None:
    sink = LanedSink(4)
    here = threading.get_ident()
    threads: list[int] = []
    sink.fate = lambda _: threads.append(threading.get_ident())
    delivered("a", sink)
    assert threads == [here]


def test_a_single_lane_needs_no_thread() -> None:
    threads: list[int] = []
    sink = LanedSink(1)
    sink.fate = lambda _: threads.append(threading.get_ident())
    delivered("abc", sink)
    assert threads == [threading.get_ident()] * 3


def test_what_waits_keeps_the_plan_that_it_went_out_under() -> None:
    made = delivery("aabc", LanedSink(2, fated(_1=Status.NEW)), BY_OBJECT)
    noted: set[str] = set()
    made.run(None, lambda: noted.update(one.plan for one in made.progress().planned))
    assert {one.id: {one.plan} for one in made.progress().planned} == {"1": noted, "2": noted}
    assert len(noted) == 1


def test_there_are_no_more_threads_than_documents() -> None:
    sink = LanedSink(64, meet=2)
    most: list[int] = []
    sink.fate = lambda _: most.append(threading.active_count())
    before = threading.active_count()
    delivered("ab", sink)
    assert max(most) <= before + 2


@pytest.mark.parametrize("status", [Status.NEW, Status.FATAL])
def test_what_is_on_its_way_counts_though_an_answer_stops_the_rest(status: Status) -> None:
    judged = threading.Event()

    def fate(identity: str) -> Status | None:
        if identity != "2":
            assert judged.wait(60)
        return status if identity == "2" else None

    sink = LanedSink(3, fate, meet=3)
    made = delivery("abcdea", sink)
    made.run(None, lambda: None, judged.set)
    assert sorted(sink.came) == ["1", "2", "3"]
    assert done(made) == ([1, 3] if status is Status.NEW else [1, 2, 3])
    assert made.said.answers[2,].status is status
    assert {number for number, reason in waiting(made).items() if reason is Reason.HELD} == {4, 5, 6}


def test_only_its_object_waits_where_that_is_wanted() -> None:
    sink = LanedSink(3, fated(_1=Status.NEW))
    made = delivered("abacbda", sink, BY_OBJECT)
    assert waiting(made) == {1: Reason.RETRY, 3: Reason.HELD, 7: Reason.HELD}
    assert done(made) == [2, 4, 5, 6]
    assert "3" not in sink.came


def test_a_change_of_a_whole_table_waits_for_any_object_and_everything_waits_for_it() -> None:
    sink = LanedSink(3, fated(_1=Status.NEW))
    made = delivered("ab*cb", sink, BY_OBJECT)
    assert sorted(sink.came) == ["1", "2"]
    assert waiting(made) == {1: Reason.RETRY, 3: Reason.HELD, 4: Reason.HELD, 5: Reason.HELD}


def test_nothing_passes_a_change_of_a_whole_table_that_was_not_taken() -> None:
    sink = LanedSink(3, fated(_2=Status.NEW))
    made = delivered("a*bc", sink, BY_OBJECT)
    assert waiting(made) == {2: Reason.RETRY, 3: Reason.HELD, 4: Reason.HELD}


def test_documents_that_come_again_do_so_in_their_order() -> None:
    sink = LanedSink(4, fated(_1=Status.NEW, _2=Status.NEW, _4=Status.NEW), meet=4)
    made = delivered("abcd", sink)
    assert [(one.id, one.positions) for one in made.progress().planned] == [("1", "1"), ("2", "2"), ("4", "4")]


def test_after_a_failure_nothing_new_is_sent_and_what_was_on_its_way_is_noted() -> None:
    def cut(identity: str) -> SinkError | None:
        if identity == "1":
            return SinkError("The line is cut.")
        threading.Event().wait(
            0.01
        )  # a receiver takes its time; else the other lane may be through before this one is told
        return None

    sink = LanedSink(2, cut, meet=2)
    made = delivery("aab" + "cdefgh" * 20, sink)
    with pytest.raises(SinkError, match="line is cut"):
        made.run(None, lambda: None, lambda: None)
    assert set(sink.came[:2]) == {"1", "3"}
    assert "2" not in sink.came
    assert len(sink.came) < 50, "what comes later is not sent"
    noted = made.progress()
    assert done(made) == sorted(int(identity) for identity in sink.answered)
    assert len(noted.planned) == 100
    assert noted.answers == ()


def test_threads_are_called_after_their_lanes() -> None:
    names: set[str] = set()
    delivered("ab", LanedSink(2, lambda _identity: names.add(threading.current_thread().name), meet=2))
    assert names == {"eventlog-lane-0", "eventlog-lane-1"}


@pytest.mark.parametrize(
    "failures,raised",
    [
        ((SinkError("a"), SinkError("b", may_pass=False)), "b"),
        ((SinkError("a", may_pass=False), SinkError("b")), "a"),
        ((SinkError("a", may_pass=False), ValueError("b")), "b"),
        ((ValueError("a"), SinkError("b", may_pass=False)), "a"),
    ],
)
def test_of_several_failures_the_worst_is_raised(failures: tuple[Exception, Exception], raised: str) -> None:
    sink = LanedSink(2, fated(_1=failures[0], _2=failures[1]), meet=2)
    with pytest.raises((MachineError, ValueError), match=raised):
        delivered("abcd", sink)


def test_what_was_answered_is_not_sent_again_after_a_failure() -> None:
    first = LanedSink(2, fated(_1=SinkError("cut")), meet=2)
    made = delivery("abab", first)
    with pytest.raises(SinkError):
        made.run(None, lambda: None, lambda: None)
    noted = made.progress()
    left = [number for number in range(1, 5) if str(number) not in first.answered]
    assert 1 in left
    assert 2 not in left
    assert [int(plan.id) for plan in noted.planned] == [1, 2, 3, 4]
    assert read_positions(noted.done) == [(number,) for number in range(1, 5) if number not in left]


def test_an_interruption_breaks_off_what_is_on_its_way() -> None:
    sink = LanedSink(3)
    sink.fate = success

    def interrupted() -> None:
        sink.meet = 99  # whoever comes from now on waits until it is broken off
        raise KeyboardInterrupt

    made = delivery("abcdefgh", sink)
    with pytest.raises(KeyboardInterrupt):
        made.run(None, lambda: None, interrupted)
    assert sink.closed >= 3
    assert not any(lane.broken for lane in sink.lanes)
    sink.meet = 1
    delivered("ab", sink)
    assert sink.answered[-2:] in (["1", "2"], ["2", "1"])


def test_an_error_of_ours_waits_for_what_is_on_its_way_and_breaks_nothing_off() -> None:
    sink = LanedSink(2, meet=2)

    def failing() -> None:
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="fault of ours"):
        delivery("abcd", sink).run(None, lambda: None, failing)
    assert sink.closed == 0


def test_what_was_taken_is_told_as_far_as_nothing_before_it_is_open() -> None:
    judged = threading.Event()
    sink = LanedSink(3, meet=3)
    sink.fate = lambda identity: None if identity != "1" or judged.wait(60) else Status.FATAL
    made = delivery("abc", sink)
    seen: list[tuple[str, Position] | None] = []

    def pulse() -> None:
        seen.append(made.taken)
        if len(seen) == 2:
            judged.set()

    made.run(None, lambda: None, pulse)
    assert seen == [None, None, ("3", (3,))]
    assert sink.answered[-1] == "1"


def test_what_is_asked_for_again_is_not_told_as_taken_nor_what_comes_after_it() -> None:
    made = delivered("abcd", LanedSink(4, fated(_2=Status.NEW), meet=4))
    assert made.taken == ("1", (1,))


def test_where_only_an_object_waits_the_last_that_was_taken_is_told() -> None:
    made = delivered("abbac", LanedSink(2, fated(_2=Status.NEW)), BY_OBJECT)
    assert waiting(made) == {2: Reason.RETRY, 3: Reason.HELD}
    assert made.taken == ("5", (5,))


def test_what_was_taken_is_told_too_where_the_object_is_the_last_to_be_asked_for_again() -> None:
    others = threading.Event()

    def fate(identity: str) -> Status | None:
        if identity == "5":
            others.set()
        if identity != "2":
            return None
        assert others.wait(60)
        return Status.NEW

    sink = LanedSink(2, fate)
    made = delivered("abbac", sink, BY_OBJECT)
    assert waiting(made) == {2: Reason.RETRY, 3: Reason.HELD}
    assert made.taken == ("5", (5,))


def test_plans_are_as_long_as_there_are_lanes() -> None:
    plans: list[int] = []
    sink = LanedSink(3)
    made = delivery("abcdefghij" * 30, sink)
    made.run(None, lambda: plans.append(len(made.progress().planned)), lambda: None)
    assert plans == [150, 150]


def test_what_was_taken_before_stays_told_when_nothing_more_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.delivery.output.ANSWERED_DOCUMENTS", 1)
    made = delivered("abcd", LanedSink(2, fated(_3=Status.NEW, _4=Status.NEW)))
    assert made.taken == ("2", (2,))
