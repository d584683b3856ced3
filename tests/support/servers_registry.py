"""A real schema registry for tests: `real_registry`, Apicurio's, which answers as Confluent's does; stopped, it keeps what it has.

Confluent's own is not in Maven's central repository. `./dev fetch registry` gets the program; EVENTLOG_REQUIRE=registry
makes its absence a failure.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from eventlog.sinks.kafka.registry import CONTENT
from tests.support.fetching import REGISTRY
from tests.support.servers import PATIENCE, absent, found, free_port

PROGRAM = f"apicurio-registry-app-{REGISTRY}-runner.jar"


class RealRegistry:
    """A registry that can be stopped and started."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._port = free_port()
        self._pool = urllib3.PoolManager(retries=False, timeout=10)
        self._process: subprocess.Popen[bytes] | None = None
        self.root = f"http://127.0.0.1:{self._port}"
        self.url = f"{self.root}/apis/ccompat/v7"

    def start(self) -> None:
        """Returns when it answers."""
        with (self._folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(self._java(), stdout=log, stderr=log, cwd=self._folder)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                absent("registry", (self._folder / "registry.log").read_text(errors="replace")[-500:])
            time.sleep(0.1)

    def stop(self) -> None:
        """Ends it, and waits until it is gone."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None

    def close(self) -> None:
        """Gives back everything."""
        self.stop()
        self._pool.clear()

    def demand(self, level: str, subject: str = "") -> None:
        """Says what may follow what, everywhere or in one subject."""
        self.asked("PUT", f"/config/{subject}".rstrip("/"), {"compatibility": level})

    def asked(self, method: str, path: str, content: Any = None) -> Any:
        """Send a request; check it is not refused; return the answer."""
        headers = {"Content-Type": CONTENT}
        answer = self._pool.request(method, self.url + path, json=content, headers=headers)
        assert answer.status == 200, answer.data
        return answer.json()

    def _answers(self) -> bool:
        try:
            return self._pool.request("GET", f"{self.url}/subjects").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _java(self) -> list[str]:
        java = shutil.which("java") or "java"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._port,
            "apicurio.datasource.url": f"jdbc:h2:file:{self._folder / 'registry'}",
        }
        options = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return [java, *options, *[f"-D{name}={value}" for name, value in settings.items()], "-jar", str(self._program)]


@pytest.fixture(scope="session")
def registry_process() -> Iterator[RealRegistry]:
    """Start the registry at the first use."""
    program = _program()  # first: where it is not there, no folder is left behind
    folder = Path(tempfile.mkdtemp(prefix="eventlog-registry-"))
    made = RealRegistry(program, folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def real_registry(registry_process: RealRegistry) -> RealRegistry:
    """Reset the registry to Confluent's default: a new schema must read older data."""
    registry_process.demand("BACKWARD")
    return registry_process


def _program() -> Path:
    """Return the program for Java; skip the level if either is missing."""
    if shutil.which("java") is None:
        absent("registry", "there is no Java that runs it")
    return found("registry", "registry") / PROGRAM
