"""A disk that is full, of files, of change tables or of the log itself: it is waited for, and nothing is missing or twice."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.daemon.publisher import Publisher
from tests.hardening.crash import configure, finish, prepare, writers
from tests.hardening.replaying import Store, tables
from tests.hardening.targets import ChangeTables, Files, Target
from tests.hardening.troubles import finished
from tests.integration.publishing import in_thread, until
from tests.support.servers import absent
from tests.support.sinks import opened


@contextmanager
def small_disk(folder: Path, size: str = "64k") -> Iterator[Path]:
    """A file system of this size, where one may be mounted."""
    if shutil.which("mount") is None:
        absent("small-disk", "there is no mount")
    place = folder / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        absent("small-disk", mounted.stderr.decode().strip() or "a small file system cannot be mounted")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.in_turn
def test_a_full_disk_is_waited_for(sqlite: Engine, tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        assert published_with_little_room(sqlite, tmp_path, disk, Files(disk, "field")) == tables(sqlite)


@pytest.mark.in_turn
def test_a_full_disk_under_change_tables_is_waited_for(sqlite: Engine, tmp_path: Path) -> None:
    with small_disk(tmp_path, "512k") as disk:
        assert published_with_little_room(sqlite, tmp_path, disk, ChangeTables(sqlite, disk)) == tables(sqlite)


@pytest.mark.in_turn
def test_a_full_disk_under_the_log_itself_is_waited_for(tmp_path: Path) -> None:
    with small_disk(tmp_path, "1m") as disk:
        engine = create_engine(f"sqlite:///{disk / 'app.db'}")
        assert published_with_little_room(engine, tmp_path, disk, Files(tmp_path, "field")) == tables(engine)
        engine.dispose()


def test_a_disk_without_room_for_another_file_is_waited_for(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same by a file system that says so, where none can be mounted."""
    from tests.integration.publishing import config_of, published, site
    from tests.integration.publishing import finished as log_settled

    log = site(sqlite)
    log.write_all(range(1, 20))
    real, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        if full[0] and len(data) > 100:
            real(descriptor, bytes(data)[:50])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    out = tmp_path / "out"
    with in_thread(Publisher(config_of(sqlite, out))) as working:
        until(lambda: working.vitals.reading().error is not None, "it says that the disk is full")
        assert "No space left" in str(working.vitals.reading().error)
        assert published(out) == {}
        full[0] = False
        until(log_settled(log, 19), "it goes on")
    assert list(out.rglob("*.part")) == []


def test_a_file_larger_than_allowed_is_waited_for_and_leaves_nothing(tmp_path: Path) -> None:
    """RLIMIT_FSIZE cuts a document in the middle: what was begun goes, and nobody sees it."""
    from eventlog.core.errors import SinkError
    from eventlog.core.model import Document
    from eventlog.sinks.files import FileSink

    sink = opened(FileSink(tmp_path / "out", ".xml"))
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, former[1]))
        with pytest.raises(SinkError, match="File too large") as caught:
            sink.commit("", [Document(id="1", body=bytes(5000), covers={})])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.may_pass
    assert list((tmp_path / "out").iterdir()) == []


def published_with_little_room(engine: Engine, folder: Path, disk: Path, aim: Target) -> Store:
    """What consumers know in the end, of a disk, or from one, that was full for a while."""
    prepare(engine, aim.style)
    with in_thread(Publisher.from_config(configure(engine, folder, aim))) as working, writers(engine, 9):
        until(lambda: finished(engine) > 5, "there is room at first")
        fill(disk)
        until(lambda: working.vitals.reading().state == "failing", "it notices that the disk is full")
        assert "full" in str(working.vitals.reading().error) or "No space" in str(working.vitals.reading().error)
        (disk / "ballast").unlink()
        # What has come meanwhile needs more room than was freed.
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        before = finished(engine)
        until(lambda: finished(engine) > before, "it goes on")
    finish(engine, folder / "eventlog.toml")
    return aim.check(engine)


def fill(disk: Path) -> None:
    """Takes all the room that is left."""
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(1024))
