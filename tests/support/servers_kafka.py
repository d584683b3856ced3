"""Kafka for tests: `broker`, a real one that can be stopped and started, and `mock_cluster`, librdkafka's own stand-in.

The broker listens three times: to everybody, over TLS to clients with a certificate, and over TLS to users with a
password. Who comes without a name may do everything, and so may the client and the user `writer`; others need rights.

`./dev fetch kafka` gets the broker's jars, which run on the system's Java; without them it runs in a container, with the same
settings, where an engine answers. EVENTLOG_REQUIRE=kafka makes its absence a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec import Struct

from eventlog.sinks.kafka.settings import KafkaSettings
from tests.kafka.authority import Authority
from tests.support.fetching import fetched
from tests.support.servers import PATIENCE, absent, containers_answer, found, free_port

QUIET = {"log_level": 0}
USERS = {"writer": "pa55-of-writer", "clerk": "pa55-of-clerk"}
"""Who may log in, by PLAIN and by SCRAM, and with which password."""
IMAGE: Final = "apache/kafka:3.9.0"
"""That of the tour."""

LOGINS = "org.apache.kafka.common.security"
_numbers = count(1)


class Found(Struct, frozen=True):
    """A message as a consumer finds it that reads what was committed."""

    key: bytes | None
    value: bytes | None
    partition: int
    headers: tuple[tuple[str, bytes], ...] = ()


class Program(Protocol):
    """Kafka's own programs: on this machine, or in a container that sees the broker's folder and the machine's ports."""

    def ended(self, main: str, *arguments: str) -> str:
        """Return the output of a failed program; empty if it succeeded."""

    def start(self, arguments: Sequence[str], log: Path) -> None:
        """Starts the broker."""

    def runs(self) -> bool: ...
    def kill(self) -> None: ...


JAVA_OPTIONS: Final = ("-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class JavaProgram:
    """The jars on this machine's Java."""

    def __init__(self, jars: Path) -> None:
        self._command = [shutil.which("java") or "java", *JAVA_OPTIONS, "-cp", f"{jars}/*"]
        self._process: subprocess.Popen[bytes] | None = None

    def ended(self, main: str, *arguments: str) -> str:
        done = subprocess.run([*self._command, main, *arguments], capture_output=True, text=True, check=False)
        return done.stderr[-500:] if done.returncode else ""

    def start(self, arguments: Sequence[str], log: Path) -> None:
        with log.open("ab") as said:
            self._process = subprocess.Popen([*self._command, *arguments], stdout=said, stderr=said)

    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class PackedProgram:
    """The jars of the image that Apache gives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "broker.log"
        self._broker: Any = None

    def ended(self, main: str, *arguments: str) -> str:
        made = self._container([main, *arguments])
        try:
            status = made.get_wrapped_container().wait()["StatusCode"]
            return b"".join(made.get_logs()).decode(errors="replace")[-500:] if status else ""
        finally:
            made.stop()

    def start(self, arguments: Sequence[str], log: Path) -> None:
        self._broker, self._log = self._container(arguments), log

    def runs(self) -> bool:
        if self._broker is None:
            return False
        container = self._broker.get_wrapped_container()
        container.reload()
        is_running = bool(container.status == "running")
        if not is_running:
            self._log.write_bytes(container.logs())
        return is_running

    def kill(self) -> None:
        if self._broker is not None:
            self._broker.stop(force=True)
            self._broker = None

    def _container(self, arguments: Sequence[str]) -> Any:
        from testcontainers.core.container import DockerContainer

        packed = DockerContainer(IMAGE, entrypoint=["java"], network_mode="host", user=str(os.getuid()))
        packed = packed.with_volume_mapping(str(self._folder), str(self._folder), "rw")
        return packed.with_command([*JAVA_OPTIONS, "-cp", "/opt/kafka/libs/*", *arguments]).start()


class Broker:
    """A broker with KRaft, alone; what it holds stays when it is stopped and started again."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self.servers, self.tls, self.login = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        self.authority = Authority(folder)
        self.writer = self.authority.identity("writer")
        self._configure()

    def start(self) -> None:
        """Returns when it answers; at once where it runs already."""
        if not self._program.runs() and not self.began():
            absent("kafka", (self._folder / "broker.log").read_text(errors="replace")[-500:])

    def began(self) -> bool:
        """Start it; return True once it answers, False if it ends: its port may have been taken."""
        self._program.start(["kafka.Kafka", str(self._settings)], self._folder / "broker.log")
        deadline = time.monotonic() + PATIENCE
        admin = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        while self._program.runs() and time.monotonic() < deadline:
            with suppress(KafkaException):
                admin.list_topics(timeout=1)
                return True
        return False

    def stop(self) -> None:
        """Kills it, as a machine that fails does."""
        self._program.kill()

    def topic(self, *, name: str = "", partitions: int = 1, **config: str) -> str:
        """Create a topic."""
        name = name or f"t{next(_numbers)}"
        named = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.servers, **QUIET})
        admin.create_topics([NewTopic(name, partitions, 1, config=named)])[name].result()
        return name

    @property
    def _settings(self) -> Path:
        return self._folder / "server.properties"

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
        form = ["format", "-t", _cluster_id(), "-c", str(self._settings)]
        for name, password in USERS.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                form += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
        if said := self._program.ended("kafka.tools.StorageTool", *form):
            absent("kafka", said)

    def _secured(self) -> dict[str, str]:
        """Return the certificates and trusted authorities of the two TLS listeners."""
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
    """Run all tests of the broker and the registry in one process; those of Spark in Spark's."""
    for item in items:
        asked = {"broker", "real_registry"}.intersection(getattr(item, "fixturenames", ()))
        if asked and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Start a real broker at the first use."""
    if jars_here() is None and containers_answer():
        with running(PackedProgram) as made:
            yield made
        return
    if shutil.which("java") is None:
        absent("kafka", "there is no Java that runs it")
    jars = found("kafka", "kafka")
    with running(lambda _folder: JavaProgram(jars)) as made:
        yield made


@contextmanager
def running(program: Callable[[Path], Program]) -> Iterator[Broker]:
    """Run a broker in a folder of its own; remove both afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-kafka-"))
    (folder / "again").mkdir()
    made = Broker(program(folder), folder)
    try:
        if not made.began():
            made.stop()
            made = Broker(program(folder / "again"), folder / "again")
            made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mock_cluster() -> Iterator[str]:
    """Start a stand-in cluster inside this process."""
    # One for each test: it draws its producers' numbers from 900,000 at random, and two of hundreds
    # in one stand-in would get the same number now and then.
    with stand_in() as servers:
        yield servers


@contextmanager
def stand_in() -> Iterator[str]:
    """Start librdkafka's own cluster; it creates topics on demand and keeps aborted messages."""
    keeper = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, **QUIET})
    brokers = keeper.list_topics(timeout=60).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    keeper.flush(0)


def settings(servers: str, **others: object) -> KafkaSettings:
    """Return settings of an output no other test has."""
    own = {"transactional_id": f"test-{next(_numbers)}-{os.getpid()}", "timeout": 15.0}
    return KafkaSettings(servers=servers, **{**own, **others})  # type: ignore[arg-type]  # each test names what it sets


def consumed(servers: str, topic: str) -> list[Found]:
    """Read all committed messages of the topic."""
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
    """Return the folder of the broker's jars, if they can run."""
    return fetched("kafka") if shutil.which("java") is not None else None


def _cluster_id() -> str:
    """22 characters of Base64, as a cluster's id has them; it must not begin as an option does."""
    import base64

    return "E" + base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")[1:]
