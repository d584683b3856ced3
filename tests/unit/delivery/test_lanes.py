"""Documents side by side: what goes together, what an answer or a failure stops, and that nothing stays behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Literal

import pytest

from eventlog.core.errors import MachineError, SinkError
from eventlog.core.model import EVERY_ROW, Outcome, Position, Status
from eventlog.delivery.answers import Strictness
from eventlog.delivery.lanes import COLLECT_VALUES, TURN_SECONDS, Pace, haste, hasten, read_pace
from eventlog.publisher.sending import HandOver
from eventlog.publisher.tables import Detail, OnTheWay
from eventlog.publisher.turn_report import ConsumerSettings
from tests.support.lanes import Fate, LanedSink, success

BY_OBJECT = Strictness(on_retry="object")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


class Sent:
    """A hand-over of a document for each of these objects, called by letters; `*` empties the table."""

    def __init__(
        self,
        objects: str,
        sink: LanedSink,
        strictness: Strictness | None = None,
        pulse: Callable[[], None] = lambda: None,
        most_attempts: int = 0,
        *,
        unsent: bool = True,
        plans: Sequence[str] = (),
    ) -> None:
        self.over: list[int] = []
        self.freed: list[int] = []
        self.answers: dict[Position, Outcome] = {}
        waiting = [
            OnTheWay(
                plan=plans[number - 1] if plans else "p",
                place=number,
                details=[Detail(str(number), (number,))],
                objects={EVERY_ROW if letter == "*" else f"usr/idu={letter}": number},
                covers={str(number): ((number,),)},
                body="x",
            )
            for number, letter in enumerate(objects, 1)
        ]
        self.hand_over = HandOver(
            sink,
            waiting,
            going=range(len(waiting)),
            unsent={document.key for document in waiting} if unsent else set(),
            settings=ConsumerSettings(strictness=strictness or Strictness(), max_attempts=most_attempts),
            confirm=lambda: None,
            pulse=pulse,
            enter=self.enter,
        )

    def run(self) -> None:
        try:
            self.hand_over.run()
        finally:
            self.hand_over.enter_answers()

    def enter(self, over: Sequence[OnTheWay], freed: Sequence[OnTheWay], answers: Mapping[Position, Outcome]) -> None:
        self.over += [one.place for one in over]
        self.freed += [one.place for one in freed]
        self.answers |= answers

    @property
    def done(self) -> list[int]:
        again = {position[0] for position, answer in self.answers.items() if answer.status is Status.NEW}
        return sorted(set(self.over) - again)


def delivered(objects: str, sink: LanedSink, strictness: Strictness | None = None) -> Sent:
    made = Sent(objects, sink, strictness)
    made.run()
    return made


def fated(**fates: Status | BaseException) -> Fate:
    """What becomes of documents by their ids, as `_3`."""
    return lambda identity: fates.get(f"_{identity}")


@pytest.mark.parametrize("objects, lanes", [("abcd", 4), ("abcdefgh", 2)])
def test_documents_of_different_objects_go_together_in_as_many_lanes_as_there_are(objects: str, lanes: int) -> None:
    sink = LanedSink(lanes, meet=lanes)
    made = delivered(objects, sink)
    assert max(map(len, sink.together)) == lanes
    assert made.done == [*range(1, len(objects) + 1)]


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


@pytest.mark.parametrize("objects, lanes", [("a", 4), ("abc", 1)])
def test_a_single_document_or_lane_needs_no_thread(objects: str, lanes: int) -> None:
    threads: list[int] = []
    delivered(objects, LanedSink(lanes, lambda _: threads.append(threading.get_ident())))
    assert threads == [threading.get_ident()] * len(objects)


@pytest.mark.parametrize("status", [Status.NEW, Status.FATAL])
def test_what_is_on_its_way_counts_though_an_answer_stops_the_rest(status: Status) -> None:
    judged = threading.Event()

    def fate(identity: str) -> Status | None:
        if identity != "2":
            assert judged.wait(60)
        return status if identity == "2" else None

    sink = LanedSink(3, fate, meet=3)
    made = Sent("abcdea", sink, pulse=judged.set)
    made.run()
    assert sorted(sink.came) == ["1", "2", "3"]
    assert made.done == ([1, 3] if status is Status.NEW else [1, 2, 3])
    assert made.answers[2,].status is status
    behind = {4, 5, 6} if status is Status.NEW else set()
    assert set(made.freed) == behind, "a retry that stops frees what was never sent, so that nothing overtakes"


@pytest.mark.parametrize(
    "objects, refused, freed, done",
    [("abacbda", "_1", [3, 7], [2, 4, 5, 6]), ("ab*cb", "_1", [3, 4, 5], [2]), ("a*bc", "_2", [3, 4], [1])],
    ids=["only its object waits", "an emptying waits for all and all for it", "nothing passes an emptying"],
)
def test_what_was_not_taken_lets_nothing_pass_that_must_not(
    objects: str, refused: str, freed: list[int], done: list[int]
) -> None:
    made = delivered(objects, LanedSink(3, fated(**{refused: Status.NEW})), BY_OBJECT)
    assert (sorted(made.freed), made.done) == (freed, done)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_what_may_be_at_the_receiver_is_neither_freed_nor_sent(lanes: int, on_retry: Literal["stop", "object"]) -> None:
    sink = LanedSink(lanes, fated(_1=Status.NEW))
    made = Sent("aabac", sink, Strictness(on_retry=on_retry), unsent=False)
    made.run()
    assert made.freed == []
    assert not {"2", "4"}.intersection(sink.came)


def test_each_document_goes_under_its_own_plan() -> None:
    sink = LanedSink(2, fated())
    Sent("abc", sink, plans=["2", "1", "1"]).run()
    assert sorted(sink.plans) == ["1", "1", "2"]


def test_nothing_waits_for_a_document_that_is_given_up() -> None:
    sink = LanedSink(1, fated(_1=Status.NEW))
    made = Sent("aab", sink, BY_OBJECT, most_attempts=1)
    made.run()
    assert made.freed == []
    assert made.answers[1,].status is Status.ERROR
    assert sink.came == ["1", "2", "3"]


def test_after_a_failure_nothing_new_is_sent_and_what_was_on_its_way_is_noted() -> None:
    def cut(identity: str) -> SinkError | None:
        if identity == "1":
            return SinkError("The line is cut.")
        threading.Event().wait(0.01)  # else the other lane may be through before this one is told
        return None

    sink = LanedSink(2, cut, meet=2)
    made = Sent("aab" + "cdefgh" * 20, sink)
    with pytest.raises(SinkError, match="line is cut"):
        made.run()
    assert set(sink.came[:2]) == {"1", "3"}
    assert "2" not in sink.came
    assert len(sink.came) < 50, "what comes later is not sent"
    assert made.done == sorted(int(identity) for identity in sink.answered)
    assert made.freed == []


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


def test_an_interruption_breaks_off_what_is_on_its_way() -> None:
    sink = LanedSink(3)
    sink.fate = success

    def interrupted() -> None:
        sink.meet = 99  # whoever comes from now on waits until it is broken off
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Sent("abcdefgh", sink, pulse=interrupted).run()
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
        Sent("abcd", sink, pulse=failing).run()
    assert sink.closed == 0


def same(pace: Pace, other: Pace) -> bool:
    """Whether they are alike; the interpreter counts turns in whole microseconds."""
    return pace[1] == other[1] and pace[0] == pytest.approx(other[0], abs=1e-6)


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_it_does_not_matter_who_ends_first(first: int) -> None:
    before = read_pace()
    stacks = ExitStack(), ExitStack()
    for stack in stacks:
        stack.enter_context(haste())
    stacks[first].close()
    assert same(read_pace(), hasten(before))
    stacks[1 - first].close()
    assert same(read_pace(), before)


def test_who_asked_for_more_haste_or_for_no_garbage_collection_keeps_it() -> None:
    quicker = TURN_SECONDS / 10, (0, 10, 10)
    assert hasten(quicker) == quicker
    lazier = TURN_SECONDS, (COLLECT_VALUES * 2, 10, 10)
    assert hasten(lazier) == lazier
