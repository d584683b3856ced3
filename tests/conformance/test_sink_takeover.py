"""A publisher that is frozen anywhere and goes on after another one took over: nothing of it appears any more.

In folders every interleaving at the file system is tried: one is stopped before each of its steps in turn, the other
does all its work meanwhile, and the first goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import OccupiedError, SinkError
from eventlog.core.seams import Sink
from eventlog.sinks.database import sink as database
from eventlog.sinks.database.control import Control
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support import sink_places
from tests.support.servers_kafka import Broker
from tests.support.sink_places import Place
from tests.support.sinks import KilledError, dying, opened, stopped, tenure

FOLDERS = {
    "files": sink_places.files,
    "change files": sink_places.change_files,
    "files in a store": sink_places.stored_files,
    "change files in a store": sink_places.stored_change_files,
}
PATIENCE = 30
A_MOMENT = 0.5


@pytest.fixture(params=sorted(FOLDERS))
def folders(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[int], Place]]:
    """New places, by number."""
    kind = FOLDERS[request.param]

    def place(number: int) -> Place:
        with kind(tmp_path / str(number)) as found:
            return found

    yield place
    assert not list(tmp_path.rglob("*.part"))


def every_step(act: Callable[[Place], object], other: Callable[[Place], object], places: Callable[[int], Place]) -> int:
    """Stop one act before each of its steps for the other's work, each time at a new place; return the number of
    steps.
    """
    for before in count(1):
        place = places(before)
        with stopped(before, partial(other, place)) as found:
            act(place)
        if not found.happened:
            return before - 1
    raise AssertionError


@pytest.mark.in_turn
def test_a_writer_that_is_replaced_at_any_step_shows_nothing_after_that(folders: Callable[[int], Place]) -> None:
    former: dict[str, Sink] = {}
    later: dict[str, Sink] = {}
    seen: list[int] = []

    def prepared(number: int) -> Place:
        place = folders(number)
        former["sink"] = opened(place.make(), tenure())
        former["sink"].commit("a", place.documents(1))
        return place

    def takes_over(place: Place) -> None:
        later["sink"] = opened(place.make(), tenure(2))
        there = later["sink"].resolve("b").documents is None
        assert place.found() == ([1, 2, 3] if there else [1])
        later["sink"].commit("c", place.documents(5))
        seen[:] = place.found()

    def writes(place: Place) -> None:
        seen.clear()
        with suppress(OccupiedError):
            former["sink"].prepare("b", place.documents(2, 3))
            former["sink"].commit("b", place.documents(2, 3))
        if not seen:
            return
        assert place.found() == seen
        with pytest.raises(OccupiedError):
            former["sink"].commit("d", place.documents(4))
        heir = opened(place.make(), tenure(3))
        assert heir.last() == place.document(5).id
        heir.commit("e", place.documents(6))
        assert place.found() == [*seen, 6]

    assert every_step(writes, takes_over, prepared) > 5


@pytest.mark.in_turn
def test_who_is_replaced_while_it_takes_over_takes_nothing_away(folders: Callable[[int], Place]) -> None:
    later: dict[str, Sink] = {}

    def prepared(number: int) -> Place:
        place = folders(number)
        opened(place.make(), tenure()).commit("a", place.documents(1))
        later.clear()
        return place

    def takes_over(place: Place) -> None:
        later["sink"] = opened(place.make(), tenure(3))
        later["sink"].commit("b", place.documents(2))

    def opens(place: Place) -> None:
        with suppress(OccupiedError):
            sink = opened(place.make(), tenure(2))
            sink.commit("c", place.documents(9) if later else [])
        if later:
            later["sink"].commit("d", place.documents(3))
            assert place.found() == [1, 2, 3]
            assert opened(place.make(), tenure(4)).last() == place.document(3).id

    assert every_step(opens, takes_over, prepared) > 5


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", [sink_places.change_files, sink_places.routed_files])
def test_who_has_the_folder_above_leaves_alone_what_was_begun(
    tmp_path: Path, kind: Callable[[Path], AbstractContextManager[Place]]
) -> None:
    """An output in a folder of another one's, whose publisher dies before each step in turn."""
    for before in count(1):
        folder = tmp_path / str(before)
        with kind(folder) as above, sink_places.files(folder / "below") as place:
            opened(above.make(), tenure()).commit("a", above.documents(1))
            sink = opened(place.make(), tenure())
            with suppress(KilledError), dying(before) as death:
                sink.commit("a", place.documents(1, 2, 3))
            opened(above.make(), tenure(2))
            there = opened(place.make(), tenure(2)).resolve("a").documents is None
            assert place.found() == ([1, 2, 3] if there else [])
        if not death.happened:
            break
    assert before > 10


@pytest.fixture
def tables(engine: Engine) -> Iterator[Place]:
    with sink_places.database(engine) as found:
        yield found


def test_before_each_of_its_transactions_a_former_writer_is_stopped(tables: Place) -> None:
    """Where DDL ends transactions it has two of them."""
    stops = next(before for before in count(1) if not _stopped_before(tables, before)) - 1
    assert stops in (1, 2)


def _stopped_before(tables: Place, number: int) -> bool:
    """Take over before a writer's transaction of this number, and check for no trace of it; return False if it has
    none.
    """
    first = 100 * number
    former, heir = opened(tables.make(), tenure(2 * number)), tables.make()
    former.commit(f"a{number}", tables.documents(first))
    transaction, calls = DatabaseSink._transaction, iter(range(1, number))
    found: list[int] = []

    def stopping(sink: DatabaseSink) -> Any:
        if sink is former and next(calls, None) is None and not found:
            opened(heir, tenure(2 * number + 1)).commit(f"b{number}", tables.documents(first + 1))
            found.extend(tables.found())
        return transaction(sink)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseSink, "_transaction", stopping)
        with suppress(OccupiedError):
            former.commit(f"c{number}", tables.documents(first + 2))
    if found:
        assert tables.found() == found
        with pytest.raises(OccupiedError):
            former.commit(f"d{number}", tables.documents(first + 3))
    return bool(found)


def test_who_takes_over_waits_for_the_transaction_of_the_former_writer(
    tables: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = opened(tables.make(), tenure())
    former.commit("a", tables.documents(1))
    heir = tables.make()
    reached, free = Event(), Event()
    advance = Control.advance

    def frozen(control: Control, *positional: Any) -> None:
        if control is former._control:  # type: ignore[attr-defined]  # they are of a database here
            reached.set()
            assert free.wait(PATIENCE)
        advance(control, *positional)

    monkeypatch.setattr(Control, "advance", frozen)
    writing = Thread(target=former.commit, args=("b", tables.documents(2)))
    taking = Thread(target=heir.open, args=(tenure(2),))
    writing.start()
    assert reached.wait(PATIENCE)
    taking.start()
    taking.join(A_MOMENT)
    assert taking.is_alive()
    free.set()
    writing.join(PATIENCE)
    taking.join(PATIENCE)
    assert heir.last() == tables.document(2).id
    heir.commit("b", tables.documents(2))
    with pytest.raises(OccupiedError):
        former.commit("c", tables.documents(3))
    assert tables.found() == [1, 2]


def test_the_session_of_a_publisher_that_froze_in_its_transaction_is_ended(
    postgresql: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = DatabaseSettings(url=postgresql.url.render_as_string(hide_password=False))
    heir = DatabaseSink(settings)
    # The heir keeps the usual limit: on a busy machine it may itself be held up for seconds.
    monkeypatch.setattr(database, "HELD_SECONDS", 3.0)
    former = DatabaseSink(settings)
    former.open(tenure())
    former.commit("a", [sink_places.row(1)])
    advance = Control.advance

    def replaced(control: Control, *positional: Any) -> None:
        if control is former._control:
            heir.open(tenure(2))
            heir.commit("b", [sink_places.row(2)])
        advance(control, *positional)

    with monkeypatch.context() as patch:
        patch.setattr(Control, "advance", replaced)
        with pytest.raises(SinkError) as caught:
            former.commit("c", [sink_places.row(3)])
    assert caught.value.may_pass
    with pytest.raises(OccupiedError):
        former.commit("c", [sink_places.row(3)])
    with sink_places.database(postgresql) as place:
        assert place.found() == [1, 2]
    former.close()
    heir.close()


@pytest.mark.parametrize("name", ["_send", "_commit"])
def test_a_transaction_that_is_overtaken_at_kafka_is_not_there(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Before it begins, and after its messages are at the broker."""
    with sink_places.kafka(broker.servers, broker.topic()) as place:
        former = opened(place.make(), tenure())
        former.commit("a", place.documents(1))
        heir = place.make()
        usual = getattr(KafkaSink, name)

        def overtaken(sink: KafkaSink, *positional: Any) -> Any:
            if sink is former and not heir.last():
                assert sink._producer is not None
                sink._producer.flush(10)
                opened(heir, tenure(2)).commit("b", place.documents(2))
                heir.commit("c", place.documents(3))
            return usual(sink, *positional)

        with monkeypatch.context() as patch:
            patch.setattr(KafkaSink, name, overtaken)
            with pytest.raises(OccupiedError):
                former.commit("b", place.documents(2))
        with pytest.raises(OccupiedError):
            former.commit("d", place.documents(4))
        heir.commit("e", place.documents(5))
        assert place.found() == [1, 2, 3, 5]
