"""One batch, all the way round, with a source, a format and a sink that live in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.errors import MachineError, SinkError
from eventlog.core.model import (
    SEVERITY,
    Change,
    Event,
    Outcome,
    Reason,
    Refusal,
    Status,
)
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.seams import Writer
from eventlog.delivery import output as delivery
from eventlog.delivery.answers import settled_outcomes
from eventlog.delivery.output import Delivery
from eventlog.delivery.pipeline import Output, Pipeline, Report
from tests.support.memory import Log, MemorySink, MemorySource, OneEach, event, inserts


def around(source: MemorySource, *sinks: MemorySink, **facts: Any) -> Pipeline:
    outputs = [Output(format=OneEach(), sink=sink, name=str(number)) for number, sink in enumerate(sinks)]
    defaults: dict[str, Any] = {"outputs": outputs, "options": Options()}
    return Pipeline(source=source, **(defaults | facts))


def letters(source: MemorySource) -> str:
    return "".join(outcome.status for _, outcome in sorted(source.settled.items()))


def test_a_batch_is_settled_after_every_sink_has_it() -> None:
    log: Log = []
    source, first, second = MemorySource(log, inserts(2)), MemorySink(log), MemorySink(log)
    report = around(source, first, second, limit=7).go_round()
    assert log == ["read", "write", "write", "settle"]
    assert first.taken == second.taken == {"1": b"add idu=1", "2": b"add idu=2"}
    assert report == Report(events=2, changes=2, documents=4, statuses={Status.SUCCESS: 2}, tables={"usr": 2})
    assert (report.settled, report.fatal) == (2, False)
    assert source.limits == [7]


def test_an_empty_batch_goes_nowhere() -> None:
    log: Log = []
    sink = MemorySink(log)
    assert around(MemorySource(log, ()), sink).go_round() == Report()
    assert log == ["read"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_sink_that_fails_leaves_the_batch_unsettled_and_its_repeat_is_the_same(failing: int) -> None:
    log: Log = []
    source, sinks = MemorySource(log, inserts(3)), [MemorySink(log), MemorySink(log)]
    sinks[failing].fails_at = "2"
    with pytest.raises(SinkError):
        around(source, *sinks).go_round()
    assert "settle" not in log
    sinks[failing].fails_at = None
    around(source, *sinks).go_round()
    assert letters(source) == "SSS"
    assert sinks[0].taken == sinks[1].taken
    assert len(sinks[0].taken) == 3


def test_a_format_goes_on_from_the_last_document_of_its_sink() -> None:
    log: Log = []
    sink, form = MemorySink(log), OneEach()
    sink.taken["0815"] = b""
    around(MemorySource(log, inserts(1)), outputs=[Output(format=form, sink=sink)]).go_round()
    assert form.after == ["0815"]


def test_what_a_format_refuses_ends_as_an_error_and_the_rest_goes_on() -> None:
    log: Log = []
    events = [*inserts(3), event(4, key="idu=2", column="lname")]
    source, sink = MemorySource(log, events), MemorySink(log)
    report = around(source, outputs=[Output(format=OneEach("idu=2"), sink=sink)]).go_round()
    assert letters(source) == "SESE"
    assert source.settled[(4,)].note == "cannot be said."
    assert source.settled[(4,)].reason is Reason.REFUSED
    assert list(sink.taken) == ["1", "3"]
    assert (report.documents, report.statuses) == (2, {Status.SUCCESS: 2, Status.ERROR: 2})


def test_when_everything_is_refused_nothing_is_written() -> None:
    log: Log = []
    source, sink = MemorySource(log, inserts(1)), MemorySink(log)
    around(source, outputs=[Output(format=OneEach("idu=1"), sink=sink)]).go_round()
    assert log == ["read", "settle"]
    assert letters(source) == "E"


@pytest.mark.parametrize("worse", SEVERITY)
@pytest.mark.parametrize("better", SEVERITY)
def test_of_several_answers_the_worst_counts_whoever_gives_it_first(worse: Status, better: Status) -> None:
    worst = max(worse, better, key="SWENF".index)
    for first, second in [(worse, better), (better, worse)]:
        log: Log = []
        source = MemorySource(log, inserts(1))
        around(source, MemorySink(log, {1: first}), MemorySink(log, {1: second})).go_round()
        assert letters(source) == worst


def test_answers_count_for_their_events_only() -> None:
    log: Log = []
    source = MemorySource(log, inserts(5))
    answers = dict(enumerate([Status.WARNING, Status.ERROR, Status.FATAL, Status.NEW], 1))
    report = around(source, MemorySink(log, answers)).go_round()
    assert letters(source) == "WEFNS"
    assert (report.fatal, report.settled, report.events) == (True, 4, 5)
    assert source.settled[(1,)].note == "said the receiver."


def test_without_an_answer_the_rules_have_the_last_word() -> None:
    decided = [Outcome(position=(1,)), Outcome(position=(2,), status=Status.ERROR, reason=Reason.INVALID)]
    assert settled_outcomes(decided, {}) == decided
    assert settled_outcomes(decided, {(9,): Outcome(position=(9,), status=Status.FATAL)}) == decided


@pytest.mark.parametrize("count, sizes", [(1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_documents_come_in_chunks_and_in_order(monkeypatch: pytest.MonkeyPatch, count: int, sizes: list[int]) -> None:
    monkeypatch.setattr(delivery, "CHUNK_DOCUMENTS", 3)
    log: Log = []
    sink = MemorySink(log)
    report = around(MemorySource(log, inserts(count)), sink).go_round()
    assert sink.sizes == sizes
    assert list(sink.taken) == [str(number) for number in range(1, count + 1)]
    assert report.documents == count


@pytest.mark.parametrize("events", [(), inserts(1)], ids=["nothing to do", "a row"])
def test_a_round_says_when_rows_come_that_wait(events: list[Event]) -> None:
    source = MemorySource([], events)
    source.batch = replace(source.batch, later=7.5)
    assert around(source, MemorySink([])).go_round().later == 7.5


@pytest.mark.parametrize("former, came_twice", [(("1",), False), ((), True)])
def test_an_output_that_got_another_name_goes_on_where_its_former_names_are_said(
    former: tuple[str, ...], came_twice: bool
) -> None:
    log: Log = []
    source, sinks = MemorySource(log, inserts(2)), [MemorySink(log), MemorySink(log)]
    sinks[0].fails_at = "2"
    with pytest.raises(SinkError):
        around(source, *sinks).go_round()
    sinks[0].fails_at = None
    outputs = [
        Output(format=OneEach(), sink=sinks[0], name="0"),
        Output(format=OneEach(), sink=sinks[1], name="hr-feed", former_names=former),
    ]
    before = log.count("write")
    around(source, outputs=outputs).go_round()
    assert letters(source) == "SS"
    assert (log.count("write") - before == 2) is came_twice


class Leaves(OneEach):
    """Leaves out the changes of an object, as a policy does."""

    def writer(self, catalog: Catalog | None) -> Writer:
        def write(changes: Iterable[Change]) -> Iterator[Change | Refusal]:
            for change in changes:
                left = change.row.key == self.refused
                yield Refusal(positions=change.positions, note="left out.", filtered=True) if left else change

        return write


@pytest.mark.parametrize(
    "others, reason", [((), Reason.FILTERED), (("idu=1",), Reason.FILTERED), ((None,), Reason.PUBLISHED)]
)
def test_a_row_is_filtered_where_every_output_leaves_it_out(others: tuple[str | None, ...], reason: Reason) -> None:
    log: Log = []
    source = MemorySource(log, inserts(2))
    outputs = [
        Output(format=Leaves(refused), sink=MemorySink(log), name=str(number))
        for number, refused in enumerate(("idu=1", *others))
    ]
    report = around(source, outputs=outputs).go_round()
    assert letters(source) == "SS"
    assert (report.errors, source.settled[(1,)].reason, source.settled[(2,)].reason) == (0, reason, Reason.PUBLISHED)


def test_each_output_is_told_of_when_it_has_had_its_share() -> None:
    told: list[tuple[str, Sequence[Any], int, str]] = []

    def note(delivery: Delivery, error: MachineError | None) -> None:
        told.append((delivery.output.name, delivery.events, delivery.documents, str(error or "")))

    source = MemorySource([], inserts(2))
    outputs = [
        Output(format=OneEach(), sink=MemorySink([], fails_at=fails_at), name=name)
        for name, fails_at in (("bad", "1"), ("good", None))
    ]
    with pytest.raises(SinkError):
        around(source, outputs=outputs, told=note).go_round()
    assert told == [("bad", source.batch.events, 0, "The disk is full."), ("good", source.batch.events, 2, "")]


def test_rows_are_counted_by_table_unless_they_stay() -> None:
    events = [event(1), replace(event(2, key="idu=2"), table="USR"), event(3, key="idu=3")]
    source, sink = MemorySource([], events), MemorySink([], {3: Status.NEW})
    assert around(source, sink).go_round().tables == {"usr": 1, "USR": 1}
