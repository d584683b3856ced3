"""A catalog of Iceberg that speaks REST, started when the first test asks: the server against which Iceberg's own project
tries clients, with its tables on this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pytest
from msgspec import Struct

from tests.support.levels import words_of
from tests.support.servers import PATIENCE, absent, found, free_port

SERVER: Final = "org.apache.iceberg.rest.RESTCatalogServer"
_numbers = count()


class CatalogServer(Struct, frozen=True):
    """A server; tests take a namespace each."""

    url: str

    @property
    def catalog(self) -> dict[str, Any]:
        """Return the catalog's settings for an output."""
        token = f"{self.url}/v1/oauth/tokens"
        return {"type": "rest", "uri": self.url, "credential": "tests:of-eventlog", "oauth2-server-uri": token}

    def namespace(self) -> str:
        return f"tests_{os.getpid()}_{next(_numbers)}"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of the server in one process."""
    for item in items:
        asked = {*getattr(item, "fixturenames", ()), *words_of(item)}
        if "catalog_server" in asked and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("catalog"))


@pytest.fixture(scope="session")
def catalog_server() -> Iterator[CatalogServer]:
    """Start a server without tables."""
    jars, java = found("lake-readers", "catalog"), shutil.which("java")
    if java is None:
        absent("lake-readers", "there is no java")
    with tempfile.TemporaryDirectory(prefix="eventlog-catalog-") as folder:
        port = free_port()
        surroundings = {**os.environ, "CATALOG_REST_PORT": str(port)}
        surroundings |= {"CATALOG_WAREHOUSE": f"file://{folder}", "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db"}
        command = [java, "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", SERVER]
        with (
            tempfile.TemporaryFile() as log,
            subprocess.Popen(command, stdout=log, stderr=log, env=surroundings) as process,
        ):
            try:
                _wait(f"http://127.0.0.1:{port}/v1/config", process)
                yield CatalogServer(f"http://127.0.0.1:{port}")
            finally:
                process.terminate()


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    """Waits until it answers."""
    end = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=10).close()  # noqa: S310  # our own
        except OSError:
            time.sleep(0.1)  # a server that starts tells nobody
            continue
        return
    raise AssertionError("the catalog does not answer")
