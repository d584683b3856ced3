"""What outputs get of a repeated batch, and what a receiver's answers stop: everything, an object, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from eventlog.core.errors import DataError, SinkError, SourceError
from eventlog.core.model import Change, Document, Event, Kind, Outcome, Position, Reason, RowId, Status
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.seams import Writer
from eventlog.delivery import output as delivery
from eventlog.delivery.answers import given_up, keep_worse
from eventlog.delivery.output import Strictness
from eventlog.delivery.pipeline import Output, Pipeline
from eventlog.sources.marks import as_text
from eventlog.sources.notes import (
    Progress,
    read_positions,
    read_progress,
    write_positions,
)
from tests.support.memory import MemorySink, MemorySource, OneEach, Several, event, inserts

ROW = RowId(None, "usr", "idu=1")
BY_OBJECT = Strictness(on_retry="object")


class AskingSink(MemorySink):
    """A receiver that answers each document; `sizes` shows that they come one by one."""

    def __init__(self, answers: Mapping[int, Status] | None = None) -> None:
        super().__init__([], answers)


def round_with(source: MemorySource, *sinks: MemorySink, **facts: Any) -> Pipeline:
    outputs = [
        Output(format=OneEach(), sink=sink, name=f"out {number}", answers=isinstance(sink, AskingSink))
        for number, sink in enumerate(sinks)
    ]
    defaults: dict[str, Any] = {"options": Options(), "outputs": outputs}
    return Pipeline(source=source, **(defaults | facts))


def of_objects(*keys: int) -> list[Event]:
    """One event each, of the objects with these keys, and of a column of its own so that none merge."""
    columns = ["fname", "lname"]
    seen: dict[int, int] = {}
    events = []
    for number, key in enumerate(keys, 1):
        seen[key] = seen.get(key, -1) + 1
        kind = Kind.INSERT_FIELD if seen[key] % 2 == 0 else Kind.UPDATE_FIELD
        events.append(event(number, kind, f"idu={key}", columns[0]))
    return events


def letters(source: MemorySource) -> str:
    return "".join(outcome.status for _, outcome in sorted(source.settled.items()))


def reasons(source: MemorySource) -> list[Reason]:
    return [outcome.reason for _, outcome in sorted(source.settled.items())]


def test_what_one_output_has_it_does_not_get_again_because_another_failed() -> None:
    source, good, bad = MemorySource([], inserts(2)), MemorySink([]), MemorySink([], fails_at="2")
    with pytest.raises(SinkError):
        round_with(source, good, bad).go_round()
    bad.fails_at = None
    round_with(source, good, bad).go_round()
    assert good.sizes == [2]
    assert bad.taken == good.taken
    assert letters(source) == "SS"


def test_an_output_is_served_although_the_one_before_it_failed() -> None:
    source, bad, good = MemorySource([], inserts(1)), MemorySink([], fails_at="1"), MemorySink([])
    with pytest.raises(SinkError):
        round_with(source, bad, good).go_round()
    assert list(good.taken) == ["1"]
    assert source.settled == {}


def test_each_output_is_told_of_with_the_time_that_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("eventlog.delivery.pipeline.monotonic", lambda: clock[0])

    class Slow(MemorySink):
        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            clock[0] += len(documents)
            return super().commit(plan, documents)

    seconds: dict[str, float] = {}
    source = MemorySource([], inserts(3))
    told = lambda share, _failure: seconds.update({share.output.name: share.seconds})  # noqa: E731  # it is called once
    round_with(source, Slow([]), MemorySink([]), told=told).go_round()
    assert seconds == {"out 0": 3.0, "out 1": 0.0}


def test_of_several_failures_the_lasting_one_is_told() -> None:
    class Refusing(MemorySink):
        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            raise SinkError("The folder is gone.", may_pass=False)

    source = MemorySource([], inserts(1))
    with pytest.raises(SinkError, match="folder is gone"):
        round_with(source, MemorySink([], fails_at="1"), Refusing([])).go_round()


def test_nothing_is_written_that_was_not_planned_durably() -> None:
    class Forgetful(MemorySource):
        def note(self, notes: Mapping[str, str]) -> None:
            raise SourceError("The connection was lost.")

    sink = MemorySink([])
    with pytest.raises(SourceError):
        round_with(Forgetful([], inserts(2)), sink).go_round()
    assert sink.taken == {}


@pytest.mark.parametrize(
    "status, strictness, sent, settled",
    [
        (Status.NEW, Strictness(), ["1", "2"], "SNNN"),
        (Status.NEW, BY_OBJECT, ["1", "2", "3"], "SNSN"),
        (Status.FATAL, Strictness(), ["1", "2"], "SFNN"),
        (Status.ERROR, Strictness(on_error="halt"), ["1", "2"], "SENN"),
        (Status.ERROR, Strictness(), ["1", "2", "3", "4"], "SESS"),
        (Status.WARNING, Strictness(on_error="halt"), ["1", "2", "3", "4"], "SWSS"),
    ],
)
def test_what_an_answer_stops(status: Status, strictness: Strictness, sent: list[str], settled: str) -> None:
    source, sink = MemorySource([], of_objects(1, 2, 3, 2)), AskingSink({2: status})
    round_with(source, sink, strictness=strictness).go_round()
    assert list(sink.taken) == sent
    assert set(sink.sizes) == {1}
    assert letters(source) == settled
    waiting = {outcome.reason for outcome in source.settled.values() if outcome.status is Status.NEW}
    assert waiting <= {Reason.RETRY, Reason.HELD}
    held = {outcome.note for outcome in source.settled.values() if outcome.reason is Reason.HELD}
    assert held <= {"an earlier change comes first."}


def test_what_was_held_comes_before_what_was_planned_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "ANSWERED_DOCUMENTS", 2)
    source, sink = MemorySource([], of_objects(1, 1, 2, 1)), AskingSink({1: Status.NEW})
    sink.fails_at = "3"
    with pytest.raises(SinkError):
        round_with(source, sink, strictness=BY_OBJECT).go_round()
    sink.answers, sink.fails_at = {}, None
    round_with(source, sink, strictness=BY_OBJECT).go_round()
    assert list(sink.taken) == ["1", "2", "3", "4"]
    assert letters(source) == "SSSS"


def test_a_change_that_overtook_a_retried_one_is_sent_once_more() -> None:
    source, sink = MemorySource([], of_objects(1, 1, 2)), MemorySink([], {1: Status.NEW})
    round_with(source, sink, strictness=BY_OBJECT).go_round()
    assert letters(source) == "NNS"
    assert reasons(source)[:2] == [Reason.RETRY, Reason.HELD]


def test_all_events_of_a_change_end_as_the_worst_of_them() -> None:
    source = MemorySource([], [event(1), event(2, column="lname")])
    round_with(source, MemorySink([], {2: Status.ERROR})).go_round()
    assert letters(source) == "EE"
    source = MemorySource([], [event(1), event(2, column="lname")])
    round_with(source, MemorySink([], {1: Status.ERROR, 2: Status.WARNING})).go_round()
    assert letters(source) == "EE"


def test_a_retried_document_keeps_its_id_and_other_outputs_do_not_get_it_again() -> None:
    source, files, asking = MemorySource([], of_objects(1, 2, 3)), MemorySink([]), AskingSink({2: Status.NEW})
    round_with(source, files, asking).go_round()
    assert letters(source) == "SNN"
    source.batch = type(source.batch)(events=source.batch.events[1:], notes={})
    source.settled = {}
    asking.answers = {}
    round_with(source, files, asking).go_round()
    assert letters(source) == "SS"
    assert files.sizes == [3]
    assert list(asking.taken) == ["1", "2", "3"]


def test_by_object_what_other_outputs_have_is_remembered_until_the_object_is_taken() -> None:
    source, files, asking = MemorySource([], of_objects(1, 2)), MemorySink([]), AskingSink({2: Status.NEW})
    round_with(source, files, asking, strictness=BY_OBJECT).go_round()
    retried = source.batch.events[1]
    for events in ([event(7, key="idu=7")], [retried, event(8, Kind.UPDATE_FIELD, "idu=2")]):
        source.batch, source.settled = type(source.batch)(events=events), {}
        asking.answers = {}
        round_with(source, files, asking, strictness=BY_OBJECT).go_round()
    assert list(files.taken) == ["1", "2", "7", "8"]
    assert list(asking.taken) == ["1", "2", "7", "8"]
    assert files.sizes == [2, 1, 1]
    assert read_positions(read_progress(source.notes, "out 0").done) == []


def test_answers_from_before_a_failure_still_count_after_it() -> None:
    source, asking, bad = (
        MemorySource([], of_objects(1, 2)),
        AskingSink({1: Status.WARNING}),
        MemorySink([], fails_at="1"),
    )
    with pytest.raises(SinkError):
        round_with(source, asking, bad).go_round()
    asking.answers, bad.fails_at = {}, None
    round_with(source, asking, bad).go_round()
    assert letters(source) == "WS"
    assert source.settled[(1,)].note == "said the receiver."


class Counting:
    """Numbers its documents on from the last one that there is, as change tables do with their rows."""

    suffix = ".txt"
    counts = False

    def heartbeat(self) -> None:
        """There is none."""

    def writer(self, catalog: Catalog | None) -> Writer:
        return iter

    def bind(self, written: Iterable[Change], after: str, whole: bool = False) -> Iterator[Document]:
        for number, change in enumerate(written, int(after or 0) + 1):
            body = f"{number} {change.row.key}".encode()
            yield Document(id=f"{number:03}", body=body, covers={change.event_id: change.positions})


class Remembering(MemorySink):
    """Remembers every document that it was given, and the events in it."""

    def __init__(self, answers: Mapping[int, Status] | None = None) -> None:
        super().__init__([], answers)
        self.given: list[Document] = []

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        for document in documents:
            self.given.append(document)
            super().commit("", [document])
        return super().commit(plan, documents)


@pytest.mark.parametrize("fails_at", ["002", "003"])
def test_a_document_that_is_repeated_counts_on_from_where_it_did_before(fails_at: str) -> None:
    source, sink = MemorySource([], inserts(3)), Remembering()
    sink.fails_at = fails_at
    outputs = [Output(format=Counting(), sink=sink)]
    with pytest.raises(SinkError):
        round_with(source, outputs=outputs).go_round()
    sink.fails_at = None
    round_with(source, outputs=outputs).go_round()
    bodies = {document.id: {one.body for one in sink.given if one.id == document.id} for document in sink.given}
    assert bodies == {"001": {b"1 idu=1"}, "002": {b"2 idu=2"}, "003": {b"3 idu=3"}}
    assert letters(source) == "SSS"


@pytest.mark.parametrize("strictness", [Strictness(), BY_OBJECT], ids=["stop", "object"])
def test_a_fatal_answer_is_the_last_word_also_about_an_object_that_waits(strictness: Strictness) -> None:
    source, sink = MemorySource([], of_objects(1, 1, 2)), Remembering({1: Status.NEW, 2: Status.FATAL})
    outputs = [Output(format=Several(2), sink=sink, answers=True)]
    assert round_with(source, outputs=outputs, strictness=strictness).go_round().fatal
    assert letters(source) == "NFN"
    first, _, last = source.batch.rows
    source.batch, source.settled, sink.answers = type(source.batch)(events=[first, last]), {}, {}
    round_with(source, outputs=outputs, strictness=strictness).go_round()
    again = [event_id for document in sink.given[1:] for event_id in document.covers]
    assert again == ["1", "3"], "what was refused for good is not offered again"
    assert letters(source) == "SS"


def test_of_answers_that_are_as_bad_the_first_counts() -> None:
    answers: dict[Position, Outcome] = {}
    for status, note in [("W", "one"), ("W", "two"), ("E", "three"), ("E", "four"), ("W", "five")]:
        keep_worse(answers, Outcome(position=(1,), status=Status(status), reason=Reason.REFUSED, note=note))
    assert [(one.status, one.note) for one in answers.values()] == [(Status.ERROR, "three")]


@pytest.mark.parametrize("attempts, expected", [(0, "NN"), (1, "NN"), (2, "EN"), (9, "EN")])
def test_after_enough_attempts_a_change_is_an_error(attempts: int, expected: str) -> None:
    outcomes = [
        Outcome(position=(2,), status=Status.NEW, reason=Reason.RETRY, note="busy"),
        Outcome(position=(1,), status=Status.NEW, reason=Reason.HELD),
    ]
    ended = given_up(outcomes, {(2,): attempts, (1,): attempts}, 3)
    assert "".join(outcome.status for outcome in ended) == expected
    assert given_up(outcomes, {(2,): attempts}, 0) == outcomes
    if expected == "EN":
        assert ended[0].note == "Given up after 3 attempts. busy"
        assert ended[1] == outcomes[1]


def test_who_says_nothing_of_a_retry_is_not_quoted() -> None:
    offered = [Outcome(position=(1,), status=Status.NEW, reason=Reason.RETRY)]
    assert given_up(offered, {}, 2) == offered
    [ended] = given_up(offered, {}, 1)
    assert ended.note == "Given up after 1 attempts."


@pytest.mark.parametrize("positions", [[], [(3,), (1,), (2,), (9,)], [(1, 2), (1, 1)]])
def test_positions_are_written_shortly_and_read_again(positions: list[Position]) -> None:
    assert read_positions(write_positions(positions)) == sorted(positions)


def test_a_note_that_cannot_be_read_is_told_and_not_guessed() -> None:
    with pytest.raises(DataError, match="current batch cannot be read") as raised:
        read_progress({"out": '{"planned": 7}'}, "out")
    assert raised.value.hint == ("It is in the file of marks; without it documents may be published twice.")


def test_a_repeat_says_how_many_changes_were_left() -> None:
    source, sink = MemorySource([], inserts(3)), MemorySink([], fails_at="3")
    with pytest.raises(SinkError):
        round_with(source, sink).go_round()
    sink.fails_at = None
    assert round_with(source, sink).go_round().changes == 3
    source.settled, source.notes = {}, {"out 0": as_text(Progress(done="1..3"))}
    assert round_with(source, sink).go_round().changes == 0


def test_each_object_that_waits_holds_what_is_behind_it() -> None:
    source, sink = MemorySource([], of_objects(1, 2, 1, 2, 3)), AskingSink({1: Status.NEW, 2: Status.NEW})
    round_with(source, sink, strictness=BY_OBJECT).go_round()
    assert list(sink.taken) == ["1", "2", "5"]
    assert letters(source) == "NNNNS"


def test_of_what_waits_its_answers_and_the_number_it_counts_from_are_remembered() -> None:
    source, sink = MemorySource([], inserts(3)), Remembering({2: Status.WARNING, 3: Status.NEW})
    round_with(source, outputs=[Output(format=Counting(), sink=sink)]).go_round()
    kept = read_progress(source.notes, "output")
    assert ([one.id for one in kept.planned], kept.after, kept.answers) == (["003"], "003", ())
    assert letters(source) == "SWN"


def test_what_one_receiver_said_still_counts_when_another_one_has_taken_it_at_last() -> None:
    source, first, second = MemorySource([], inserts(1)), AskingSink({1: Status.WARNING}), AskingSink({1: Status.NEW})
    round_with(source, first, second).go_round()
    assert letters(source) == "N"
    source.settled, second.answers = {}, {}
    round_with(source, first, second).go_round()
    assert (letters(source), first.sizes, second.sizes) == ("W", [1], [1, 1])
