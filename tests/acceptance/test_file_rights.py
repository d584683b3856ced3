"""Who may read what is written: nobody but us, whatever the umask; and a folder's group where the folder says so."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config
from eventlog.daemon.publisher import Publisher
from eventlog.durable_files import make_empty, make_folder, write_file
from eventlog.sinks.http.receiver import Receiver
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.stream.source import FileMarks
from eventlog.sources.stream.spill import FileSpill
from tests.acceptance.command import ok
from tests.integration.publishing import config_of, site, url_of

UMASKS = (0o000, 0o077)
"""The one that takes nothing away, and the one that takes all from others; one between them has a part of each."""


@pytest.fixture(params=UMASKS, ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    former = os.umask(request.param)
    yield request.param
    os.umask(former)


def rights(place: Path) -> dict[str, set[int]]:
    """Which rights the folders and the files have, from a folder down."""
    found: dict[str, set[int]] = {"folders": set(), "files": set()}
    for entry in (place, *place.rglob("*")):
        found["folders" if entry.is_dir() else "files"].add(stat.S_IMODE(entry.stat().st_mode))
    return found


def waiting(engine: Engine) -> None:
    log = site(engine)
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (1, 'Jack', 'Frost')")
    log.write_all(range(1, 4))


@pytest.mark.parametrize("form", ["xds", "change-tables", "messages"])
def test_documents_and_positions_are_ours_alone(sqlite: Engine, tmp_path: Path, umask: int, form: str) -> None:
    waiting(sqlite)
    folder = tmp_path / "made" / "by us"
    config = config_of(sqlite, folder)
    settings: dict[str, Any] = {"format": form} | ({"file_format": "csv"} if form == "change-tables" else {})
    config = Config(
        source=config.source, publisher=config.publisher, output=(FilesOutput(path=str(folder), **settings),)
    )
    with Publisher(config) as publisher:
        publisher.run_once()
    found = rights(folder)
    assert found["files"] == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_what_a_folder_gives_to_its_group_the_group_may_read(sqlite: Engine, tmp_path: Path, umask: int) -> None:
    waiting(sqlite)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2750)
    with Publisher(config_of(sqlite, folder / "inside")) as publisher:
        publisher.run_once()
    assert rights(folder) == {"folders": {0o2750}, "files": {0o640}}
    folder.chmod(0o2700)
    write_file(folder / "again", b"")
    assert stat.S_IMODE((folder / "again").stat().st_mode) == 0o600


def test_archives_are_ours_alone(sqlite: Engine, tmp_path: Path, umask: int) -> None:
    site(sqlite).write(1, status="S", event_time="2000-01-01 00:00:00")
    ok("purge", "--older-than", "1d", "--yes", "--archive", tmp_path / "history", "--database", url_of(sqlite))
    assert rights(tmp_path / "history") == {"folders": {0o700}, "files": {0o600}}


@pytest.mark.parametrize("target", ["xds", "change-tables", "messages"])
def test_conversions_are_ours_alone(tmp_path: Path, umask: int, target: str) -> None:
    row = {"record_id": 1, "table_name": "usr", "table_key": "idu=1", "status": "N", "event_type": 4}
    (tmp_path / "rows.jsonl").write_text(json.dumps({**row, "event_time": "2026-01-01T00:00:00"}) + "\n")
    out = tmp_path / "out"
    ok("convert", tmp_path / "rows.jsonl", "--to", target, "--engine", "local", "--out", out)
    found = rights(out)
    assert found == {"folders": {0o700}, "files": {0o600}}


def test_marks_are_ours_alone(tmp_path: Path, umask: int) -> None:
    FileMarks(tmp_path / "marks.json").change({"position": "1"})
    assert stat.S_IMODE((tmp_path / "marks.json").stat().st_mode) == 0o600


def test_what_is_spilled_has_no_name(tmp_path: Path, umask: int) -> None:
    spill: FileSpill[int] = FileSpill(int, tmp_path)
    assert list(tmp_path.iterdir()) == []
    spill.close()


def test_what_a_receiver_keeps_is_its_own(tmp_path: Path, umask: int) -> None:
    receiver = Receiver(lambda _: None, folder=tmp_path / "kept")
    receiver.take("1", b'<nds dtdversion="2.0"><input/></nds>')
    assert rights(tmp_path / "kept") == {"folders": {0o700}, "files": {0o600}}
    receiver._server.server_close()


def test_a_folder_that_is_there_stays_as_its_owner_made_it(tmp_path: Path, umask: int) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o755)
    make_folder(tmp_path / "theirs")
    make_empty(tmp_path / "theirs" / "file")
    assert rights(tmp_path / "theirs") == {"folders": {0o755}, "files": {0o600}}
    for output in outputs_of(Config(output=(FilesOutput(path=str(tmp_path / "theirs")),))):
        output.sink.close()
    assert stat.S_IMODE((tmp_path / "theirs").stat().st_mode) == 0o755
