"""Batches that do not come from a log read here: a stream's images, and shares that workers have decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from eventlog.core.errors import SinkError
from eventlog.core.model import Captured, Change, Document, Event, Image, Op, Outcome, Reason, Refusal, Status
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Batch, Written
from eventlog.delivery.pipeline import Output, Pipeline
from eventlog.delivery.read_ahead import ReadAhead
from eventlog.delivery.workers import Collected, Workers
from tests.support.memory import MemorySink, MemorySource, OneEach, inserts
from tests.support.strategies import CATALOG

OURS = Catalog([Table(name="t1", columns=(Column(name="id", type="integer", key=1), Column(name="c")))])


class Looking(OneEach):
    """Remembers with which catalog it was asked to encode."""

    def __init__(self) -> None:
        super().__init__()
        self.catalogs: list[Catalog | None] = []

    def encode(self, changes: Iterable[Change], catalog: Catalog | None, after: str) -> Iterator[Document | Refusal]:
        self.catalogs.append(catalog)
        return super().encode(changes, catalog, after)


def images(*keys: int, perpetrator: str | None = None) -> list[Image]:
    return [
        Image(position=(key,), op=Op.ADD, table="t1", after={"id": key, "c": "x"}, perpetrator=perpetrator)
        for key in keys
    ]


def stream(events: Sequence[Captured], catalog: Catalog | None) -> MemorySource:
    source = MemorySource([], ())
    source.batch = Batch(events=events, catalog=catalog)
    return source


def around(source: MemorySource, form: OneEach, sink: MemorySink, **facts: Any) -> Pipeline:
    defaults: dict[str, Any] = {"reader": None, "catalog": CATALOG, "options": Options(user="idm")}
    return Pipeline(source=source, outputs=[Output(format=form, sink=sink)], **(defaults | facts))


def ends(source: MemorySource) -> list[tuple[Status, Reason]]:
    return [(outcome.status, outcome.reason) for _, outcome in sorted(source.settled.items())]


def test_images_are_told_by_the_catalog_that_comes_with_them() -> None:
    form, sink = Looking(), MemorySink([])
    source = stream([*images(1), *images(2, perpetrator="IDM")], OURS)
    report = around(source, form, sink).go_round()
    assert sink.taken == {"1": b"add id=1"}
    assert ends(source) == [(Status.SUCCESS, Reason.PUBLISHED), (Status.SUCCESS, Reason.LOOPBACK)]
    assert (report.events, report.changes) == (2, 1)
    assert form.catalogs == [OURS]


def test_without_one_they_are_told_by_the_publishers_own() -> None:
    form, sink = Looking(), MemorySink([])
    around(stream(images(1), None), form, sink, catalog=OURS).go_round()
    assert sink.taken == {"1": b"add id=1"}
    assert form.catalogs == [OURS]


def test_images_that_come_again_are_told_as_they_were() -> None:
    source, sink = stream(images(1, 2), OURS), MemorySink([], fails_at="2")
    try:
        around(source, OneEach(), sink).go_round()
    except SinkError:
        sink.fails_at = None
    around(source, OneEach(), sink).go_round()
    assert sink.taken == {"1": b"add id=1", "2": b"add id=2"}


class Ahead(MemorySource):
    """One batch, and one more that can be read ahead."""

    def __init__(self, first: Batch, second: Batch) -> None:
        super().__init__([], ())
        self.batch, self.second = first, second

    def read_ahead(self, limit: int, handed_out: Sequence[Batch]) -> Batch:
        return self.second if handed_out[-1] is not self.second else Batch(events=())


def test_what_is_made_ready_is_encoded_with_the_catalog_of_its_batch() -> None:
    form, sink = Looking(), MemorySink([])
    other = Catalog([*OURS.tables, Table(name="t2", columns=(Column(name="id", key=1),))])
    source = Ahead(Batch(events=images(1), catalog=OURS, more=True), Batch(events=images(2), catalog=other))
    runner = ReadAhead(around(source, form, sink))
    runner.go_round(ahead=True)
    runner.forget()
    assert form.catalogs == [OURS, other]


class Pieces(OneEach):
    """Binds what workers have written; ids go on from the document before."""

    def __init__(self) -> None:
        super().__init__()
        self.bound_after: list[str] = []

    def written(self, changes: Iterable[Change], catalog: Catalog | None) -> Iterator[Written | Refusal]:
        raise AssertionError("workers have written it.")

    def bound(self, written: Iterable[Written], after: str) -> Iterator[Document]:
        self.bound_after.append(after)
        for one in written:
            yield Document(id=one.event_id, body=one.text.encode(), covers={one.event_id: one.positions})


class Shares:
    """Stands for worker processes: which batches they got, and what they made of each."""

    def __init__(self, most: int = 9) -> None:
        self.out: list[Batch] = []
        self.given: list[Batch] = []
        self.most = most

    def hand_out(self, batch: Batch) -> None:
        self.given.append(batch)
        if batch.events and len(self.given) <= self.most:
            self.out.append(batch)

    def has(self, batch: Batch) -> bool:
        return any(batch is one for one in self.out)

    def collect(self) -> Collected:
        """Of each batch the first change is written, and all others are refused; a third event was superseded."""
        first, *others = self.out.pop(0).rows
        refused = [Refusal(positions=(event.position,), note="too long.") for event in others[:1]]
        return Collected(
            others={event.position: superseded(event, first) for event in others[1:]},
            written=[[Written(str(first.position[0]), (first.position,), "by a worker")]],
            refused=[refused],
            changes=2,
        )

    def forget(self) -> None:
        self.out.clear()


def superseded(event: Event, by: Event) -> Outcome:
    return Outcome(position=event.position, reason=Reason.SUPERSEDED, winner=by.position)


def test_what_workers_have_decided_and_written_is_delivered_and_settled() -> None:
    source, sink, form, shares = MemorySource([], inserts(3)), MemorySink([], {1: Status.WARNING}), Pieces(), Shares()
    sink.taken["0"] = b""
    runner = ReadAhead(around(source, form, sink, workers=cast("Workers", shares)))
    report = runner.go_round(ahead=True)
    assert sink.taken == {"0": b"", "1": b"by a worker"}
    assert form.bound_after == ["0"]
    assert ends(source) == [
        (Status.WARNING, Reason.REFUSED),
        (Status.ERROR, Reason.REFUSED),
        (Status.SUCCESS, Reason.SUPERSEDED),
    ]
    assert source.settled[2,].note == "too long."
    assert (report.events, report.changes, report.documents) == (3, 2, 1)


def test_what_workers_have_written_ahead_goes_on_from_what_is_before_it() -> None:
    batches = [Batch(events=inserts(4)[:2], more=True), Batch(events=inserts(4)[2:])]
    source, sink, form, shares = Ahead(*batches), MemorySink([]), Pieces(), Shares()
    runner = ReadAhead(around(source, form, sink, workers=cast("Workers", shares)))
    runner.go_round(ahead=True)
    assert [[event.position for event in batch.events] for batch in shares.given] == [[(1,), (2,)], [(3,), (4,)]]
    assert form.bound_after == ["", "1"]
    runner.forget()
    assert shares.out == []


def test_superseded_by_what_workers_say_is_remembered_until_the_batch_is_settled() -> None:
    source, sink = MemorySource([], inserts(3)), MemorySink([], fails_at="1")
    pipeline = around(source, Pieces(), sink, workers=cast("Workers", Shares()))
    try:
        ReadAhead(pipeline).go_round(ahead=False)
    except SinkError:
        assert '"superseded":[[[3],[1]]]' in source.notes["decided"]
    else:
        raise AssertionError("the sink was to fail.")


def test_what_workers_did_not_get_is_decided_here() -> None:
    source, sink = MemorySource([], inserts(1)), MemorySink([])
    ReadAhead(around(source, OneEach(), sink, workers=cast("Workers", Shares(most=0)))).go_round(ahead=True)
    assert sink.taken == {"1": b"add idu=1"}
