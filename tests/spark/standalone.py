"""A standalone cluster of Spark on this machine: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import msgspec
from msgspec import Struct

from eventlog_spark.java import find_java
from tests.spark.processes import JAVA_OPTIONS, kill_tree
from tests.support.servers import PATIENCE, free_port


class Node(Struct, frozen=True, kw_only=True):
    """One process of the cluster."""

    process: subprocess.Popen[bytes]
    port: int


class Standalone(Struct, frozen=True, kw_only=True):
    """A cluster that runs."""

    url: str
    master: Node
    workers: tuple[Node, ...]

    def kill_worker(self) -> None:
        """Kills the first worker with everything that it runs."""
        kill_tree(self.workers[0].process.pid)
        self.workers[0].process.wait()


@contextmanager
def standalone(folder: Path, first: Sequence[str] = ()) -> Iterator[Standalone]:
    """Starts the cluster and ends it with the block; the first worker is called through another command if need be."""
    started: list[Node] = []
    try:
        port = free_port()
        started.append(_start(folder, "master.Master", "--port", str(port), "--host", "127.0.0.1"))
        url = f"spark://127.0.0.1:{port}"
        for number in (1, 2):
            place = folder / f"worker-{number}"
            place.mkdir(parents=True)
            words = ("--cores", "1", "--memory", "1g", "--work-dir", str(place), url)
            started.append(_start(folder, "worker.Worker", *words, through=first if number == 1 else ()))
        _wait_for_workers(started[0], 2)
        yield Standalone(url=url, master=started[0], workers=tuple(started[1:]))
    finally:
        for node in reversed(started):
            kill_tree(node.process.pid)
            node.process.wait()


def environment() -> Mapping[str, str]:
    """What Spark's scripts need: our Java, our Python, and nothing that they would keep elsewhere."""
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    quick = dict.fromkeys(("SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"), JAVA_OPTIONS)
    return {**os.environ, **find_java(os.environ).environment(), **own, **quick}


def _start(folder: Path, kind: str, *arguments: str, through: Sequence[str] = ()) -> Node:
    import pyspark

    port = free_port()
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command = [*through, str(script), f"org.apache.spark.deploy.{kind}", "--webui-port", str(port), *arguments]
    with (folder / f"{kind}-{port}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(), cwd=folder)
    return Node(process=process, port=port)


def _wait_for_workers(master: Node, count: int) -> None:
    deadline = time.monotonic() + 2 * PATIENCE  # three Javas start at once
    while _alive(master) < count:
        assert master.process.poll() is None, "the master has ended"
        assert time.monotonic() < deadline, "the workers do not come"
        time.sleep(0.2)


def _alive(master: Node) -> int:
    try:
        with urlopen(f"http://127.0.0.1:{master.port}/json/", timeout=5) as answer:  # our own process
            return int(msgspec.json.decode(answer.read())["aliveworkers"])
    except (OSError, msgspec.DecodeError):  # its page in HTML answers every path until the one in JSON is there too
        return 0
