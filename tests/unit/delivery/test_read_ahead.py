"""Batches hand in hand: nothing reaches a sink before everything ahead of it is settled, whatever goes wrong."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.errors import DataError, SinkError
from eventlog.core.model import Change, Document, Event, Kind, Outcome, Row, RowId, Status
from eventlog.core.rules import Options
from eventlog.core.seams import Batch, SinkCapabilities, SourceCapabilities
from eventlog.delivery.pipeline import Output, Pipeline, Report
from eventlog.delivery.read_ahead import ReadAhead
from tests.support.memory import Log, MemorySink, MemorySource, OneEach, event, inserts
from tests.support.strategies import CATALOG

LIMIT = 2


class Queue:
    """A source that hands out the next two events of a list and can look ahead; what is settled is gone."""

    @property
    def capabilities(self) -> SourceCapabilities:
        return SourceCapabilities(read_ahead=self.read_ahead)

    def __init__(self, log: Log, events: Sequence[Event]) -> None:
        self.log = log
        self.waiting = list(events)
        self.in_hand: Sequence[Event] = ()
        self.looks = 0
        self.threads: set[str] = set()

    def read(self, limit: int) -> Batch:
        self.log.append("read")
        self.in_hand = self.in_hand or self.waiting[:limit]
        return Batch(events=self.in_hand)

    def read_ahead(self, limit: int, handed_out: Sequence[Batch]) -> Batch:
        self.looks += 1
        self.threads.add(threading.current_thread().name)
        out = {event.position for batch in handed_out for event in batch.events}
        return Batch(events=[event for event in self.waiting if event.position not in out][:limit])

    def note(self, notes: Mapping[str, str]) -> None:
        assert self.in_hand

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
        following: Batch | None = None,
    ) -> None:
        assert batch.events == self.in_hand
        self.log.append(f"settle {batch.events[0].position[0]}")
        gone = {outcome.position for outcome in outcomes if outcome.status is not Status.NEW}
        self.waiting = [event for event in self.waiting if event.position not in gone]
        staying = [event for event in batch.rows if event.position not in gone]
        self.in_hand = staying or (following.rows if following else ())


class Noting(MemorySink):
    """Notes which document it takes."""

    def commit(self, plan: str, documents: Sequence[object]) -> Sequence[Outcome]:
        self.log.extend(f"write {document.id}" for document in documents)  # type: ignore[attr-defined]  # documents
        return super().commit(plan, documents)  # type: ignore[arg-type]  # as above


def relay(source: Queue, sink: MemorySink, *, answers: bool = False, **facts: object) -> ReadAhead:
    output = Output(format=OneEach(), sink=sink, answers=answers)
    defaults: dict[str, object] = {"reader": None, "catalog": CATALOG, "options": Options(), "limit": LIMIT}
    return ReadAhead(Pipeline(source=source, outputs=[output], **(defaults | facts)))  # type: ignore[arg-type]  # as given


def rounds(relay: ReadAhead) -> Iterator[Report]:
    while (report := relay.go_round(ahead=True)).settled:
        yield report


def test_each_batch_is_written_when_all_ahead_of_it_is_settled() -> None:
    log: Log = []
    source, sink = Queue(log, inserts(7)), Noting([])
    sink.log = log
    assert [report.events for report in rounds(relay(source, sink))] == [2, 2, 2, 1]
    told = [entry for entry in log if entry not in ("read", "write")]
    assert told == [
        *("write 1", "write 2", "settle 1", "write 3", "write 4", "settle 3"),
        *("write 5", "write 6", "settle 5", "write 7", "settle 7"),
    ]
    assert source.waiting == []
    assert {name.rpartition("_")[0] for name in source.threads} == {"eventlog-read-ahead"}
    assert log.count("read") == 2, "one to begin with, and one that finds nothing"


def test_what_follows_is_only_read_ahead_when_more_is_to_be_expected() -> None:
    source = Queue([], inserts(1))
    assert len(list(rounds(relay(source, MemorySink([]))))) == 1
    assert source.looks == 0


def test_one_round_alone_reads_nothing_ahead() -> None:
    source = Queue([], inserts(9))
    assert relay(source, MemorySink([])).go_round(ahead=False).events == LIMIT
    assert (source.looks, source.in_hand) == (0, ())


def test_behind_a_receiver_that_judges_nothing_is_made_ready() -> None:
    source = Queue([], inserts(4))
    assert len(list(rounds(relay(source, MemorySink([]), answers=True)))) == 2
    assert source.looks == 0


def test_when_a_sink_fails_what_was_made_ready_is_forgotten() -> None:
    log: Log = []
    source, sink = Queue(log, inserts(6)), MemorySink(log)
    runner = relay(source, sink)
    runner.go_round(ahead=True)
    sink.fails_at = "4"
    with pytest.raises(SinkError):
        runner.go_round(ahead=True)
    assert list(sink.taken) == ["1", "2", "3"]
    sink.fails_at = None
    assert [report.events for report in rounds(runner)] == [2, 2]
    assert list(sink.taken) == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("facts", [{"repeated": True}, {"notes": {"output": "{}"}}, {"attempts": {(1,): 1}}], ids=min)
def test_nothing_is_read_ahead_of_a_batch_that_is_offered_again(facts: dict[str, Any]) -> None:
    class Again(Queue):
        def read(self, limit: int) -> Batch:
            return replace(super().read(limit), **facts)

    source, sink = Again([], inserts(4)), MemorySink([])
    report = relay(source, sink).go_round(ahead=True)
    assert (report.settled, source.looks, source.in_hand) == (2, 0, ())
    assert list(sink.taken) == ["1", "2"]


@pytest.mark.parametrize("status,goes_on", [(Status.WARNING, True), (Status.ERROR, True), (Status.NEW, False)])
def test_only_what_stays_holds_up_what_follows(status: Status, *, goes_on: bool) -> None:
    source, sink = Queue([], inserts(4)), MemorySink([], {2: status})
    runner = relay(source, sink)
    assert runner.go_round(ahead=True).events == 2
    assert [event.position[0] for event in source.in_hand] == ([3, 4] if goes_on else [2])
    assert list(sink.taken) == ["1", "2"]
    runner.go_round(ahead=True)
    runner.forget()
    assert list(sink.taken) == (["1", "2", "3", "4"] if goes_on else ["1", "2"])


def test_an_error_halts_what_follows_where_that_is_wanted() -> None:
    from eventlog.delivery.output import Strictness

    source, sink = Queue([], inserts(4)), MemorySink([], {1: Status.ERROR})
    runner = relay(source, sink, strictness=Strictness(on_error="halt"))
    assert runner.go_round(ahead=True).errors == 1
    assert source.in_hand == ()


class BrokenRows:
    """Finds no table."""

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, Row]:
        raise DataError("there is no table.")


def test_what_is_wrong_with_the_next_batch_is_said_when_its_turn_comes() -> None:
    events = [*inserts(2), *[event(number, Kind.UPDATE_ROW_BACK, column=None) for number in (3, 4)]]
    source, sink = Queue([], events), MemorySink([])
    runner = relay(source, sink, reader=BrokenRows())
    assert runner.go_round(ahead=True).settled == 2
    with pytest.raises(DataError, match="no table"):
        runner.go_round(ahead=True)
    assert list(sink.taken) == ["1", "2"]


def test_a_backlog_leaves_the_interpreter_as_it_was() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    runner = relay(Queue([], inserts(6)), MemorySink([]))
    runner.go_round(ahead=True)
    assert sys.getswitchinterval() < before[0]
    assert gc.get_threshold() > before[1]
    list(rounds(runner))
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


class Prepared(Noting):
    """Notes what it may begin with."""

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(prepares=True)

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        self.log.append("prepare " + " ".join(document.id for document in documents))


def test_what_follows_is_prepared_before_what_is_ahead_of_it_is_settled() -> None:
    log: Log = []
    runner = relay(Queue(log, inserts(4)), Prepared(log))
    runner.go_round(ahead=True)
    runner.forget()
    assert log.index("prepare 1 2") < log.index("write 1")
    assert "prepare 3 4" in log, "with the round of the batch ahead of it"
    assert "write 3" not in log


class Counting(OneEach):
    """Numbers its documents on from the last one that there is."""

    def bind(self, written: Iterable[Change], after: str, whole: bool = False) -> Iterator[Document]:
        for number, change in enumerate(written, int(after or 0) + 1):
            yield Document(id=f"{number:03}", body=b"", covers={change.event_id: change.positions})


def test_numbers_go_on_from_what_is_ahead_and_not_at_the_output_yet() -> None:
    sink = MemorySink([])
    runner = relay(Queue([], inserts(5)), sink)
    runner.pipeline = replace(runner.pipeline, outputs=[Output(format=Counting(), sink=sink)])
    assert [report.events for report in rounds(runner)] == [2, 2, 1]
    assert list(sink.taken) == ["001", "002", "003", "004", "005"]


@pytest.mark.parametrize("waiting", [0, 2])
def test_after_a_round_the_tables_may_have_changed(waiting: int) -> None:
    source = Queue([], inserts(waiting))
    runner = relay(source, MemorySink([]), fresh=True)
    runner.go_round(ahead=True)
    source.waiting = [event(9, column="since_today")]
    assert runner.go_round(ahead=True).stale


def test_nobody_reads_ahead_who_cannot_or_who_gets_everything_at_once() -> None:
    source, sink = MemorySource([], inserts(2)), MemorySink([])
    output = Output(format=OneEach(), sink=sink)
    alone = Pipeline(source=source, reader=None, catalog=CATALOG, outputs=[output], options=Options(), limit=LIMIT)
    assert ReadAhead(alone).go_round(ahead=True).settled == 2
    queue = Queue([], inserts(2))
    queue.in_hand = queue.waiting  # all that there are
    assert relay(queue, sink, limit=0).go_round(ahead=True).settled == 2
    assert queue.looks == 0


def test_a_source_that_gave_less_because_of_room_is_asked_for_more() -> None:
    class Narrow(Queue):
        def read(self, limit: int) -> Batch:
            return replace(super().read(1), more=True)

    source = Narrow([], inserts(3))
    runner = relay(source, MemorySink([]))
    runner.go_round(ahead=True)
    runner.forget()
    assert source.looks >= 1  # the one after that is given up where it has not begun
    assert [event.position[0] for event in source.in_hand] == [2, 3]


def test_without_rows_it_is_said_when_some_come() -> None:
    class Later(Queue):
        def read(self, limit: int) -> Batch:
            return Batch(events=(), later=2.5)

    assert relay(Later([], ()), MemorySink([])).go_round(ahead=True) == Report(later=2.5)


def test_a_source_whose_tables_have_changed_is_not_published_by_the_former_ones() -> None:
    class Changed(Queue):
        @property
        def capabilities(self) -> SourceCapabilities:
            return SourceCapabilities(outdated=lambda: True)

    log: Log = []
    assert relay(Changed(log, inserts(2)), MemorySink(log)).go_round(ahead=True) == Report(stale=True)
    assert log == ["read"]
