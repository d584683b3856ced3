"""Plans: each has an identity under which it is repeated whole, none is forgotten, and none is made of what is not sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from eventlog.core.errors import OccupiedError, SinkError
from eventlog.core.model import Document, Event, Kind, Outcome, Position, Status
from eventlog.core.rules import Options
from eventlog.core.seams import Batch, Resolved, SinkCapabilities
from eventlog.delivery import output as delivery
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sources.notes import read_progress
from eventlog.xds.write import XdsFormat
from tests.support.memory import MemorySink, MemorySource, OneEach, answer, event, inserts

FORMATS = [
    XdsFormat(batch_size=1),
    ChangeTableFormat(rows_of_a_document=1),
    MessageFormat(settings=MessageSettings(batch_size=1)),
]
"""Each with documents of one change, where a document holds what fits."""


class PlanningSink(MemorySink):
    """Remembers which documents came under which plan."""

    def __init__(self, fails_at: str | None = None) -> None:
        super().__init__([], fails_at=fails_at)
        self.plans: list[tuple[str, list[str]]] = []

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.plans.append((plan, [document.id for document in documents]))
        return super().commit(plan, documents)


class Receiver(MemorySink):
    """Answers `retry` for an event once, and notes in which order events were taken."""

    def __init__(self, later: int) -> None:
        super().__init__([])
        self.later: int | None = later
        self.order: list[int] = []

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        found: list[Outcome] = []
        for document in documents:
            for positions in document.covers.values():
                if self.later == positions[0][0]:
                    self.later = None
                    found += [answer(position, Status.NEW) for position in positions]
                else:
                    self.order += [position[0] for position in positions]
        return found


class Noting(MemorySource):
    """Remembers every note, and dies where it settles if it is told to."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__([], events)
        self.history: list[dict[str, str]] = []
        self.dies = False

    def note(self, notes: Mapping[str, str]) -> None:
        super().note(notes)
        self.history.append(dict(self.notes))

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
    ) -> None:
        if self.dies:
            raise KeyboardInterrupt
        super().settle(batch, outcomes, notes)


def pipeline(
    source: MemorySource, *sinks: MemorySink, answers: bool = False, strictness: Strictness | None = None
) -> Pipeline:
    outputs = [
        Output(format=OneEach(), sink=sink, name=f"out {number}", answers=answers) for number, sink in enumerate(sinks)
    ]
    return Pipeline(
        source=source,
        outputs=outputs,
        options=Options(),
        strictness=strictness or Strictness(),
    )


class Scripted(Receiver):
    """Fails, or answers `retry`, as it is told for each document that comes, and then takes everything."""

    def __init__(self, *script: str) -> None:
        super().__init__(0)
        self.script = list(script)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        said = self.script.pop(0) if self.script else "takes"
        if said == "fails":
            raise SinkError("The line is cut.")
        self.later = int(documents[0].id) if said == "later" else None
        return super().commit(plan, documents)


def values(objects: int, each: int) -> list[Event]:
    """So many values of each object, one after the other: 1 2 3, 1 2 3, … by their objects."""
    kinds = [Kind.INSERT_FIELD, Kind.UPDATE_FIELD, Kind.REPLACE_FIELD]
    return [
        event(turn * objects + key, kinds[turn], f"idu={key}") for turn in range(each) for key in range(1, objects + 1)
    ]


def planned(notes: Mapping[str, str], output: str = "out 0") -> list[str]:
    return [plan.id for plan in read_progress(notes, output).planned]


def test_a_repeat_comes_under_the_former_plan_and_what_is_new_under_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "CHUNK_DOCUMENTS", 2)
    source, sink = MemorySource([], inserts(5)), PlanningSink(fails_at="4")
    with pytest.raises(SinkError):
        pipeline(source, sink).go_round()
    sink.fails_at = None
    pipeline(source, sink).go_round()
    documents = [ids for _, ids in sink.plans]
    assert documents == [["1", "2"], ["3", "4"], ["3", "4"], ["5"]]
    first, second, repeated, new = [plan for plan, _ in sink.plans]
    assert second == repeated
    assert len({first, second, new}) == 3
    assert "" not in {first, second, new}


def test_a_chunk_ends_where_its_documents_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "CHUNK_BYTES", 20)
    sink = PlanningSink()
    pipeline(MemorySource([], inserts(5)), sink).go_round()
    assert [len(ids) for _, ids in sink.plans] == [3, 2]  # nine bytes each
    monkeypatch.setattr(delivery, "CHUNK_EVENTS", 1)
    sink = PlanningSink()
    pipeline(MemorySource([], inserts(3)), sink).go_round()
    assert [len(ids) for _, ids in sink.plans] == [1, 1, 1]


def test_what_an_output_has_planned_is_not_forgotten_while_another_one_notes() -> None:
    source, second = Noting(inserts(2)), PlanningSink(fails_at="1")
    with pytest.raises(SinkError):
        pipeline(source, PlanningSink(fails_at="1"), second).go_round()
    before = planned(source.notes, "out 1")
    assert before == ["1", "2"]
    source.history.clear()
    second.fails_at = None
    pipeline(source, PlanningSink(), second).go_round()
    assert [planned(notes, "out 1") for notes in source.history[:2]] == [before, before]
    assert len({plan for plan, _ in second.plans}) == 1


def test_after_an_answer_that_stops_nothing_more_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "ANSWERED_DOCUMENTS", 2)
    source = Noting(values(3, 3))
    pipeline(source, Receiver(later=1), answers=True).go_round()
    assert [planned(notes) for notes in source.history] == [["1", "2"], ["1"]]
    assert planned(source.notes) == ["1"]
    assert {outcome.status for outcome in source.settled.values()} == {Status.NEW}


def test_killed_after_a_retry_it_goes_on_in_the_order_of_each_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "ANSWERED_DOCUMENTS", 4)
    source, sink = Noting(values(10, 3)), Receiver(later=3)
    source.dies = True
    with pytest.raises(KeyboardInterrupt):
        pipeline(source, sink, answers=True).go_round()
    source.dies = False
    pipeline(source, sink, answers=True).go_round()
    for key in range(1, 11):
        mine = [number for number in sink.order if (number - 1) % 10 + 1 == key]
        assert list(dict.fromkeys(mine)) == [key, key + 10, key + 20]
        assert mine == sorted(mine)
    assert {outcome.status for outcome in source.settled.values()} == {Status.SUCCESS}


def test_several_plans_that_wait_are_all_noted_until_each_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By object the rest goes on under plans of its own; a failure then finds documents of several plans that wait."""
    monkeypatch.setattr(delivery, "ANSWERED_DOCUMENTS", 1)

    class Twice(Receiver):
        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            [document] = documents
            if document.id in ("1", "2") and document.id not in self.taken:
                self.taken[document.id] = b""
                return [answer(position, Status.NEW) for position in document.covers[document.id]]
            if document.id == "3" and "3" not in self.taken:
                self.taken["3"] = b""
                raise SinkError("The line is dead.")
            return super().commit(plan, documents)

    source, sink = Noting(inserts(3)), Twice(later=0)
    by_object = Strictness(on_retry="object")
    with pytest.raises(SinkError):
        pipeline(source, sink, answers=True, strictness=by_object).go_round()
    assert planned(source.notes) == ["1", "2", "3"]
    source.history.clear()
    pipeline(source, sink, answers=True, strictness=by_object).go_round()
    assert [planned(notes) for notes in source.history] == [["1", "2", "3"], ["2", "3"], ["3"]]
    assert sink.order == [1, 2, 3]


def test_numbers_go_on_from_a_target_that_is_further_than_its_log_knows() -> None:
    class Ahead(PlanningSink):
        def last(self) -> str:
            return "9"

    source, sink = MemorySource([], inserts(2)), Ahead(fails_at="1")
    with pytest.raises(SinkError):
        pipeline(source, sink).go_round()
    source.batch = replace(source.batch, events=[*inserts(2), event(3, key="idu=3")])
    sink.fails_at = None
    made = pipeline(source, sink)
    made.go_round()
    form = made.outputs[0].format
    assert isinstance(form, OneEach)
    assert form.after[-1] == "9"


def test_nothing_goes_to_anybody_once_somebody_else_publishes() -> None:
    def replaced() -> None:
        raise OccupiedError

    first, second = PlanningSink(), PlanningSink()
    made = pipeline(MemorySource([], inserts(1)), first, second)
    with pytest.raises(OccupiedError):
        Pipeline(
            source=made.source,
            outputs=made.outputs,
            options=Options(),
            confirm=replaced,
        ).go_round()
    assert first.plans == second.plans == []


def test_positions_of_a_plan_are_those_of_its_documents() -> None:
    source = Noting(inserts(3))
    with pytest.raises(SinkError):
        pipeline(source, PlanningSink(fails_at="3")).go_round()
    found: list[Position] = [(1,), (2,), (3,)]
    noted = read_progress(source.notes, "out 0").planned
    assert [plan.positions for plan in noted] == [str(position[0]) for position in found]
    assert len({plan.plan for plan in noted}) == 1


def test_a_row_that_is_held_after_its_document_was_taken_does_not_come_again_when_it_is_released() -> None:
    class Recording(PlanningSink):
        @property
        def capabilities(self) -> SinkCapabilities:
            return SinkCapabilities(resolves=True)

        def resolve(self, plan: str) -> Resolved:
            return Resolved(documents=None if plan in {known for known, _ in self.plans} else frozenset())

    source, sink = Noting(inserts(2)), Recording()
    source.dies = True
    with pytest.raises(KeyboardInterrupt):
        pipeline(source, sink).go_round()
    source.dies = False
    source.batch = replace(source.batch, events=inserts(1))  # somebody holds the second row
    pipeline(source, sink).go_round()
    source.notes = {name: note for name, note in source.notes.items() if name.startswith("out")}
    source.settled = {}
    source.batch = replace(source.batch, events=inserts(2)[1:])  # and releases it
    pipeline(source, sink).go_round()
    assert [ids for _, ids in sink.plans] == [["1", "2"], ["1"]]
    assert {outcome.status for outcome in source.settled.values()} == {Status.SUCCESS}


def held_and_released(sink: PlanningSink, *, answers: bool = False) -> Noting:
    """The publisher dies before it settles, the second row is held, then the first is settled, then the second is released."""
    source = Noting(inserts(2))
    source.dies = True
    with pytest.raises(KeyboardInterrupt):
        pipeline(source, sink, answers=answers).go_round()
    source.dies = False
    source.batch = replace(source.batch, events=inserts(1))
    pipeline(source, sink, answers=answers).go_round()
    source.settled = {}
    source.batch = replace(source.batch, events=inserts(2)[1:])
    return source


def test_a_held_row_comes_again_under_its_former_plan_where_nobody_knows_whether_it_came() -> None:
    sink = PlanningSink()
    source = held_and_released(sink, answers=True)
    pipeline(source, sink, answers=True).go_round()
    assert [ids for _, ids in sink.plans] == [["1"], ["2"], ["1"], ["2"]]
    assert len({plan for plan, _ in sink.plans}) == 1


def test_a_held_row_that_a_target_certainly_lacks_is_planned_anew() -> None:
    class Lacking(PlanningSink):
        @property
        def capabilities(self) -> SinkCapabilities:
            return SinkCapabilities(resolves=True)

    sink = Lacking()
    source = held_and_released(sink)
    assert planned(source.notes) == []
    pipeline(source, sink).go_round()
    first, again, new = sink.plans
    assert (first[0] == again[0], first[0] == new[0], new[1]) == (True, False, ["2"])


def test_documents_of_many_plans_that_wait_stay_planned_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "ANSWERED_DOCUMENTS", 1)

    class Busy(MemorySink):
        """Takes nothing of five objects yet, and fails at a sixth."""

        def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
            [document] = documents
            if document.id == "6":
                raise SinkError("The line is dead.")
            return [answer(position, Status.NEW) for position in document.covers[document.id]]

    source = Noting(inserts(6))
    for _ in range(2):  # the second time all of them come again
        with pytest.raises(SinkError):
            pipeline(source, Busy([]), answers=True, strictness=Strictness(on_retry="object")).go_round()
        assert planned(source.notes) == ["1", "2", "3", "4", "5", "6"]


def test_the_id_that_numbers_go_on_from_is_noted_with_the_plan() -> None:
    source, sink = Noting(inserts(2)), PlanningSink(fails_at="8")
    sink.taken["7"] = b""
    pipeline(source, sink).go_round()
    assert [read_progress(notes, "out 0").after for notes in source.history] == ["7"]
    assert [set(notes) for notes in source.history] == [{"out 0"}], "nothing was decided that must be known again"


def test_the_name_of_a_plan_has_room_in_every_target() -> None:
    sink = PlanningSink()
    pipeline(Noting(inserts(1)), sink).go_round()
    [(plan, _)] = sink.plans
    assert len(bytes.fromhex(plan)) == 8


@pytest.mark.parametrize("limit, most", [("CHUNK_BYTES", 18), ("CHUNK_EVENTS", 2)])
def test_a_chunk_ends_where_it_is_just_full(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, limit, most)
    sink = PlanningSink()
    pipeline(MemorySource([], inserts(5)), sink).go_round()
    assert [len(ids) for _, ids in sink.plans] == [2, 2, 1]


def test_documents_are_prepared_while_their_plan_is_noted_and_not_once_an_answer_holds_some() -> None:
    class Preparing(PlanningSink):
        def __init__(self) -> None:
            super().__init__()
            self.prepared: list[list[str]] = []
            self.answers = {1: Status.NEW}

        @property
        def capabilities(self) -> SinkCapabilities:
            return SinkCapabilities(prepares=True)

        def prepare(self, plan: str, documents: Sequence[Document]) -> None:
            assert self.plans == [] or len(self.plans) == len(self.prepared)
            self.prepared.append([document.id for document in documents])

    by_object, sink = Strictness(on_retry="object"), Preparing()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "ANSWERED_DOCUMENTS", 1)
        pipeline(Noting(inserts(3)), sink, answers=True, strictness=by_object).go_round()
    assert sink.prepared == [["1"]]
    assert [ids for _, ids in sink.plans] == [["1"], ["2"], ["3"]]


def test_what_waits_keeps_its_place_through_two_failures() -> None:
    """It was planned, waited, and was planned again: only its first place in the note counts."""
    source, sink = MemorySource([], values(2, 2)), Scripted("later", "fails", "fails")
    made = pipeline(source, sink, answers=True, strictness=Strictness(on_retry="object"))
    for _ in range(2):
        with pytest.raises(SinkError):
            made.go_round()
        assert planned(source.notes) == ["1", "2", "3", "4"]
    made.go_round()
    assert sink.order == [1, 2, 3, 4]
