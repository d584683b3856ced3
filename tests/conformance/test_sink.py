"""What every sink must do: a plan is there once and whole whatever breaks off, and only its latest publisher writes.

A new sink joins with a place in tests/support/sink_places.py. `lasting` are the targets that know their documents themselves:
standard output does not, and is only written in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import ConfigError, DataError, OccupiedError
from eventlog.core.model import Document
from eventlog.sinks.stdout import StdoutSink
from eventlog.xds.write import HEARTBEAT
from tests.support import sink_places
from tests.support.servers import databases
from tests.support.servers_kafka import Broker
from tests.support.servers_store import StoreServer
from tests.support.sink_places import CutError, Place
from tests.support.sinks import opened, tenure

BEAT = Document(id=HEARTBEAT, body=b'<input><status event-id="0"/></input>', covers={})
FOLDERS = ["files", "message files", "change files"]
LAKES = ["delta", "delta mirror", "iceberg", "iceberg mirror"]
STORED_LAKES = ["delta in S3", "iceberg in S3"]
STORES = ["files in S3", "change files in S3"]
RECEIVERS = ["http", "http over four"]
STAND_INS = ["kafka", "kafka messages"]
BROKERS = ["broker", "broker messages"]
DATABASES = [f"tables in {name}" for name in databases()]
OWNED = [*FOLDERS, *LAKES, *STORES, *STORED_LAKES, *DATABASES, *STAND_INS, *BROKERS]
"""Targets in which stands whose they are."""
LASTING = [*OWNED, *RECEIVERS]
STEADY = [*FOLDERS, *LAKES, *STORES, *STORED_LAKES, *DATABASES, *BROKERS]
"""Targets that take nothing from whoever was replaced; the stand-in of Kafka neither aborts nor fences off."""
SELDOM = ["delta mirror", "iceberg mirror", *STORED_LAKES, "kafka messages", "broker messages"]
"""Targets of which each part is asked every day, in another one."""
XDS = ["files", "files in S3", "http", "http over four", "kafka", "broker"]


def made(name: str, request: pytest.FixtureRequest, folder: Path) -> AbstractContextManager[Place]:
    """Make the place of that name."""
    if name in FOLDERS:
        kind = {"files": sink_places.files, "message files": sink_places.message_files}
        return kind.get(name, sink_places.change_files)(folder / "out")
    if name in LAKES:
        sort, _, mode = name.partition(" ")
        return sink_places.lake(sort, folder / "out", "mirror" if mode else "append")
    if name in STORED_LAKES:
        server: StoreServer = request.getfixturevalue("s3_store")
        return sink_places.lake(name.partition(" ")[0], server.address(), store=server.settings, catalog_folder=folder)
    if name in STORES:
        store: StoreServer = request.getfixturevalue("s3_store")
        objects = store.objects(store.address())
        return (sink_places.stored_files if name == "files in S3" else sink_places.stored_change_files)(objects)
    if name in RECEIVERS:
        return sink_places.http(4 if name == "http over four" else 1)
    if name in STAND_INS:
        servers: str = request.getfixturevalue("mock_cluster")
        return sink_places.kafka(servers, f"mock.{folder.name}", told=name == "kafka messages")
    if name in BROKERS:
        broker: Broker = request.getfixturevalue("broker")
        return sink_places.kafka(broker.servers, broker.topic(), told=name == "broker messages")
    if name in DATABASES:
        engine: Engine = request.getfixturevalue(name.removeprefix("tables in "))
        return sink_places.database(engine)
    return sink_places.stdout()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Make the place named by the test's parameter."""
    with made(request.param, request, tmp_path) as found:
        yield found


def at(*names: str) -> pytest.MarkDecorator:
    """Run the test on each of these places in turn."""
    groups = dict.fromkeys(BROKERS, "kafka") | dict.fromkeys([*STORES, *STORED_LAKES], "s3")
    marks = {name: [pytest.mark.xdist_group(group)] for name, group in groups.items()}
    for name in SELDOM:
        marks.setdefault(name, []).append(pytest.mark.in_turn)
    found = [pytest.param(one, marks=marks.get(one, ())) for one in names]
    return pytest.mark.parametrize("place", found, indirect=True)


everywhere, lasting, owned = at(*LASTING, "stdout"), at(*LASTING), at(*OWNED)


@everywhere
def test_an_empty_target_has_no_last_document(place: Place) -> None:
    sink = opened(place.make(), tenure())
    assert sink.last() == ""
    assert list(sink.commit("a", [])) == []
    assert (sink.last(), place.found()) == ("", [])


@everywhere
def test_documents_are_there_in_order_and_the_last_is_known(place: Place) -> None:
    sink = opened(place.make(), tenure())
    assert list(sink.commit("a", place.documents(1, 2))) == []
    sink.commit("b", place.documents(10))
    assert place.found() == [1, 2, 10]
    assert sink.last() == place.document(10).id
    sink.close()


@at("files", "stdout", "http", "kafka")
def test_more_documents_than_one_group_are_all_there(place: Place) -> None:
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(*range(1, 601)))
    assert place.found() == list(range(1, 601))
    assert sink.last() == place.document(600).id


@lasting
def test_a_plan_that_comes_again_is_there_once(place: Place) -> None:
    """In the same process, after it was closed, and from a publisher that has taken over meanwhile."""
    sink = opened(place.make(), tenure())
    plan = place.documents(1, 2)
    sink.commit("a", plan)
    sink.commit("a", plan)
    sink.close()
    opened(sink, tenure()).commit("a", plan)
    heir = opened(place.make(), tenure(2))
    heir.commit("a", plan)
    assert place.found() == [1, 2]
    heir.commit("b", place.documents(3))
    assert place.found() == [1, 2, 3]


@at(*XDS)
def test_an_id_that_is_lower_than_the_last_one_is_no_repeat(place: Place) -> None:
    """A transaction that began early and was committed late has lower numbers than what was published already."""
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(5))
    sink.commit("b", place.documents(3))
    assert sink.last() == place.document(5).id
    opened(place.make(), tenure(2)).commit("c", place.documents(2))
    assert sorted(place.found()) == [2, 3, 5]


@at(*XDS)
def test_the_same_document_under_another_plan_is_written_again(place: Place, request: pytest.FixtureRequest) -> None:
    """As `eventlog requeue` wants it; a file takes its own place."""
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    sink.commit("b", place.documents(1))
    in_files = request.node.callspec.params["place"] in ("files", "files in S3")
    assert place.found() == ([1] if in_files else [1, 1])


@pytest.mark.in_turn
@at(*STEADY, *RECEIVERS)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_plan_that_broke_off_is_there_once_and_whole_when_it_is_repeated(place: Place, step: int) -> None:
    sink = opened(place.make(), tenure())
    sink.commit("a", place.documents(1))
    plan = place.documents(2, 3, 4)
    with place.breaking(step):
        try:
            sink.commit("b", plan)
        except CutError:
            assert set(place.found()) < {1, 2, 3, 4}
    heir = opened(place.make(), tenure(2))
    heir.commit("b", plan)
    assert place.found() == [1, 2, 3, 4]
    heir.commit("c", place.documents(5))
    assert place.found() == [1, 2, 3, 4, 5]


@at(*[name for name in (*LASTING, "stdout") if "message" not in name])
def test_a_document_without_a_plan_leaves_the_plan_and_the_position_alone(place: Place) -> None:
    sink = opened(place.make(), tenure())
    plan = place.documents(1, 2)
    sink.commit("a", plan)
    sink.commit("", [BEAT])
    sink.commit("", [BEAT])
    assert sink.last() == place.document(2).id
    if isinstance(sink, StdoutSink):
        return
    sink.commit("a", plan)
    opened(place.make(), tenure(2)).commit("a", plan)
    assert [number for number in place.found() if number] == [1, 2]


@at(*STEADY, *RECEIVERS)
def test_a_publisher_that_was_replaced_writes_nothing_more(place: Place) -> None:
    former = opened(place.make(), tenure())
    former.commit("a", place.documents(1))
    later = opened(place.make(), tenure(2))
    later.commit("b", place.documents(2))
    for plan in ("b", "c"):
        with pytest.raises(OccupiedError):
            former.commit(plan, place.documents(3))
    later.commit("d", place.documents(4))
    assert place.found() == [1, 2, 4]


@owned
def test_a_publisher_with_a_lower_number_is_refused_at_once(place: Place) -> None:
    later = opened(place.make(), tenure(5))
    later.commit("a", place.documents(1))
    with pytest.raises(OccupiedError, match="Somebody else has taken"):
        opened(place.make(), tenure(4))
    later.commit("b", place.documents(2))
    assert place.found() == [1, 2]


@owned
def test_another_log_is_refused_with_its_name_and_a_way_out_and_disturbs_nobody(place: Place) -> None:
    ours = opened(place.make(), tenure(1, "ours"))
    ours.commit("a", place.documents(1))
    with pytest.raises(ConfigError, match="belongs to the event log ours; the event log theirs") as refused:
        opened(place.make(), tenure(9, "theirs"))
    assert "of its own" in str(refused.value.hint)
    ours.commit("b", place.documents(2))
    assert place.found() == [1, 2]


@at(*STEADY)
def test_a_conversion_stops_the_publisher_and_leaves_its_output_to_it(place: Place) -> None:
    """The publisher may have to repeat its last plan, although the conversion has written since."""
    publisher = opened(place.make(), tenure(7))
    publisher.commit("a", place.documents(1))
    conversion = opened(place.make())
    assert conversion.last() == place.document(1).id
    conversion.commit("x", place.documents(2))
    conversion.commit("x", place.documents(2))
    with pytest.raises(OccupiedError):
        publisher.commit("b", place.documents(3))
    with pytest.raises(ConfigError):
        opened(place.make(), tenure(9, "theirs"))
    again = opened(publisher, tenure(9))
    assert again.last() == place.document(2).id
    again.commit("a", place.documents(1))
    again.commit("b", place.documents(3))
    assert place.found() == [1, 2, 3]
    with pytest.raises(OccupiedError):
        conversion.commit("y", place.documents(4))


@owned
def test_who_takes_the_lock_again_knows_what_another_one_wrote_meanwhile(place: Place) -> None:
    """The one that loses the lock and takes it again is the same process with the same sink, and must not go on from what it knew."""
    sink = opened(place.make(), tenure(1))
    sink.commit("a", place.documents(1))
    other = opened(place.make(), tenure(2))
    other.commit("b", place.documents(2))
    other.close()
    again = opened(sink, tenure(3))
    assert again.last() == place.document(2).id
    assert (again.resolve("b").has(place.document(2).id), again.resolve("a").has(place.document(1).id)) == (True, False)
    again.commit("c", place.documents(3))
    assert place.found() == [1, 2, 3]


@at("files", "change files", *LAKES, *STORES)
def test_a_target_that_does_not_say_whose_it_is_is_told_in_a_sentence(place: Place, tmp_path: Path) -> None:
    opened(place.make(), tenure()).commit("a", place.documents(1))
    assert place.spoilt is not None
    place.spoilt()
    with pytest.raises(DataError, match=r"json cannot be read"):
        opened(place.make(), tenure(2))


def test_each_way_to_a_receiver_is_a_sink_by_itself() -> None:
    with ExitStack() as stack:
        place = stack.enter_context(sink_places.http(4))
        sink = opened(place.make(), tenure())
        lanes = sink.capabilities.lanes
        assert len(lanes) == 4
        for number, lane in enumerate(lanes, 1):
            assert list(lane.commit("a", place.documents(number))) == []
        assert place.found() == [1, 2, 3, 4]
        assert sink.last() == place.document(4).id
        opened(place.make(), tenure(2)).commit("b", place.documents(5))
        for lane in lanes:
            with pytest.raises(OccupiedError):
                lane.commit("c", place.documents(6))


def test_documents_whose_marks_are_gone_are_gone_on_from_in_files(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000007.xml").write_bytes(sink_places.xds(7).body)
    (tmp_path / ".eventlog-4711-0.part").write_bytes(b"half")
    with sink_places.files(tmp_path) as place:
        sink = opened(place.make(), tenure())
        assert sink.last() == place.document(7).id
        sink.commit("a", place.documents(8))
        assert place.found() == [7, 8]
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.suffix != ".xml") == ["", ".shown"]
