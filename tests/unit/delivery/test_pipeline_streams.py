"""Batches that do not come from a log: images of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventlog.core.errors import SinkError
from eventlog.core.model import Captured, Image, Op, Reason, Status
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Batch, Writer
from eventlog.delivery.pipeline import Output, Pipeline
from tests.support.memory import MemorySink, MemorySource, OneEach

OURS = Catalog([Table(name="t1", columns=(Column(name="id", type="integer", key=1), Column(name="c")))])


class Looking(OneEach):
    """Remembers with which catalog it was asked to write."""

    def __init__(self) -> None:
        super().__init__()
        self.catalogs: list[Catalog | None] = []

    def writer(self, catalog: Catalog | None) -> Writer:
        self.catalogs.append(catalog)
        return super().writer(catalog)


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
    defaults: dict[str, Any] = {"options": Options(user="idm")}
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


def test_images_that_come_again_are_told_as_they_were() -> None:
    source, sink = stream(images(1, 2), OURS), MemorySink([], fails_at="2")
    try:
        around(source, OneEach(), sink).go_round()
    except SinkError:
        sink.fails_at = None
    around(source, OneEach(), sink).go_round()
    assert sink.taken == {"1": b"add id=1", "2": b"add id=2"}
