"""Spark's image as a cluster: a master and two workers that share no folder convert a backlog from PostgreSQL to an object store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from xml.etree import ElementTree as ET

import pytest

from tests.containers.touring import PROJECT, Tour, until
from tests.support.containers import EngineError
from tests.support.servers import found, free_port

pytestmark = pytest.mark.containers

ROWS: Final = 30_000
URL: Final = "postgresql+psycopg://eventlog:tour@postgres/app"
NETWORK: Final = f"{PROJECT}_default"
PYTHON: Final = "docker.io/library/python:3.11-slim-bookworm"
DESTINATION: Final = "s3a://bucket/documents"
BATCH: Final = "documents/batch-00000000/"
BACKLOG: Final = f"""
INSERT INTO usr SELECT n, 'Jack', 'Frost' || n FROM generate_series(1, {ROWS}) AS n;
INSERT INTO usr_phone SELECT n, '555-' || n FROM generate_series(1, {ROWS}, 3) AS n;
UPDATE usr SET lname = 'Thaw' WHERE idu % 5 = 0;
DELETE FROM usr WHERE idu % 7 = 0;
"""
CONF: Final = {
    "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104  # of a container
    "spark.driver.memory": "1g",
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    # An executor that does not even close its connection counts as lost after half a minute, and not after two.
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "10s",
    "spark.executor.heartbeatInterval": "5s",
    "spark.hadoop.fs.s3a.endpoint": "http://s3:5000",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.connection.expect.continue": "false",  # moto answers 100 to whoever expects that
    "spark.hadoop.fs.s3a.input.stream.type": "classic",
    "spark.hadoop.fs.s3a.access.key": "test",
    "spark.hadoop.fs.s3a.secret.key": "test",
}

SIGNED: Final = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=of-nobody"
)
"""moto gives an object to whoever says that he has signed, and does not look at the signature."""


class Store:
    """A server that speaks S3, in a container of the tour's network; this machine asks it too."""

    def __init__(self, tour: Tour) -> None:
        self._port = free_port()
        self.container = tour.engine.start(
            PYTHON,
            *("/usr/local/bin/python", "-m", "moto.server", "-H", "0.0.0.0", "-p", "5000"),  # noqa: S104  # of a container
            options=(
                *("--network", NETWORK, "--name", "s3", "--publish", f"127.0.0.1:{self._port}:5000"),
                *("--volume", f"{found('s3', 'moto')}:/moto:ro", "-e", "PYTHONPATH=/moto", "-e", "HOME=/tmp"),
            ),
        )
        until(lambda: self._asked("bucket", "PUT") is not None, 60, "the object store does not answer")

    def names(self, prefix: str) -> list[str]:
        """What is kept below a prefix."""
        told = ET.fromstring(self._asked(f"bucket?list-type=2&prefix={prefix}") or b"<a/>")  # noqa: S314  # our own server's
        return [one.text or "" for one in told.iter() if one.tag.endswith("}Key")]

    def read(self, name: str) -> bytes:
        content = self._asked(f"bucket/{name}")
        assert content is not None, name
        return content

    def _asked(self, path: str, method: str = "GET") -> bytes | None:
        request = Request(f"http://127.0.0.1:{self._port}/{path}", method=method)  # an address of this machine
        request.add_header("Authorization", SIGNED)
        try:
            with urlopen(request, timeout=30) as answer:  # noqa: S310  # as above
                content: bytes = answer.read()
                return content
        except HTTPError:
            raise
        except OSError:
            return None  # it has not begun


class Cluster:
    """The tour's master and workers, and drivers in containers of their own."""

    def __init__(self, tour: Tour, jars: Path) -> None:
        self.tour = tour
        self._jars = jars
        self._page = free_port()

    def convert(self, driver: str) -> str:
        """What the conversion of the backlog says in the end: to an address the rows of a log go batch by batch."""
        jars = ",".join(f"/s3/{file.name}" for file in sorted(self._jars.glob("*.jar")))
        conf = {**CONF, "spark.jars": jars, "spark.driver.host": driver}
        settings = [word for name, entry in conf.items() for word in ("--conf", f"{name}={entry}")]
        place = ("--network", NETWORK, "--no-healthcheck", "--volume", f"{self._jars}:/s3:ro")
        reached = ("--name", driver, "--hostname", driver, "--publish", f"127.0.0.1:{self._page}:4040")
        return self.tour.engine.do(
            *(
                "run",
                "--rm",
                *place,
                *reached,
                "eventlog-spark",
                "eventlog",
                "convert",
                "follow",
                URL,
                "--out",
                DESTINATION,
            ),
            *("--until-empty", "--master", "spark://spark-master:7077", *settings),
            seconds=400,
            both=True,
        )

    def alive(self) -> int:
        """How many workers the master knows of."""
        with urlopen(f"http://127.0.0.1:{self.tour.ports['spark-master']}/json/", timeout=10) as answer:
            return int(json.load(answer)["aliveworkers"])

    def busy(self) -> list[str]:
        """The containers of workers that have a task in hand, as the driver's page says."""
        try:
            [application] = self._asked("applications")
            executors = self._asked(f"applications/{application['id']}/executors")
        except (OSError, ValueError):  # the driver has not begun
            return []
        hosts = {
            one["hostPort"].rpartition(":")[0] for one in executors if one["id"] != "driver" and one["activeTasks"]
        }
        address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        workers = self.tour.container("spark-worker").split()
        return [worker for worker in workers if self.tour.engine.inspect(worker, address) in hosts]

    def _asked(self, path: str) -> list[dict[str, Any]]:
        with urlopen(f"http://127.0.0.1:{self._page}/api/v1/{path}", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
            return found


@pytest.fixture
def cluster(tour: Tour, spark_image: str) -> Cluster:
    """Two workers that nobody shares a folder with, and a backlog that nobody publishes."""
    tour.write({name: {"volumes": None} for name in ("spark-master", "spark-worker")})
    tour.compose("up", "--detach", "--scale", "spark-worker=2", "postgres", "spark-worker", profiles=("spark",))
    tour.once("prepare", "eventlog install; eventlog track usr --child usr_phone")
    for statement in BACKLOG.strip().splitlines():
        tour.psql(statement)
    begun = Cluster(tour, found("s3", "s3"))
    until(lambda: begun.alive() == 2, 120, "the workers do not come")
    return begun


@pytest.fixture
def store(cluster: Cluster) -> Iterator[Store]:
    begun = Store(cluster.tour)
    yield begun
    cluster.tour.engine.remove(begun.container)


def test_a_backlog_arrives_though_the_driver_and_a_worker_are_killed(cluster: Cluster, store: Store) -> None:
    """Each of them while a task of the conversion is in a worker's hands; who was killed as a driver begins again."""
    kill = partial(cluster.tour.engine.do, "kill")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cluster.convert, "first")
        until_busy(cluster, first)
        kill("first")
        with pytest.raises(EngineError, match="137"):
            first.result(60)
        assert store.names(f"{BATCH}_SUCCESS") == []
        second = pool.submit(cluster.convert, "second")  # of another name: JVMs remember where the first one was
        kill(until_busy(cluster, second))
        assert "batch-00000000" in second.result(400)
    assert store.names("documents/batch-00000001") == []
    parts = [name for name in store.names(BATCH) if name.endswith(".xml")]
    assert b"".join(map(store.read, sorted(parts))) == by_one_process(cluster)


def until_busy(cluster: Cluster, working: Future[str]) -> str:
    """A worker that has a task of the conversion in hand, as soon as there is one."""
    busy: list[str] = []
    end = time.monotonic() + 180
    while not busy:
        assert not working.done(), working.result()
        assert time.monotonic() < end, "no worker has a task"
        busy = cluster.busy()
    return busy[0]


def by_one_process(cluster: Cluster) -> bytes:
    """The documents as the local engine writes them into a folder of one container."""
    script = f"eventlog convert database {URL} --out /tmp/out --engine local >/dev/null && cat /tmp/out/part-*.xml"
    place = ("--network", NETWORK, "--no-healthcheck")
    return cluster.tour.engine.do("run", "--rm", *place, "eventlog-spark", "sh", "-c", script, seconds=400).encode()
