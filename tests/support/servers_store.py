"""A server that speaks S3, started when the first test asks: moto's, over HTTP, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import obstore
import pytest
from msgspec import Struct

from eventlog.sinks.store.address import StoreSettings
from eventlog.sinks.store.objects import Bucket, objects_at
from tests.support.servers import found, free_port

_numbers = count()
SECRET: Final = "a-secret-of-tests"
ENVIRONMENT: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}

PARTS: Final = "import eventlog.sinks.store.objects as objects; objects.IN_ONE_BYTES = 0\n"
"""Each file of a conversion, and each archive, is uploaded in parts."""

DYING: Final = """
import os, signal, threading, obstore
left = {before}
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def wrap(function):
    def step(*positional, **named):
        global left
        left -= 1
        if not left:
            threading.Timer({seconds}, die).start() if {seconds} else die()
        return function(*positional, **named)
    return step
for name in ("get", "put", "copy", "delete", "list"):
    setattr(obstore, name, wrap(getattr(obstore, name)))
"""
"""A process that is killed before that request of its, counted from 1, or so many seconds after it began."""


class StoreServer(Struct, frozen=True):
    """A server with a bucket. Who asks it is told by the environment, as everywhere."""

    url: str

    @property
    def settings(self) -> StoreSettings:
        return StoreSettings(endpoint=self.url, region="us-east-1")

    def address(self) -> str:
        """Return a new prefix."""
        return f"s3://bucket/place-{os.getpid()}-{next(_numbers)}"

    def make_bucket(self, name: str) -> None:
        """Create another bucket."""
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")  # noqa: S310  # our own
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310  # likewise

    def objects(self, address: str) -> Bucket:
        return objects_at(address, self.settings)


def content(objects: Bucket) -> dict[str, bytes]:
    """Read the documents' objects by name."""
    return {
        name: found.content
        for name in sorted(objects.names())
        if not name.startswith(".eventlog/") and (found := objects.read(name)) is not None
    }


def hashes(objects: Bucket) -> dict[str, str | None]:
    """Return hashes of the documents' objects, by one request: S3's etag of a single upload is its
    hash.
    """
    listed = [entry for several in obstore.list(objects._store) for entry in several]
    return {entry["path"]: entry["e_tag"] for entry in listed if not entry["path"].startswith(".eventlog/")}


def asked_by_boto3(server: StoreServer) -> Any:
    """Make a client that can do uploads in parts."""
    # Inside, because every run of pytest loads this file.
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key=SECRET,
    )


def uploads(server: StoreServer, address: str) -> list[str]:
    """List objects below an address with an unfinished upload in parts."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    begun = asked_by_boto3(server).list_multipart_uploads(Bucket=bucket).get("Uploads", ())
    return sorted(upload["Key"] for upload in begun if upload["Key"].startswith(prefix))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of the server in one process."""
    for item in items:
        if "s3_store" in getattr(item, "fixturenames", ()) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("s3"))


@pytest.fixture(scope="session")
def s3_store() -> Iterator[StoreServer]:
    """Start a server with an empty bucket, and set credentials for it."""
    with running(found("store", "moto")) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield server


@contextmanager
def running(packages: Path) -> Iterator[StoreServer]:
    """Run the server as a process during the block."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    surroundings = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(packages)}
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=surroundings) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            made = StoreServer(url)
            _begin(made, process)
            yield made
        finally:
            process.terminate()


def _begin(made: StoreServer, server: subprocess.Popen[bytes]) -> None:
    """Makes a bucket as soon as the server answers."""
    while server.poll() is None:
        try:
            made.make_bucket("bucket")
        except OSError:
            time.sleep(0.1)  # a server that starts tells nobody
            continue
        return
    raise AssertionError("moto has ended")
