"""Uploads in parts that a kill broke off: who comes next aborts them, and nobody else's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
import pytest
from sqlalchemy import Engine

from eventlog.core.errors import SinkError
from eventlog.sinks.store import objects as module
from eventlog.sinks.store.plans import StoredPlans
from tests.acceptance.command import ok
from tests.integration.publishing import site
from tests.integration.test_object_store import OLD
from tests.integration.test_object_store_troubles import Way, answers, way_to
from tests.support.converting import log_row, write_lines
from tests.support.forking import Forked
from tests.support.servers_store import ENVIRONMENT, PARTS, StoreServer, asked_by_boto3, content, uploads

BREAKING = f"""{PARTS}
import os, signal, obstore
usual = obstore.put
def pieces():
    yield bytes(6_000_000)
    os.kill(os.getpid(), signal.SIGKILL)
def put(store, name, content, **named):
    if named["use_multipart"]:
        content = pieces()
    return usual(store, name, content, **named)
obstore.put = put
"""
"""A process that is killed between two parts of its first upload."""


@pytest.fixture
def foreign(s3_store: StoreServer) -> Iterator[list[str]]:
    """Uploads of others, at the same place and elsewhere; they are there still when the test ends."""
    client, bucket = asked_by_boto3(s3_store), "bucket"
    names = ["others/a", f"{s3_store.address().removeprefix('s3://bucket/')}/.eventlog/hidden/0123456789abcdef/000000"]
    begun = {name: client.create_multipart_upload(Bucket=bucket, Key=name)["UploadId"] for name in names}
    yield names
    there = uploads(s3_store, "s3://bucket/")
    for name in there:
        if name in names:
            client.abort_multipart_upload(Bucket=bucket, Key=name, UploadId=begun[name])
    assert there == sorted({*there, *names})


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("right", [True, False], ids=["with the right", "without the right"])
def test_a_conversion_leaves_no_upload_of_one_that_was_killed(
    s3_store: StoreServer, tmp_path: Path, right: bool
) -> None:
    """Without the right to list uploads they stay, and the conversion is made all the same."""
    lines = write_lines(tmp_path / "a.jsonl", [log_row(number, table_key=f"idu={number}") for number in range(1, 8)])
    address = s3_store.address()
    with way_to(s3_store) as (seen, way):
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": seen.url, "TMPDIR": str(tmp_path)}
        words = ("convert", lines, "--out", address, "--engine", "local", "--jobs", "1", "--part-events", "3")
        assert Forked(*words, environment=environment, program=BREAKING).wait(120) == -signal.SIGKILL
        assert uploads(s3_store, address)
        way.trouble = None if right else uploads_denied
        ok(*words, environment=environment)
    assert bool(uploads(s3_store, address)) != right
    objects = s3_store.objects(address)
    assert content(objects).keys() == {"_SUCCESS", "outcomes.parquet", *(f"part-0000{one}.xml" for one in range(3))}
    assert not list(objects.names(".eventlog/"))


def uploads_denied(way: Way) -> bool:
    return "uploads" in way.path and way.command == "GET" and answers(403, "AccessDenied", way)


@pytest.mark.usefixtures("foreign")
def test_a_purge_that_is_killed_leaves_no_file_and_the_next_one_ends_its_upload(
    s3_store: StoreServer, sqlite: Engine, tmp_path: Path
) -> None:
    log, address = site(sqlite), s3_store.address()
    log.write(1, status="S", event_time=OLD)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(temporary)}
    words = ("purge", "--database", str(sqlite.url), "--older-than", "1d", "--yes", "--archive", address)
    assert Forked(*words, environment=environment, program=BREAKING).wait(120) == -signal.SIGKILL
    [broken] = uploads(s3_store, address)
    assert not list(temporary.iterdir())
    # That of another log may be of a purge that is at work.
    other = f"{address.removeprefix('s3://bucket/')}/another-{broken.rpartition('/')[2]}"
    client = asked_by_boto3(s3_store)
    begun = client.create_multipart_upload(Bucket="bucket", Key=other)
    objects = s3_store.objects(address)
    objects.put(f"{module.PARTS}{other.rpartition('/')[2]}", b"")
    log.write(2, status="S", event_time=OLD)  # so the archive has another name
    ok(*words, environment=environment)
    assert uploads(s3_store, address) == [other]
    client.abort_multipart_upload(Bucket="bucket", Key=other, UploadId=begun["UploadId"])
    assert len(content(objects)) == 1
    assert log.statuses() == {}


def test_of_two_at_once_the_earlier_one_is_told_that_its_upload_was_ended(
    s3_store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = s3_store.address()
    earlier, later = (StoredPlans(s3_store.objects(address)) for _ in range(2))
    file = tmp_path / "file"
    file.write_bytes(b"x" * 11_000_000)
    monkeypatch.setattr(module, "IN_ONE_BYTES", 1000)
    usual = obstore.put

    def overtaken(store: Any, name: str, content: Any, **named: Any) -> Any:
        def pieces() -> Iterator[bytes]:
            yield file.read_bytes()
            monkeypatch.setattr(obstore, "put", usual)
            # A request inside of a request needs a thread of its own.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(later.take_over, None).result()
            yield file.read_bytes()

        return usual(store, name, pieces() if named["use_multipart"] else content, **named)

    earlier.take_over(None)
    monkeypatch.setattr(obstore, "put", overtaken)
    with pytest.raises(SinkError, match=r"knows an upload no more, because a later run .* ended it\. Let one run"):
        earlier.hide("earlier", [(earlier.folder / "a", file)])
    later.show(later.hide("later", [(later.folder / "a", file)]))
    later.forget()
    objects = s3_store.objects(address)
    assert content(objects) == {"a": file.read_bytes()}
    assert not uploads(s3_store, address)
    assert not list(objects.names(".eventlog/"))
