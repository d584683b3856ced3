"""Where sinks under test put their documents: each with its documents, and with what a consumer finds there."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace
from obstore.store import MemoryStore
from sqlalchemy import Engine, create_engine, inspect, text

from eventlog.core.model import Document, Op
from eventlog.core.seams import Sink, encode
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sinks.files import FileSink
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.receiver import ReceivedDocument, Receiver
from eventlog.sinks.http.sink import HttpSink
from eventlog.sinks.kafka.sink import KafkaSink
from eventlog.sinks.lake.sink import LakeSink
from eventlog.sinks.stdout import StdoutSink
from eventlog.sinks.store.objects import Bucket
from eventlog.sinks.store.plans import HIDDEN, POSITION, StoredPlans
from tests.support import changerows, messages
from tests.support.lakes import LAKES, Mode
from tests.support.servers_kafka import consumed, settings
from tests.support.sinks import broken

AT = "2024050607080912"
"""The time in a change_seq of the changes of tests."""

_number = re.compile(rb'event-id="(\d+)"')


class Place(Struct, frozen=True, kw_only=True):
    """A target of documents. `breaking` lets a sink break off when it does its work for the so manieth time."""

    make: Callable[[], Sink]
    document: Callable[[int], Document]
    found: Callable[[], list[int]]
    breaking: Callable[[int], Any]
    left: Callable[[], list[str]] = list
    """What is hidden there."""
    spoilt: Callable[[], Any] | None = None
    """Damages what says whose the target is, or how far it is."""

    def documents(self, *numbers: int) -> list[Document]:
        return [self.document(number) for number in numbers]


class CutError(Exception):
    """The power goes."""


def xds(number: int) -> Document:
    """Make a document with one event, the number's."""
    body = b'<nds><input><add event-id="%d"/></input></nds>' % number
    return Document(id=f"{number:020d}", body=body, covers={str(number): ((number,),)})


def row(number: int) -> Document:
    """Make a document of change tables."""
    [made] = changerows.documents(changerows.told(number, Op.ADD, number, fname="Ada"), after=_seq(number - 1))
    return made


def message(number: int, topic: str = "t") -> Document:
    """Make a document of messages, with its body."""
    form = MessageFormat(settings=MessageSettings(topic=topic, key="table"), body=True)  # one partition, one order
    [made] = encode(form, [messages.inserted(number, customer="Ada")], messages.CATALOG, _seq(number - 1))
    assert isinstance(made, Document)
    return made


def _seq(number: int) -> str:
    return f"{AT}{number:019d}"


@contextmanager
def files(folder: Path) -> Iterator[Place]:
    yield Place(
        make=lambda: FileSink(folder, ".xml"),
        document=xds,
        found=lambda: [_number_of(path.read_bytes()) for path in sorted(folder.glob("*.xml"))],
        breaking=lambda at: broken(Path, "replace", at, CutError()),
        spoilt=lambda: _spoilt(folder / ".eventlog"),
    )


@contextmanager
def routed_files(folder: Path) -> Iterator[Place]:
    """Put each document into a folder of its own, except each third."""

    def document(number: int) -> Document:
        return replace(xds(number), route="" if number % 3 == 0 else f"r{number % 3}")

    yield Place(
        make=lambda: FileSink(folder, ".xml"),
        document=document,
        found=lambda: sorted(_number_of(path.read_bytes()) for path in folder.rglob("*.xml")),
        breaking=lambda at: broken(Path, "replace", at, CutError()),
    )


@contextmanager
def message_files(folder: Path) -> Iterator[Place]:
    def found() -> list[int]:
        return [_order_of(path.read_bytes()) for path in sorted(folder.glob("*.jsonl"))]

    yield Place(
        make=lambda: FileSink(folder, ".jsonl"),
        document=message,
        found=found,
        breaking=lambda at: broken(Path, "replace", at, CutError()),
    )


@contextmanager
def change_files(folder: Path) -> Iterator[Place]:
    def found() -> list[int]:
        paths = sorted(folder.rglob("*.parquet"))
        return [row["idu"] for path in paths for row in pq.ParquetFile(path).read().to_pylist()]

    def spoilt() -> None:
        (folder / "_position.json").write_text("{")

    yield Place(
        make=lambda: ChangeTableFiles(folder),
        document=row,
        found=found,
        breaking=lambda at: broken(Path, "replace", at, CutError()),
        spoilt=spoilt,
    )


@contextmanager
def lake(kind: str, folder: Path | str, mode: Mode = "append", **chosen: Any) -> Iterator[Place]:
    """Make tables of a lake in a folder or at an address."""
    made = LAKES[kind](folder, mode, **chosen)
    yield Place(
        make=lambda: LakeSink(made.settings, made.tables()),
        document=row,
        found=lambda: made.keys("usr" if mode == "mirror" else "usr__ct"),
        breaking=lambda at: broken(type(made.tables()), "_put_rows", at, CutError()),
        spoilt=lambda: (Path(folder) / "_eventlog" / "eventlog" / "_position.json").write_text("{"),
    )


def _stored(objects: Bucket, kind: Callable[[StoredPlans], Sink], document: Callable[[int], Document]) -> Place:
    """Make a place in an object store."""

    def found() -> list[int]:
        return [number for name in sorted(objects.names()) for number in _numbers_of(name, objects)]

    return Place(
        make=lambda: kind(StoredPlans(objects, ordered=document is not row)),
        document=document,
        found=found,
        breaking=lambda at: broken(Bucket, "copy", at, CutError()),
        left=lambda: sorted(objects.names(HIDDEN)),
        spoilt=lambda: objects.put(POSITION, b"{"),
    )


def _numbers_of(name: str, objects: Bucket) -> list[int]:
    found = objects.read(name) if name.endswith((".xml", ".parquet")) else None
    if found is None:
        return []
    if name.endswith(".xml"):
        return [_number_of(found.content)]
    return [one["idu"] for one in pq.ParquetFile(io.BytesIO(found.content)).read().to_pylist()]


@contextmanager
def stored_files(objects: Bucket | Path) -> Iterator[Place]:
    """Make a place for documents in an object store; in memory for a path."""
    yield _stored(_objects(objects), lambda plans: FileSink(plans, ".xml"), xds)


@contextmanager
def stored_change_files(objects: Bucket | Path) -> Iterator[Place]:
    yield _stored(_objects(objects), ChangeTableFiles, row)


def _objects(place: Bucket | Path) -> Bucket:
    return place if isinstance(place, Bucket) else Bucket(MemoryStore(), f"memory://{place.name}")


@contextmanager
def database(engine: Engine) -> Iterator[Place]:
    """Give each sink its own connections, as each publisher has."""
    made = ExitStack()

    def another() -> DatabaseSink:
        own = create_engine(engine.url)
        return made.enter_context(closing(DatabaseSink(DatabaseSettings(url=""), own)))

    def found() -> list[int]:
        with engine.connect() as connection:
            if not inspect(connection).has_table("usr__ct"):
                return []
            numbers = connection.execute(text("SELECT idu FROM usr__ct ORDER BY header__change_seq, idu"))
            return [int(number) for (number,) in numbers]

    with made:
        yield Place(
            make=another,
            document=row,
            found=found,
            breaking=lambda at: broken(DatabaseSink, "_put_rows", at, CutError()),
        )


@contextmanager
def http(connections: int = 1) -> Iterator[Place]:
    """Run a receiver; report documents arriving for the first time."""
    came: list[int] = []

    def told(delivery: ReceivedDocument) -> None:
        if not delivery.repeated:
            came.append(_number_of(delivery.body))

    receiver = Receiver(told)
    own = HttpSettings(url=receiver.url, connections=connections)
    Thread(target=receiver.serve, daemon=True).start()
    with ExitStack() as made:
        made.callback(receiver.stop)
        yield Place(
            make=lambda: made.enter_context(closing(HttpSink(own))),
            document=xds,
            found=lambda: list(came),
            breaking=lambda at: broken(HttpSink, "_send", at, CutError()),
        )


@contextmanager
def kafka(servers: str, topic: str, *, told: bool = False) -> Iterator[Place]:
    """Make a topic of XDS, or of messages."""
    own = settings(servers, topic=topic)
    with ExitStack() as made:
        yield Place(
            make=lambda: made.enter_context(closing(KafkaSink(own))),
            document=(lambda number: message(number, topic)) if told else xds,
            found=lambda: [_of(one.value or b"") for one in consumed(servers, topic)],
            breaking=lambda at: broken(KafkaSink, "_commit", at, CutError()),
        )


@contextmanager
def stdout() -> Iterator[Place]:
    stream = io.BytesIO()
    yield Place(
        make=lambda: StdoutSink(stream),
        document=xds,
        found=lambda: [_number_of(line) for line in stream.getvalue().splitlines()],
        breaking=lambda at: broken(StdoutSink, "commit", at, CutError()),
    )


def _of(body: bytes) -> int:
    return _number_of(body) if body.startswith(b"<") else _order_of(body)


def _number_of(body: bytes) -> int:
    [found] = _number.findall(body)
    return int(found)


def _order_of(body: bytes) -> int:
    told = msgspec.json.decode(body)
    number: int = told.get("value", told)["data"]["order_id"]
    return number


def _spoilt(owners: Path) -> None:
    for path in owners.iterdir():
        path.write_text("{")
