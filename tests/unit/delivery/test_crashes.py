"""A batch that is interrupted anywhere, however often, is in effect published once, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Lock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import SinkError
from eventlog.core.model import Document, Image, Op, Outcome, Position, Reason, Status
from eventlog.core.rules import Options
from eventlog.core.seams import SinkCapabilities
from eventlog.delivery import output as delivery
from eventlog.delivery.pipeline import Output, Pipeline
from tests.support.examples import examples
from tests.support.memory import MemorySource, Several, UnaskedSink
from tests.support.shares import met, shares


class FragileSink(UnaskedSink):
    """Keeps what each document covers; fails after so many documents, in one of two ways."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Position]] = {}
        self.written: list[str] = []
        self.breaks_after: int | None = None
        self.trouble: type[BaseException] = SinkError

    def last(self) -> str:
        return max(self.kept, default="")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        for document in documents:
            if self.breaks_after == 0:
                self.breaks_after = None
                raise self.trouble("broken")
            if self.breaks_after is not None:
                self.breaks_after -= 1
            self.kept[document.id] = [position for positions in document.covers.values() for position in positions]
            self.written.append(document.id)
        return ()


class FragileLanes(FragileSink):
    """The same with several lanes."""

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(lanes=self.lanes)

    def __init__(self, lanes: int) -> None:
        super().__init__()
        self.lanes = [self] * lanes
        self._turn = Lock()

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        with self._turn:
            return super().commit(plan, documents)

    def break_off(self) -> None:
        """Nothing is on its way for long."""


class Trouble(Struct, frozen=True, kw_only=True):
    """Which sink breaks after how many documents, how, and what happens before the next attempt."""

    sink: int
    after: int
    dies: bool
    vanishing: tuple[int, ...]


def images_of(keys: Sequence[int]) -> list[Image]:
    """An image each, of the objects with these keys: it begins, and is changed then."""
    return [
        Image(
            position=(number,),
            op=Op.MODIFY if key in keys[: number - 1] else Op.ADD,
            table="usr",
            before={"idu": key, "fname": "x"} if key in keys[: number - 1] else None,
            after={"idu": key, "fname": str(number)},
        )
        for number, key in enumerate(keys, 1)
    ]


streams = st.lists(st.integers(1, 4), max_size=10).map(images_of)
troubles = st.lists(
    st.builds(
        Trouble,
        sink=st.integers(0, 1),
        after=st.integers(0, 2),
        dies=st.booleans(),
        vanishing=st.lists(st.integers(1, 10), max_size=5).map(tuple),
    ),
    min_size=1,
    max_size=3,
)


@shares(broken=0.3, again=0.05)
@examples(400)
@given(streams, troubles, st.integers(1, 3), st.integers(1, 4), st.booleans(), st.integers(1, 3))
def test_what_is_at_an_output_covers_every_event_once(
    images: list[Image], troubles: list[Trouble], size: int, chunk: int, answered: bool, lanes: int
) -> None:
    source = MemorySource([], images)
    sinks = [FragileSink(), FragileLanes(lanes)]
    outputs = [
        Output(format=Several(size + number), sink=sink, name=f"out {number}", answers=answered and bool(number))
        for number, sink in enumerate(sinks)
    ]
    pipeline = Pipeline(source=source, outputs=outputs, options=Options())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "CHUNK_DOCUMENTS", chunk)
        patch.setattr(delivery, "ANSWERED_DOCUMENTS", chunk)
        broken = 0
        for trouble in troubles:
            broken += _attempt(pipeline, source, sinks, trouble)
        for sink in sinks:
            sink.breaks_after = None
        if not source.settled and source.batch.events:
            pipeline.go_round()
    met(broken=broken, again=broken > 1)
    for sink in sinks:
        covered = [position for positions in sink.kept.values() for position in positions]
        assert len(covered) == len(set(covered))
        published = {
            p for p, o in source.settled.items() if o.reason is Reason.PUBLISHED and o.status is Status.SUCCESS
        }
        assert published <= set(covered)


def _attempt(pipeline: Pipeline, source: MemorySource, sinks: list[FragileSink], trouble: Trouble) -> bool:
    """One round that may break off, and what happens to the log before the next one; says whether it broke off."""
    if source.settled or not source.batch.events:
        return False
    sink = sinks[trouble.sink]
    sink.breaks_after, sink.trouble = trouble.after, KeyboardInterrupt if trouble.dies else SinkError
    with suppress(KeyboardInterrupt, SinkError):
        pipeline.go_round()
        return False
    kept = [event for event in source.batch.events if event.position[0] not in trouble.vanishing]
    source.batch = replace(source.batch, events=kept)
    return True
