"""The spans of a batch: one for each thing that is done with it, each with its output and how many documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core import tracing
from eventlog.core.errors import SinkError, SourceError
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Found
from eventlog.delivery.pipeline import Output, Pipeline
from tests.support.memory import MemorySink, MemorySource, OneEach, inserts


class Recorded:
    """A span that remembers what it was told."""

    def __init__(self, name: str, attributes: Mapping[str, str | int], began: int) -> None:
        self.began = began
        self.name, self.attributes = name, {key.removeprefix("eventlog."): one for key, one in attributes.items()}
        self.children: list[Recorded] = []
        self.failure: BaseException | None = None
        self.ended = 0

    def child(self, name: str, began: int, attributes: Mapping[str, str | int]) -> Recorded:
        self.children.append(Recorded(name, attributes, began))
        return self.children[-1]

    def headers(self) -> Mapping[str, str]:
        return {"step": self.name}

    def end(self, ended: int, failure: BaseException | None, attributes: Mapping[str, str | int]) -> None:
        self.ended, self.failure = self.ended + 1, failure
        self.attributes |= {key.removeprefix("eventlog."): one for key, one in attributes.items()}


@pytest.fixture
def batches() -> Iterator[list[Recorded]]:
    """The spans of batches, in the order in which they began."""
    found: list[Recorded] = []

    def begin(name: str, began: int, attributes: Mapping[str, str | int]) -> Recorded:
        found.append(Recorded(name, attributes, began))
        return found[-1]

    tracing.switch(begin)
    yield found
    tracing.switch(None)


def pipeline(source: MemorySource, **sinks: MemorySink) -> Pipeline:
    outputs = [Output(format=OneEach(), sink=sink, name=name) for name, sink in sinks.items()]
    return Pipeline(source=source, outputs=outputs, options=Options(), limit=2)


def steps(batch: Recorded) -> list[tuple[str, dict[str, Any]]]:
    assert all(one.ended == 1 for one in (batch, *batch.children))
    assert all(one.attributes["output"] for one in batch.children if one.name in ("encode", "write"))
    return [(one.name, one.attributes) for one in batch.children if one.name != "encode" or not one.failure]


def test_a_batch_has_a_span_for_each_step_of_each_output(batches: list[Recorded]) -> None:
    pipeline(MemorySource([], inserts(2)), near=MemorySink([]), far=MemorySink([])).go_round()
    [batch] = batches
    assert (batch.name, batch.attributes) == ("batch", {"rows": 2, "changes": 2, "documents": 4})
    found = steps(batch)
    assert found[:2] == [("read", {"rows": 2}), ("decide", {})]
    assert found[-1] == ("settle", {})
    for output in ("near", "far"):
        mine = [(name, told) for name, told in found if told.get("output") == output]
        assert ("write", {"output": output, "documents": 2}) in mine
        assert {name for name, _ in mine} == {"encode", "write"}


def test_a_batch_begins_with_its_oldest_row_that_has_a_time(batches: list[Recorded]) -> None:
    times = ["2001-09-09 01:46:41", "soon", None, "2001-09-09 01:46:40.5", "2001-09-09 01:46:42"]
    rows = [replace(one, time=time) for one, time in zip(inserts(len(times)), times, strict=True)]
    pipeline(MemorySource([], rows), near=MemorySink([])).go_round()
    assert [batch.began for batch in batches] == [1_000_000_000_500_000_000]


def test_a_step_that_fails_and_its_batch_say_so(batches: list[Recorded]) -> None:
    with pytest.raises(SinkError) as error:
        pipeline(MemorySource([], inserts(1)), near=MemorySink([], fails_at="1")).go_round()
    [batch] = batches
    assert batch.failure is error.value
    assert [one.name for one in batch.children if one.failure is error.value] == ["write"]
    assert steps(batch)[-1] == ("write", {"output": "near", "documents": 1})


def test_a_batch_that_cannot_be_decided_says_so(batches: list[Recorded]) -> None:
    class Away(Catalog):
        def find(self, name: str) -> Found | None:
            raise SourceError("The tables are away.")

    source = MemorySource([], inserts(1))
    source.batch = replace(source.batch, catalog=Away())
    with pytest.raises(SourceError) as error:
        pipeline(source, near=MemorySink([])).go_round()
    [batch] = batches
    assert (batch.ended, batch.failure) == (1, error.value)


def test_a_batch_that_is_repeated_has_the_same_steps(batches: list[Recorded]) -> None:
    source, sink = MemorySource([], inserts(2)), MemorySink([], fails_at="2")
    with pytest.raises(SinkError):
        pipeline(source, near=sink).go_round()
    sink.fails_at = None
    pipeline(source, near=sink).go_round()
    assert {name for name, _ in steps(batches[1])} == {"read", "decide", "encode", "write", "settle"}
