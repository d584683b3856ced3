"""Object stores over HTTP: publishers, conversions and archives that are killed anywhere leave what a folder has, and no more."""

from __future__ import annotations

import datetime as dt
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from eventlog.core.model import Document, Op
from eventlog.core.seams import Sink
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.plans import Plans
from eventlog.sinks.store.plans import HIDDEN
from tests.acceptance.command import eventlog, ok
from tests.integration.publishing import Process, finished, site, until
from tests.support import changerows
from tests.support.converting import elements_of, files_of, log_row, write_lines, write_parquet
from tests.support.forking import Forked
from tests.support.servers_store import ENVIRONMENT, SECRET, StoreServer, content

USR = {
    "name": "usr",
    "columns": [{"name": "idu", "type": "integer", "key": 1}, {"name": "fname", "type": "varchar(64)"}],
}

OLD = "2020-01-01 00:00:00"
DYING_IN_A_REMOVAL = """
import os, shutil, signal
from pathlib import Path
usual = shutil.rmtree
def rmtree(folder, *positional, **named):
    if (Path(folder) / "_SUCCESS").exists():
        next(Path(folder).glob("part-*")).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    usual(folder, *positional, **named)
shutil.rmtree = rmtree
"""
"""A process that is killed when it has removed a file of an output that is brought to its store."""


def rows(number: int, after: str) -> list[Document]:
    table = "grp" if number % 4 == 0 else "usr"
    return list(changerows.documents(changerows.told(number, Op.ADD, number, table), after=after))


def tables(place: Path | Plans) -> Sink:
    return ChangeTableFiles(place, now=lambda: dt.datetime(2024, 5, 6, tzinfo=dt.UTC))


def configured(folder: Path, address: str, server: StoreServer, more: str = "") -> Path:
    file = folder / "store.toml"
    store = f'{{ endpoint = "{server.url}", region = "us-east-1" }}'
    file.write_text(f'[[output]]\nsink = "files"\npath = "{address}"\nstore = {store}\n{more}')
    return file


def test_a_bucket_that_comes_later_gets_all_that_waits(s3_store: StoreServer, sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    log.write(1)
    file = configured(tmp_path, "s3://later/p", s3_store, "[publisher]\nretry_first = 0.1\nretry_longest = 0.5\n")
    with Process(log.engine, tmp_path / "out", "--config", str(file), out=False) as process:
        until(lambda: "s3://later/p has no such bucket" in process.said.read_text(), "it is said what is missing")
        assert list(log.statuses().values()) == ["N"]
        s3_store.make_bucket("later")
        until(finished(log, 1), "the row is published")
        assert process.stop() == 0
    assert len(content(s3_store.objects("s3://later/p"))) == 1


def test_an_output_whose_copy_was_half_removed_is_made_again(s3_store: StoreServer, tmp_path: Path) -> None:
    """The copy on this machine goes when the store has it; whoever is killed then leaves a part of it."""
    lines = write_lines(tmp_path / "a.jsonl", [log_row(number, table_key=f"idu={number}") for number in range(1, 8)])
    address = s3_store.address()
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(tmp_path)}
    words = ("convert", lines, "--out", address, "--engine", "local[1]", "--part-events", "3")
    assert Forked(*words, environment=environment, program=DYING_IN_A_REMOVAL).wait(120) == -signal.SIGKILL
    objects = s3_store.objects(address)
    whole = content(objects)
    assert len(whole) == 5
    objects.remove(list(whole))
    ok(*words, environment=environment)
    assert content(objects) == whole
    assert not list(tmp_path.glob("eventlog-*"))


def test_what_a_killed_run_hides_late_goes_with_the_next_command(s3_store: StoreServer, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "a.jsonl", [log_row(1)])
    address = s3_store.address()
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(tmp_path)}
    words = ("convert", lines, "--out", address, "--engine", "local[1]")
    ok(*words, environment=environment)
    objects = s3_store.objects(address)
    whole = content(objects)
    objects.put(f"{HIDDEN}0123456789abcdef/000000", b"late")
    ok(*words, environment=environment)
    assert content(objects) == whole
    assert list(objects.names(HIDDEN)) == []


@pytest.mark.parametrize("name", ["archive", "archive/a.jsonl"])
def test_a_conversion_reads_what_lies_in_a_bucket(s3_store: StoreServer, tmp_path: Path, name: str) -> None:
    """Objects below a prefix or a single one, and what answers read-backs: as of folders, and given again it is the same."""
    beside, base = tmp_path / "beside", s3_store.address()
    for folder in (beside, tmp_path / "archive" / "2026", tmp_path / "tables"):
        folder.mkdir(parents=True)
    rows = [log_row(number, table_key=f"idu={number}") for number in range(1, 8)]
    write_lines(
        tmp_path / "archive" / "a.jsonl", [*rows, log_row(8, event_type=6, column_name=None, table_key="idu=8")]
    )
    write_parquet(tmp_path / "archive" / "2026" / "b.parquet", [log_row(9, table_key="idu=9")])
    (tmp_path / "tables" / "usr.jsonl").write_text('{"idu": 8, "fname": "Zoë"}\n')
    (tmp_path / "schema.json").write_text(json.dumps({"tables": [USR]}))
    objects = s3_store.objects(base)
    for file in ("archive/a.jsonl", "archive/2026/b.parquet", "tables/usr.jsonl"):
        objects.put(file, tmp_path / file)
    objects.put("archive/_SUCCESS", b"{}")
    objects.put("archive/.hidden.jsonl", b"no row")
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(beside)}
    here = ("--engine", "local[1]", "--part-events", "3", "--schema", tmp_path / "schema.json")
    ok("convert", tmp_path / name, "--snapshot", tmp_path / "tables", "--out", tmp_path / "here", *here)
    words = ("convert", f"{base}/{name}", "--snapshot", f"{base}/tables/", *here, "--out")
    ok(*words, tmp_path / "there", environment=environment)
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")
    assert "Zoë" in elements_of(tmp_path / "there")
    ok(*words, f"{base}/out", environment=environment)
    assert content(s3_store.objects(f"{base}/out")).keys() == files_of(tmp_path / "here").keys()
    for place in (tmp_path / "there", f"{base}/out"):
        again = eventlog(*words, place, environment=environment)
        assert f"{place} holds this conversion already" in again.stderr
    assert list(beside.iterdir()) == []


@pytest.mark.parametrize(
    "address,code,said",
    [
        ("s3://bucket/nowhere", 64, "There is nothing to read at s3://bucket/nowhere."),
        ("s3://nobody/p", 75, "s3://nobody/p has no such bucket"),
        ("ftp://host/p", 64, "INPUT ftp://host/p is no address of a file system."),
        ("hdfs://host/p", 64, "hdfs://host/p is an address, and the local engine"),
    ],
)
def test_what_cannot_be_read_is_told(s3_store: StoreServer, tmp_path: Path, address: str, code: int, said: str) -> None:
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(tmp_path)}
    done = eventlog("convert", address, "--out", tmp_path / "out", "--engine", "local", environment=environment)
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_old_rows_are_archived_in_a_bucket_before_they_go(
    s3_store: StoreServer, sqlite: Engine, tmp_path: Path
) -> None:
    log, address = site(sqlite), s3_store.address()
    for number in (1, 2, 3):
        log.write(number, status="S", event_time=OLD)
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url}
    words = ("purge", "--database", str(sqlite.url), "--older-than", "1d", "--yes", "--archive")
    down = eventlog(*words, address, environment={**environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    assert (down.returncode, "does not answer" in down.stderr, len(log.statuses())) == (75, True, 3)
    unknown = eventlog(*words, "ftp://host/p", environment=environment)
    assert (unknown.returncode, "nothing is written to ftp://" in unknown.stderr) == (78, True)
    assert "3 rows deleted, 3 archived in 1 file" in ok(*words, address, environment=environment)
    [archive] = content(s3_store.objects(address)).values()
    assert pq.ParquetFile(BytesIO(archive)).read().column("record_id").to_pylist() == [1, 2, 3]


@contextmanager
def answering(status: int, code: str) -> Iterator[str]:
    """A server that answers everything so."""

    class Answer(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = do_POST = do_HEAD = answer  # noqa: N815  # as the library calls them

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
