"""Prepare – commit – resolve, wherever somebody is stopped: a plan is there or not, and its target says which it is.

In folders everybody dies, and every step fails, before each step at the file system; elsewhere at the steps of a sink.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from eventlog.core.errors import DataError, OccupiedError, SinkError
from eventlog.core.seams import Resolved, Sink
from eventlog.sinks.database.sink import DatabaseSink
from eventlog.sinks.kafka.sink import KafkaSink
from tests.conformance.test_sink import BROKERS, DATABASES, OWNED, RECEIVERS, STEADY, at, place
from tests.support import sink_places
from tests.support.daily import steps_of_today
from tests.support.sink_places import CutError, Place
from tests.support.sinks import KilledError, dying, failing, opened, tenure

__all__ = ["place"]
KINDS: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "files": sink_places.files,
    "files in routes": sink_places.routed_files,
    "change files": sink_places.change_files,
}
STORES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "files in a store": sink_places.stored_files,
    "change files in a store": sink_places.stored_change_files,
}
LAKES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "delta": partial(sink_places.lake, "delta"),
    "delta mirror": partial(sink_places.lake, "delta", mode="mirror"),
    "iceberg": partial(sink_places.lake, "iceberg"),
}
EVERYWHERE = {**KINDS, **STORES, **LAKES}
NOTHING = Resolved()


@pytest.fixture(params=sorted(EVERYWHERE))
def folders(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Place]]:
    """New places; nothing is hidden in any of them in the end."""
    kind, numbers = EVERYWHERE[request.param], count(1)
    places: list[Place] = []

    def another() -> Place:
        with kind(tmp_path / str(next(numbers))) as found:
            places.append(found)
            return found

    yield another
    assert not [name for one in places for name in one.left()]
    assert not list(tmp_path.rglob("*.part"))


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> Iterator[int]:
    """The steps to die or to fail at: of today in a lake, whose steps are many and slow, else all of them."""
    return steps_of_today() if "iceberg" in request.node.name or "delta" in request.node.name else count(1)


def resolved(place: Place, sink: Sink, plan: str, *numbers: int) -> bool:
    """Return True if the plan with these documents is there behind the first one; check for all of it or nothing."""
    said = sink.resolve(plan)
    there = said.has(place.document(numbers[0]).id)
    assert {said.has(place.document(number).id) for number in numbers} == {there}
    assert place.found() == ([1, *numbers] if there else [1])
    assert said.last == (plan if there else "a")
    return there


@at(*OWNED)
def test_a_target_says_which_plan_it_has(place: Place) -> None:
    sink = opened(place.make(), tenure())
    assert sink.capabilities.resolves
    assert sink.resolve("") == NOTHING
    assert sink.resolve("a") == NOTHING
    sink.commit("a", place.documents(1, 2))
    for one in (sink, place.make()):
        opened(one, tenure(1 if one is sink else 2))
        assert one.resolve("a") == Resolved(last="a", documents=None)
        assert one.resolve("b") == one.resolve("") == Resolved(last="a")


@at(*RECEIVERS, "stdout")
def test_a_target_that_cannot_be_asked_says_nothing(place: Place) -> None:
    sink = opened(place.make(), tenure())
    assert not sink.capabilities.resolves
    sink.commit("a", place.documents(1))
    assert sink.resolve("a") == NOTHING


@at(*OWNED, *RECEIVERS, "stdout")
def test_what_is_prepared_is_unseen_until_it_is_committed(place: Place) -> None:
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    sink.prepare("b", place.documents(2, 3))
    sink.prepare("b", place.documents(2, 3))
    assert place.found() == [1]
    sink.commit("b", place.documents(2, 3))
    assert place.found() == [1, 2, 3]


@at(*OWNED)
def test_what_was_prepared_and_not_committed_is_not_there(place: Place) -> None:
    """Neither for who asks after an error, nor for the next publisher, who plans it anew, and perhaps less of it."""
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    sink.prepare("b", place.documents(2, 3))
    assert not resolved(place, sink, "b", 2, 3)
    sink.prepare("b", place.documents(2, 3))
    heir = opened(place.make(), tenure(2))
    assert not resolved(place, heir, "b", 2, 3)
    heir.commit("c", place.documents(3))
    assert place.found() == [1, 3]


@pytest.mark.in_turn
@at(*STEADY)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_what_is_there_of_a_plan_that_broke_off_is_said(place: Place, step: int) -> None:
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    with place.breaking(step), suppress(CutError):
        sink.commit("b", place.documents(2, 3))
    heir = opened(place.make(), tenure(2))
    if not resolved(place, heir, "b", 2, 3):
        heir.commit("c", place.documents(2, 3))
    with suppress(SinkError, OccupiedError):  # of what it had begun
        sink.resolve("b")
    with pytest.raises(OccupiedError):
        sink.commit("d", place.documents(4))
    assert place.found() == [1, 2, 3]


@at(*DATABASES, *BROKERS)
def test_an_error_of_a_commit_that_arrived_is_resolved(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is cut after the target has committed: only asking it tells."""
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    kind, name = (KafkaSink, "_commit") if isinstance(sink, KafkaSink) else (DatabaseSink, "_write")
    usual = getattr(kind, name)

    def cut(one: Sink, *positional: object) -> None:
        usual(one, *positional)
        raise SinkError("The line is cut.")

    with monkeypatch.context() as patch:
        patch.setattr(kind, name, cut)
        with pytest.raises(SinkError, match="The line is cut"):
            sink.commit("b", place.documents(2, 3))
    assert resolved(place, sink, "b", 2, 3)
    sink.commit("b", place.documents(2, 3))
    sink.commit("c", place.documents(4))
    assert place.found() == [1, 2, 3, 4]


@pytest.mark.in_turn
@pytest.mark.parametrize("size", [1, 3])
def test_who_dies_at_any_step_leaves_a_plan_whole_or_nothing_of_it(
    folders: Callable[[], Place], size: int, steps: Iterator[int]
) -> None:
    numbers, fates = range(2, 2 + size), list[bool]()
    for before in steps:
        place = folders()
        sink = opened(place.make(), tenure())
        sink.commit("a", place.documents(1))
        with dying(before) as died, suppress(KilledError):
            sink.prepare("b", place.documents(*numbers))
            sink.commit("b", place.documents(*numbers))
        heir = opened(place.make(), tenure(2))
        there = resolved(place, heir, "b", *numbers)
        fates.append(there)
        heir.commit("b" if there else "c", place.documents(*numbers) if there else place.documents(7))
        assert place.found() == ([1, *numbers] if there else [1, 7])
        with pytest.raises(OccupiedError):
            sink.commit("d", place.documents(8))
        if not died.happened:
            break
    assert fates == sorted(fates), "once it is there it stays"
    assert set(fates) == {True, False}


@pytest.mark.in_turn
@pytest.mark.parametrize("folders", sorted({*KINDS, *STORES, "delta"}), indirect=True)
def test_heirs_that_die_at_any_step_change_nothing_of_that(folders: Callable[[], Place], steps: Iterator[int]) -> None:
    """Whoever settles what another one left may be stopped as well, and the next one settles both."""
    for before in steps:
        outcomes = [_with_two_deaths(folders(), before, again) for again in range(1, 30, 3)]
        assert len({there for _, there in outcomes}) == 1, "the first death decides"
        if not outcomes[0][0]:
            break


def _with_two_deaths(place: Place, before: int, again: int) -> tuple[bool, bool]:
    """Kill two publishers in turn; return whether the first died, and whether its plan is there."""
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    with dying(before) as died, suppress(KilledError):
        sink.commit("b", place.documents(2, 3))
    with dying(again), suppress(KilledError):
        opened(place.make(), tenure(2))
    return died.happened, resolved(place, opened(place.make(), tenure(3)), "b", 2, 3)


@pytest.mark.in_turn
def test_after_an_error_at_any_step_the_same_publisher_goes_on(
    folders: Callable[[], Place], steps: Iterator[int]
) -> None:
    """Such as that of a disk which is full for a moment."""
    for before in steps:
        place = folders()
        sink = opened(place.make(), tenure())
        sink.commit("a", place.documents(1))
        with failing(before, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) as failed, suppress(SinkError):
            sink.prepare("b", place.documents(2, 3))
            sink.commit("b", place.documents(2, 3))
        if not resolved(place, sink, "b", 2, 3):
            sink.commit("b", place.documents(2, 3))
        assert place.found() == [1, 2, 3]
        sink.commit("c", place.documents(4))
        assert place.found() == [1, 2, 3, 4]
        if not failed.happened:
            return


@pytest.mark.parametrize("name", [".eventlog-1.shown", ".eventlog-half-a-name.part"])
def test_a_name_that_nobody_gave_is_told_in_a_sentence(tmp_path: Path, name: str) -> None:
    """It says how far the folder is, so nobody guesses."""
    for number, kind in enumerate(KINDS.values()):
        with kind(tmp_path / str(number)) as place:
            sink = opened(place.make(), tenure())
            sink.commit("a", place.documents(1))
            (tmp_path / str(number) / name).touch()
            with pytest.raises(DataError, match="no name that eventlog gives"):
                sink.resolve("a")
            with pytest.raises(DataError, match="no name that eventlog gives") as caught:
                sink.open(tenure(2))
            assert "former name" in str(caught.value.hint)
            (tmp_path / str(number) / name).unlink()
            assert sink.resolve("a").last == "a"


def test_a_plan_whose_mark_is_gone_is_known_in_change_files(tmp_path: Path) -> None:
    with sink_places.change_files(tmp_path) as place:
        sink = opened(place.make(), tenure())
        sink.commit("a", place.documents(1))
        for mark in tmp_path.glob(".eventlog-*"):
            mark.unlink()
        heir = opened(place.make(), tenure(2))
        assert heir.resolve("a") == Resolved(last="a", documents=None)
        heir.commit("a", place.documents(1))
        heir.commit("b", place.documents(2))
        assert place.found() == [1, 2]
