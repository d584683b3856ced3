"""Plans in an object store where answers are lost, requests come late, and a store does not keep what is needed."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import msgspec
import obstore
import pytest
from obstore.store import MemoryStore

from eventlog.core.errors import ConfigError, DataError, SinkError
from eventlog.core.model import Document
from eventlog.sinks.files import FileSink
from eventlog.sinks.store.objects import Bucket, Tag
from eventlog.sinks.store.plans import HIDDEN, POSITION, Position, StoredPlans
from tests.support.sinks import KilledError, dying, opened, tenure


@pytest.fixture
def objects() -> Bucket:
    return Bucket(MemoryStore(), "s3://bucket/p")


def sink_at(objects: Bucket) -> FileSink:
    return FileSink(StoredPlans(objects, ordered=True), ".xml")


def documents(*numbers: int) -> list[Document]:
    return [Document(id=f"{number:04}", body=b"<nds/>", covers={}) for number in numbers]


def seen(objects: Bucket) -> list[str]:
    assert list(objects.names(HIDDEN)) == []
    return sorted(name for name in objects.names() if not name.startswith(".eventlog/"))


def position(objects: Bucket) -> Position:
    found = objects.read(POSITION)
    assert found is not None
    return msgspec.json.decode(found.content, type=Position)


@pytest.mark.parametrize("raised", [True, False], ids=["the line is cut", "the library asked again"])
def test_a_commit_whose_answer_is_lost_is_one(objects: Bucket, monkeypatch: pytest.MonkeyPatch, raised: bool) -> None:
    sink = opened(sink_at(objects), tenure())
    usual = Bucket.put_over

    def lost(self: Bucket, name: str, content: bytes, former: Tag | None) -> Tag | None:
        assert usual(self, name, content, former)
        if raised:
            raise SinkError("The line is cut.", may_pass=True)
        return usual(self, name, content, former)

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "put_over", lost)
        if raised:
            with pytest.raises(SinkError, match="line"):
                sink.commit("a", documents(1, 2))
        else:
            sink.commit("a", documents(1, 2))
    assert sink.resolve("a").documents is None
    sink.commit("a", documents(1, 2))
    sink.commit("b", documents(3))
    assert seen(objects) == ["0001.xml", "0002.xml", "0003.xml"]


def test_a_store_that_lists_late_loses_and_doubles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishers die at each of their requests, and nobody finds by a list what was put meanwhile."""
    for before in count(1):
        objects = Bucket(MemoryStore(), "s3://bucket/p")
        with monkeypatch.context() as late:
            late.setattr(Bucket, "names", lambda *_: iter(()))
            sink = opened(sink_at(objects), tenure())
            sink.commit("a", documents(1))
            with dying(before) as died, suppress(KilledError):
                sink.prepare("b", documents(2, 3))
                sink.commit("b", documents(2, 3))
            heir = opened(sink_at(objects), tenure(2))
            if heir.resolve("b").documents is not None:
                heir.commit("b", documents(2, 3))
            assert heir.last() == "0003"
        opened(sink_at(objects), tenure(3))  # when the store lists all, what nobody shows goes
        assert seen(objects) == ["0001.xml", "0002.xml", "0003.xml"]
        if not died.happened:
            break
    assert before > 4


def test_a_commit_that_comes_late_is_none(objects: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is on its way when the publisher asks what became of it; then it is refused, for what it would show is removed."""
    sink = opened(sink_at(objects), tenure())
    sink.commit("a", documents(1))
    usual, late = Bucket.put_over, list[tuple[Any, ...]]()

    def hung(self: Bucket, *request: Any) -> Tag | None:
        late.append(request)
        raise SinkError("No answer.", may_pass=True)

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "put_over", hung)
        with pytest.raises(SinkError, match="No answer"):
            sink.commit("b", documents(2))
    assert sink.resolve("b").documents == frozenset()
    assert usual(objects, *late[0]) is None
    sink.commit("b", documents(2))
    assert seen(objects) == ["0001.xml", "0002.xml"]


def test_a_position_that_somebody_changes_meanwhile_is_read_again(
    objects: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(sink_at(objects), tenure())
    monkeypatch.setattr(Bucket, "put_over", lambda *_: None)
    with pytest.raises(SinkError, match="another state than was known"):
        sink.commit("a", documents(1))
    with pytest.raises(SinkError, match="is being taken over by others"):
        sink.open(tenure(2))
    monkeypatch.undo()
    sink.open(tenure(2))
    assert seen(objects) == []


def test_hidden_objects_that_somebody_removed_are_told(objects: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(sink_at(objects), tenure())
    sink.prepare("a", documents(1))
    objects.remove(list(objects.names(HIDDEN)))
    with pytest.raises(DataError, match="were removed by somebody else"):
        sink.commit("a", documents(1))


def test_a_store_that_puts_over_any_state_is_refused(objects: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = obstore.put

    def careless(*positional: Any, mode: Any = None, **named: Any) -> Any:
        return usual(*positional, **named)

    monkeypatch.setattr(obstore, "put", careless)
    with pytest.raises(ConfigError, match=r"does not put objects over a known state of them \(If-Match\)"):
        sink_at(objects).open(tenure())


def test_a_place_that_is_nobodys_stays_so_for_who_has_no_tenure(objects: Bucket) -> None:
    opened(sink_at(objects)).commit("a", documents(1))
    assert position(objects).owner.epoch == 0
    opened(sink_at(objects), tenure(1)).commit("b", documents(2))
    assert opened(sink_at(objects)).last() == "0002"
    assert position(objects).owner.epoch == 2


def test_long_ids_and_routes_are_objects_too(objects: Bucket) -> None:
    sink = FileSink(StoredPlans(objects, ordered=True), ".xml")
    sink.open(tenure())
    sink.commit("a", [Document(id="ü" * 300, body=b"<nds/>", covers={}, route="r/s")])
    [name, label] = seen(objects)
    assert (name.startswith("r/s/%c3"), label) == (True, f"r/s/.{name.removeprefix('r/s/')}.id")
    assert sink.last() == "ü" * 300
