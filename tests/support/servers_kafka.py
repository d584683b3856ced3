"""Kafka for tests: `broker`, a real one that can be stopped and started, and `mock_cluster`, librdkafka's own stand-in.

The broker listens three times: to everybody, over TLS to clients with a certificate, and over TLS to users with a
password. Who comes without a name may do everything, and so may the client and the user `writer`; others need rights.

`./dev fetch kafka` gets the broker's jars; it runs on the system's Java. EVENTLOG_REQUIRE=kafka makes its absence a failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec import Struct

from eventlog.sinks.kafka.settings import KafkaSettings
from tests.kafka.authority import Authority
from tests.support.fetching import fetched
from tests.support.servers import PATIENCE, absent, found, free_port

QUIET = {"log_level": 0}
USERS = {"writer": "pa55-of-writer", "clerk": "pa55-of-clerk"}
"""Who may log in, by PLAIN and by SCRAM, and with which password."""
LOGINS = "org.apache.kafka.common.security"
_numbers = count(1)


class Found(Struct, frozen=True):
    """A message as a consumer finds it that reads what was committed."""

    key: bytes | None
    value: bytes | None
    partition: int
    headers: tuple[tuple[str, bytes], ...] = ()


class Broker:
    """A broker with KRaft, alone; what it holds stays when it is stopped and started again."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars = jars
        self._folder = folder
        self.servers, self.tls, self.login = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        self.authority = Authority(folder)
        self.writer = self.authority.identity("writer")
        self._process: subprocess.Popen[bytes] | None = None
        self._configure()

    def start(self) -> None:
        """Returns when it answers; at once where it runs already."""
        if self._process is None and not self.began():
            absent("kafka", (self._folder / "broker.log").read_text(errors="replace")[-500:])

    def began(self) -> bool:
        """Whether it answers before it ends: who takes a port that was free a moment ago ends it."""
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(self._java("kafka.Kafka", self._settings), stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        admin = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(KafkaException):
                admin.list_topics(timeout=1)
                return True
        return False

    def stop(self) -> None:
        """Kills it, as a machine that fails does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def topic(self, *, name: str = "", partitions: int = 1, **config: str) -> str:
        """A new topic."""
        name = name or f"t{next(_numbers)}"
        named = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        admin.create_topics([NewTopic(name, partitions, 1, config=named)])[name].result()
        return name

    @property
    def _settings(self) -> Path:
        return self._folder / "server.properties"

    def _java(self, main: str, *arguments: str | Path) -> list[str]:
        java = shutil.which("java") or "java"
        options = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [java, *options, "-cp", f"{self._jars}/*", main, *map(str, arguments)]

    def _configure(self) -> None:
        controller = f"127.0.0.1:{free_port()}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://{controller},TLS://{self.tls},LOGIN://{self.login}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,TLS:SSL,LOGIN:SASL_SSL",
            "log.dirs": str(self._folder / "data"),
            # Who is killed and comes back is a stranger to its controller until the session of the former one is over.
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "5000",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "auto.create.topics.enable": "false",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=writer;User:writer",
            **self._secured(),
        }
        self._settings.write_text("".join([f"{name}={value}\n" for name, value in settings.items()]))
        form = self._java("kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", self._settings)
        for name, password in USERS.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                form += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
        made = subprocess.run(form, capture_output=True, text=True, check=False)
        if made.returncode:
            absent("kafka", made.stderr[-500:])

    def _secured(self) -> dict[str, str]:
        """Whom the two listeners with TLS believe, and who they say that they are."""
        both = self.authority.identity("broker", "127.0.0.1").both
        users = " ".join([f'user_{name}="{password}"' for name, password in USERS.items()])
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.tls.ssl.client.auth": "required",
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.login.plain.sasl.jaas.config": f"{LOGINS}.plain.PlainLoginModule required {users};",
            **{
                f"listener.name.login.scram-sha-{bits}.sasl.jaas.config": f"{LOGINS}.scram.ScramLoginModule required;"
                for bits in (256, 512)
            },
        }


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of the broker and of the registry run in one process, which has them; those of Spark in Spark's."""
    for item in items:
        asked = {"broker", "real_registry"}.intersection(getattr(item, "fixturenames", ()))
        if asked and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real broker, started when the first test asks."""
    if shutil.which("java") is None:
        absent("kafka", "there is no Java that runs it")
    with running(found("kafka", "kafka")) as made:
        yield made


@contextmanager
def running(jars: Path) -> Iterator[Broker]:
    """A broker in a folder of its own, both gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-kafka-"))
    (folder / "again").mkdir()
    made = Broker(jars, folder)
    try:
        if not made.began():
            made.stop()
            made = Broker(jars, folder / "again")
            made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mock_cluster() -> Iterator[str]:
    """The servers of a stand-in inside this process."""
    with stand_in() as servers:
        yield servers


@contextmanager
def stand_in() -> Iterator[str]:
    """The servers of librdkafka's own cluster; it makes topics when they are asked for, and keeps aborted messages."""
    keeper = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, **QUIET})
    brokers = keeper.list_topics(timeout=60).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    keeper.flush(0)


def settings(servers: str, **others: object) -> KafkaSettings:
    """Settings of an output that no other test has."""
    own = {"transactional_id": f"test-{next(_numbers)}-{os.getpid()}", "timeout": 15.0}
    return KafkaSettings(servers=servers, **{**own, **others})  # type: ignore[arg-type]  # each test names what it sets


def consumed(servers: str, topic: str) -> list[Found]:
    """Everything in the topic that was committed."""
    options = {"isolation.level": "read_committed", "enable.partition.eof": True, "group.id": "test", **QUIET}
    consumer = Consumer({"bootstrap.servers": servers, "fetch.wait.max.ms": 20, **options})
    left = set(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
    found: list[Found] = []
    while left:
        message = consumer.poll(60)
        assert message is not None, f"{topic} does not come to an end"
        error = message.error()
        if error is None:
            headers: Any = message.headers() or ()
            found.append(Found(message.key(), message.value(), message.partition() or 0, tuple(headers)))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            left.discard(message.partition() or 0)
    consumer.close()
    return found


def jars_here() -> Path | None:
    """The folder of the broker's jars, where it is there and something can run them."""
    return fetched("kafka") if shutil.which("java") is not None else None


def _cluster_id() -> str:
    """22 characters of Base64, as a cluster's id has them; it must not begin as an option does."""
    import base64

    return "E" + base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")[1:]
