"""How fast changes become messages, in JSON and in Avro, and how fast they reach a broker on this machine."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import count, islice
from typing import Any

from confluent_kafka import Producer

from bench.broker import local_broker
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.core.model import Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.messages import CountedMessages

PROMISED = 150_000
OF_FASTAVRO = 0.5
OF_BARE = 0.6
CHUNK = 50
"""Documents in one transaction; a broker's commit costs the same for few messages and for many."""
COLUMNS = ("fname", "lname", "mail", "phone", "city", "title")
UPDATED = 2
TABLE = Table(
    schema="indirect",
    name="usr",
    columns=(Column(name="idu", type="integer", key=1), *(Column(name=n, type="varchar(64)") for n in COLUMNS)),
)
CATALOG = Catalog([TABLE])


def benchmark(*, quick: bool) -> Benchmark:
    """From changes in memory to the values of messages, and from there to a broker that is started for it."""
    size = 1_000 if quick else 100_000
    made = list(changes(size))
    images = list(changes(size, whole=True))
    sent = [document.messages for document in encoded(made, "json")]
    schema, records = _records(made)
    contestants = [
        Contestant(name="JSON", run=partial(_encode, made, "json"), units=size),
        Contestant(name="JSON, whole images", run=partial(_encode, images, "json"), units=size),
        Contestant(name="Avro", run=partial(_encode, made, "avro"), units=size),
        Contestant(name="fastavro.schemaless_writer", run=partial(_fastavro, schema, records), units=size),
    ]
    servers = local_broker("indirect.usr")
    if servers is not None:
        pairs = [(message.topic, message.value, message.key) for messages in sent for message in messages]
        ready = _Ready(servers, list(encoded(made, "json")))
        contestants += [
            Contestant(name="bare producer", run=partial(_bare, servers, pairs), units=size, floor=True),
            Contestant(name="the Kafka sink", run=ready.send, prepare=ready.connect, units=size),
            Contestant(name="changes to the broker", run=partial(_published, servers, made), units=size),
        ]
    return Benchmark(
        name="messages",
        question="how fast do changes become messages, and reach Kafka?",
        unit="message",
        contestants=contestants,
        targets=partial(_targets, with_broker=servers is not None),
        note=(
            f"Each object is inserted ({len(COLUMNS)} columns) and updated ({UPDATED} of them, old and new values noted);"
            " whole images hold all columns before and after. fastavro writes the same records from dictionaries that are"
            " ready. The bare producer sends the same bytes with the same settings: idempotent, acknowledged by all, but"
            " neither transactions nor marks. The sink has documents that are ready, 25,000 messages to a transaction."
            " From changes to the broker, the next batch is encoded while one is delivered, as the publisher does. All"
            " stay connected from run to run, and send to Apache Kafka on this machine, which shares its cores."
        ),
    )


def changes(number: int, *, whole: bool = False) -> Iterator[Change]:
    """Objects that are inserted and then updated, four changes to a transaction."""
    time = dt.datetime(2025, 3, 23, 10, 57, 19)
    transaction = Transaction(id=0, time=time)
    for place in range(number):
        if place % 4 == 0:
            transaction = Transaction(id=place, time=time)
        idu, again = divmod(place, 2)
        yield Change(
            row=RowId("indirect", "usr", f"idu={idu}"),
            op=Op.MODIFY if again else Op.ADD,
            edits=_updated(place, whole=whole) if again else _inserted(place),
            positions=((place + 1,),),
            time=time,
            whole=whole,
            transaction=transaction,
        )


def encoded(made: Sequence[Change], encoding: Any, after: str = "") -> Iterator[MessagesDocument]:
    """The documents of the changes."""
    form = CountedMessages(settings=MessageSettings(encoding=encoding), body=False)
    for document in encode(form, made, CATALOG, after):
        assert isinstance(document, MessagesDocument)
        yield document


def _inserted(place: int) -> tuple[Edit, ...]:
    return tuple([Edit(column=name, new=f"new {place}") for name in COLUMNS])


def _updated(place: int, *, whole: bool) -> tuple[Edit, ...]:
    old = f"new {place - 1}"
    changed = [Edit(column=name, old=old, new=f"newer {place}") for name in COLUMNS[:UPDATED]]
    same = [Edit(column=name, old=old, new=old) for name in COLUMNS[UPDATED:]] if whole else []
    return (*changed, *same)


def _encode(made: Sequence[Change], encoding: str) -> int:
    return sum(len(message.value or b"") for document in encoded(made, encoding) for message in document.messages)


def _records(made: Sequence[Change]) -> tuple[Any, list[Any]]:
    import fastavro

    schema = fastavro.parse_schema(shape_of(TABLE, MessageSettings(encoding="avro")).data_schema)
    values = [message.value or b"" for document in encoded(made, "avro") for message in document.messages]
    return schema, [fastavro.schemaless_reader(io.BytesIO(value), schema, None) for value in values]


def _fastavro(schema: Any, records: Sequence[Any]) -> int:
    import fastavro

    written = 0
    for record in records:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, record)
        written += len(stream.getvalue())
    return written


def _bare(servers: str, pairs: Sequence[tuple[str, bytes | None, bytes | None]]) -> int:
    producer = _producer(servers)
    for topic, value, key in pairs:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    return len(pairs)


class _Ready:
    """Documents that are ready, for a sink that has none of them yet."""

    def __init__(self, servers: str, documents: list[MessagesDocument]) -> None:
        self._servers = servers
        self._documents = documents
        self._numbers = count(1)
        self._sink: KafkaSink | None = None

    def connect(self) -> None:
        """Another output, which has nothing."""
        self.close()
        name = f"bench-{next(self._numbers)}"
        self._sink = KafkaSink(KafkaSettings(servers=self._servers, transactional_id=name))
        self._sink.open(None)

    def send(self) -> None:
        """All of them, a batch in a transaction."""
        assert self._sink is not None
        for start in range(0, len(self._documents), CHUNK):
            assert not self._sink.commit("", self._documents[start : start + CHUNK])

    def close(self) -> None:
        """Ends the former output."""
        if self._sink is not None:
            self._sink.close()


def _published(servers: str, made: Sequence[Change]) -> int:
    """As the publisher goes about it: while one batch is delivered, the next one is encoded."""
    sink = _sink(servers)
    documents = encoded(made, "json", sink.last())
    number = 0
    with ThreadPoolExecutor(1) as beside:
        coming = beside.submit(_batch, documents)
        while batch := coming.result():
            coming = beside.submit(_batch, documents)
            assert not sink.commit("", batch)
            number += sum(len(document.messages) for document in batch)
    return number


def _batch(documents: Iterator[MessagesDocument]) -> list[MessagesDocument]:
    return list(islice(documents, CHUNK))


@cache
def _producer(servers: str) -> Producer:
    """A producer that stays connected, as the sink does."""
    settings = {"enable.idempotence": True, "partitioner": "murmur2_random", "log_level": 2}
    return Producer({"bootstrap.servers": servers, **settings})


@cache
def _sink(servers: str) -> KafkaSink:
    sink = KafkaSink(KafkaSettings(servers=servers, transactional_id="bench"))
    sink.open(None)
    return sink


def _targets(timings: Timings, *, with_broker: bool) -> list[Target]:
    json, avro, fast = timings["JSON"].rate, timings["Avro"].rate, timings["fastavro.schemaless_writer"].rate
    found = [
        Target(
            promise=f"{PROMISED:,} messages/s in JSON on one core",
            measured=f"{json:,.0f} messages/s",
            reached=json >= PROMISED,
        ),
        Target(
            promise=f"Avro at {OF_FASTAVRO:g} times the rate of fastavro's bare writer",
            measured=f"{avro / fast:.2f} times",
            reached=avro >= OF_FASTAVRO * fast,
        ),
    ]
    if with_broker:
        share = timings["the Kafka sink"].rate / timings["bare producer"].rate
        found.append(
            Target(
                promise=f"the sink into a broker at {OF_BARE:g} times the rate of a bare producer that sends the same bytes",
                measured=f"{share:.2f} times",
                reached=share >= OF_BARE,
            )
        )
    return found
