"""Readers that share no code with ours: the SDK of CloudEvents, Standard Webhooks, MongoDB, Debezium and kcat."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import structs
from sqlalchemy import Engine, text

from eventlog.capture.track import track
from eventlog.config.settings import from_settings
from eventlog.core.model import Change, Document, Edit, Op
from eventlog.core.plugins import SinkOrder
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.kafka.sink import KafkaSink
from eventlog.sinks.outputs import FilesOutput
from eventlog.sinks.webhook.plugin import WEBHOOK
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.scripted_server import ScriptedServer, answer
from tests.integration.test_webhook import NEW_SECRET, SECRET, Sent, requests, webhook
from tests.jdbc_sink import TARGET, Worker, jars, sinking
from tests.mongo_handler import classpath, handled
from tests.support.events import SHOP, event_format, shop_changes
from tests.support.logged import run
from tests.support.messages import change, documents, inserted, messages, read_by_both, updated
from tests.support.random_work import KEYS, RandomWork, state, typed
from tests.support.registry_server import RegistryServer
from tests.support.servers import absent, found
from tests.support.servers_kafka import Broker, settings
from tests.support.servers_registry import RealRegistry
from tests.support.told import published, tracked_tables


@pytest.fixture
def libraries() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(found("event-readers", "event-readers")))
        yield


class Later(dt.datetime):
    """The clock of a receiver to whom a request comes six minutes after it was sent."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Later:
        return cls.fromtimestamp(time.time() + 360, tz)


def requests_with(batch: int = 1, **settings: Any) -> list[Sent]:
    """The requests with a history of a table with every type."""
    with ScriptedServer([answer()]) as server:
        output = webhook(server.url, format="cloudevents", cloudevents={"batch_size": batch, **settings})
        config = from_settings({"output": [output]}, {}, origin="a test").output[0]
        form = event_format("cloudevents", batch=batch, array=True)
        sink = WEBHOOK.build(SinkOrder(output=config, format=form))
        for number, made in enumerate(encode(form, shop_changes(), SHOP)):
            if isinstance(made, Document):
                assert not sink.commit(f"p{number}", [made])
        sink.close()
        return requests(server)


def test_signatures_are_accepted_and_a_forged_or_old_one_is_refused(
    libraries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    library: Any = import_module("standardwebhooks.webhooks")
    receiver, [request, *_] = library.Webhook(SECRET), requests_with()
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    assert receiver.verify(request.body, headers) == json.loads(request.body)
    forged = [
        (receiver, request.body.replace(b"goods", b"roads"), headers),
        (receiver, request.body, {**headers, "webhook-id": "another"}),
        (library.Webhook(NEW_SECRET), request.body, headers),
    ]
    for who, body, said in forged:
        with pytest.raises(library.WebhookVerificationError):
            who.verify(body, said)
    with monkeypatch.context() as patch:  # the very same request, replayed
        patch.setattr(library, "datetime", Later)
        with pytest.raises(library.WebhookVerificationError, match="too old"):
            receiver.verify(request.body, headers)


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_sdk_reads_every_event_over_http(libraries: None, mode: str) -> None:
    http: Any = import_module("cloudevents.core.bindings.http")
    events = []
    for request in requests_with(mode=mode):
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        events.append(http.from_http_event(http.HTTPMessage(headers=headers, body=request.body)))
    assert [event.get_type().rpartition(".")[2] for event in events] == [
        *("insert", "update", "refresh", "delete", "truncate")
    ]
    assert len({event.get_id() for event in events}) == 5
    assert events[0].get_data()["after"]["note"] == "Zoë “<&>”\n\U0001f600"
    assert events[0].get_time() is not None


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_sdk_reads_every_event_of_kafka(libraries: None, mode: str) -> None:
    kafka: Any = import_module("cloudevents.core.bindings.kafka")
    form = event_format("cloudevents", topics=True, mode=mode)
    messages = [
        message
        for made in encode(form, shop_changes(), SHOP)
        if isinstance(made, MessagesDocument)
        for message in made.messages
    ]
    events = []
    for message in messages:
        headers = dict(message.headers)
        events.append(kafka.from_kafka_event(kafka.KafkaMessage(headers=headers, key=message.key, value=message.value)))
    assert [event.get_data()["op"] for event in events] == ["insert", "update", "refresh", "delete", "truncate"]


NAMES = ("customer", "amount", "placed_on", "note")
Rows = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classpath(tmp_path_factory.mktemp("handler"))


def values(random: Random) -> dict[str, Any]:
    return {
        "customer": random.choice(["Ada", "Żółć", 'a "b"', ""]),
        "amount": random.choice([None, "19.90", "0.00", "-12345678.91"]),
        "placed_on": random.choice([None, "2024-05-06", "1969-12-31"]),
        "note": random.choice([None, "x" * 200, "\\N"]),
    }


def history(seed: int, length: int) -> tuple[list[Change], Rows]:
    """Whole images of random inserts, updates, some of which change nothing, and deletes; and the rows in the end."""
    random, rows, found = Random(seed), Rows(), list[Change]()
    while len(found) < length:
        key = random.randrange(10)
        old = rows.get(key)
        if old is None:
            new = rows[key] = values(random)
            found.append(change(key, Op.ADD, tuple([Edit(column=name, new=new[name]) for name in NAMES])))
        elif random.random() < 0.3:
            del rows[key]
            found.append(change(key, Op.DELETE, tuple([Edit(column=name, old=old[name]) for name in NAMES])))
        else:
            new = rows[key] = random.choice([values(random), old, {**old, "note": None}])
            edits = tuple([Edit(column=name, old=old[name], new=new[name]) for name in NAMES])
            found.append(change(key, Op.MODIFY, edits))
    return found, rows


def applied(written: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The documents of a collection that takes what the handler says, by their keys."""
    store: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in written:
        if one["does"] == "nothing":
            continue
        key = tuple(one["filter"]["_id"].values())
        if one["does"] == "ReplaceOneModel":
            assert key not in store
            store[key] = {name: value for name, value in one["row"].items() if name != "_id"}
        elif one["does"] == "UpdateOneModel":
            store[key].update(one["row"]["$set"])
        else:
            assert one["does"] == "DeleteOneModel"
            del store[key]
    return store


@pytest.mark.in_turn
def test_what_a_real_log_tells_of_random_work_is_written_as_the_tables_hold_it(
    classes: str, postgresql: Engine, tmp_path: Path
) -> None:
    """From triggers by a publisher to files, in several rounds; with keys that change, NULLs, savepoints and TRUNCATE."""
    tracked_tables(postgresql, Style.IMAGE)
    work = RandomWork(postgresql, Random(20), truncates=True)
    output = FilesOutput(path=str(tmp_path), format="messages", messages=MessageSettings(mode="bare"))
    published(work, output, rounds=3, transactions=20)
    said = [json.loads(line) for file in sorted(tmp_path.glob("*.jsonl")) for line in file.read_text().splitlines()]
    with postgresql.connect() as connection:
        rows = state(connection)
    found = {}
    for table, key in KEYS.items():
        told = [one["value"] for one in said if one["topic"].endswith(table)]
        written = handled(classes, [{"key": key_of(one, key), "value": one} for one in told])
        assert not [one for one in written if "error" in one]
        assert {"ReplaceOneModel", "UpdateOneModel", "DeleteOneModel"} <= {one["does"] for one in written}
        found.update({(table, place): typed(row) for place, row in applied(written).items()})
    assert found == rows
    assert len(rows) > 2


def key_of(message: Mapping[str, Any], key: tuple[str, ...]) -> dict[str, Any]:
    """The document that a converter makes of the key: `avro_key = true` writes it so."""
    return {name: message["data"][name] for name in key}


def test_a_key_that_is_no_document_is_refused_by_it(classes: str) -> None:
    """So the page says which keys it wants."""
    changes, _ = history(seed=1, length=1)
    [one] = messages(changes, mode="bare")
    assert one.key is not None
    [told] = handled(classes, [{"key": one.key.decode(), "value": json.loads(one.value or b"")}])
    assert "Could not convert key" in told["error"]


JSON = {"": "org.apache.kafka.connect.json.JsonConverter", ".schemas.enable": "true"}
SECONDS = 120.0


@pytest.fixture(scope="session")
def sink_jars() -> Path:
    """The connector with all that it needs, or no test: before anything is started."""
    return jars()


def tables_of(engine: Engine, schema: str) -> dict[str, list[Any]]:
    """What stands in the tables of a schema; nothing in those that are not there yet."""
    found = {}
    with engine.connect() as connection:
        for table, key in KEYS.items():
            name = f"{schema}.{table}"
            there = connection.execute(text("SELECT to_regclass(:name)"), {"name": name}).scalar()
            query = f"SELECT * FROM {name} ORDER BY {', '.join(key)}"
            told = connection.execute(text(query)).mappings() if there else ()
            found[table] = [dict(one) for one in told]
    return found


def awaited(worker: Worker, engine: Engine) -> None:
    """Returns once the tables of the sink are those of the source."""
    expected, end = tables_of(engine, "public"), time.monotonic() + SECONDS
    while (there := tables_of(engine, TARGET)) != expected and time.monotonic() < end:
        assert worker.failure is None, worker.failure
        time.sleep(0.2)
    assert there == expected


@pytest.mark.in_turn
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_debezium_s_sink_makes_the_tables_of_what_is_published(
    sink_jars: Path,
    postgresql: Engine,
    broker: Broker,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    encoding: str,
) -> None:
    """Inserts, updates, deletes, changes of the key, TRUNCATE, and a new column."""
    registry: RealRegistry | None = None
    if encoding == "avro":
        registry = request.getfixturevalue("real_registry")
    form: Any = {"schemas": True} if registry is None else {"encoding": "avro"}
    login: Any = {} if registry is None else {"registry": registry.url, "registry_timeout": 30.0}
    converter = JSON if registry is None else avro_of(registry)
    found = settings(
        broker.servers,
        transactional_id=f"sunk-{encoding}",
        create_topics=True,
        **login,
    )
    name = f"sunk.{encoding}"
    events = DebeziumSettings(topic=f"{name}.{{table}}", transaction_topic=f"tx.{encoding}", **form)
    output = KafkaOutput(**structs.asdict(found) | {"format": "debezium", "debezium": events})
    tracked_tables(postgresql, Style.IMAGE)
    run(postgresql, f"CREATE SCHEMA {TARGET}")
    work = RandomWork(postgresql, Random(41), truncates=True)
    published(work, output, rounds=1, transactions=5)
    with sinking(sink_jars, tmp_path, broker.servers, postgresql, converter, name) as worker:
        awaited(worker, postgresql)
        published(work, output, rounds=3, transactions=15)
        awaited(worker, postgresql)
        run(postgresql, "ALTER TABLE item ADD COLUMN extra VARCHAR(20)")
        track(postgresql, ["item"], TriggerOptions(style=Style.IMAGE))
        run(postgresql, "INSERT INTO item (id, extra) VALUES (90, 'ü'), (91, NULL)")
        published(work, output, rounds=1, transactions=0)
        awaited(worker, postgresql)
    assert {row["id"]: row["extra"] for row in tables_of(postgresql, TARGET)["item"]}[90] == "ü"
    assert any(tables_of(postgresql, TARGET).values())


def avro_of(registry: RealRegistry) -> dict[str, str]:
    """A converter that finds schemas by the numbers that the registry gives as Confluent's does."""
    return {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        ".apicurio.registry.url": f"{registry.root}/apis/registry/v2",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
    }


CHANGES = [
    inserted(1, customer="Ada", amount="19.90", placed_on="1969-12-31", note="a\0b\n"),
    updated(1, customer=("Ada", "Żółć")),
    change(1, Op.DELETE),
]


def fetched(servers: str, topic: str, *options: str) -> list[tuple[str, bytes]]:
    """Keys and values as kcat prints them: the length of each value says where it ends, whatever is in it."""
    kcat = shutil.which("kcat")
    if kcat is None:
        absent("kafka", "there is no kcat")
    given = [word for option in ("isolation.level=read_committed", *options) for word in ("-X", option)]
    command = [kcat, "-m", "60", "-b", servers, "-t", topic, "-C", "-e", "-q", "-f", "%k %S %s", *given]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return list(_parts(done.stdout))


def _parts(printed: bytes) -> Iterator[tuple[str, bytes]]:
    while printed:
        key, size, rest = printed.split(b" ", 2)
        yield key.decode(), rest[: int(size)]
        printed = rest[int(size) :]


def data_messages(
    topic: str, about: str, servers: str, mode: str, encoding: str, numbered: list[str]
) -> list[dict[str, Any]]:
    """The data messages in the topic, read with nothing but what a consumer has: the topics, and the schemas that a registry has numbered."""
    values = [value for _, value in fetched(servers, topic)]
    if mode == "registry":
        return [read_by_both(numbered[int.from_bytes(one[1:5], "big") - 1], one[5:]) for one in values]
    if encoding == "json":
        found = [msgspec.json.decode(one) for one in values]
        return found if mode == "bare" else [one["message"] for one in found]
    envelopes = [read_by_both(text_of(ENVELOPE), one) for one in values]
    [(_, told)] = fetched(servers, about)
    envelope = read_by_both(text_of(ENVELOPE), told)
    metadata = read_by_both(envelope["messageSchema"], envelope["message"])
    assert {one["messageSchemaId"] for one in envelopes} == {metadata["schemaId"]}
    return [read_by_both(metadata["dataSchema"], one["message"]) for one in envelopes]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "mode, encoding",
    [("bare", "json"), ("envelope", "json"), ("metadata", "json"), ("metadata", "avro"), ("registry", "avro")],
)
def test_kcat_reads_what_was_written(broker: Broker, mode: str, encoding: str) -> None:
    topic, about = broker.topic(), broker.topic()
    how: dict[str, Any] = {"mode": mode, "encoding": encoding, "topic": topic, "metadata_topic": about}
    with RegistryServer() as registry, closing(KafkaSink(settings(broker.servers, **registry.login))) as sink:
        assert list(sink.commit("", documents(CHANGES, **how))) == []
    found = data_messages(topic, about, broker.servers, mode, encoding, registry.schemas)
    assert [one["headers"]["operation"] for one in found] == ["INSERT", "UPDATE", "DELETE"]
    row = found[0]["data"]
    assert (row["customer"], row["amount"], row["placed_on"], row["note"]) == ("Ada", "19.90", "1969-12-31", "a\0b\n")
    assert (found[1]["data"]["customer"], found[1]["beforeData"]["customer"]) == ("Żółć", "Ada")
    assert [key for key, _ in fetched(broker.servers, topic)] == ["1"] * 3
