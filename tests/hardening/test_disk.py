"""A disk that is full, of files, of change tables or of the log itself: it is waited for, and nothing is missing or twice."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.daemon.publisher import Publisher
from tests.hardening.crash import configure, finish, prepare, writers
from tests.hardening.replaying import tables
from tests.hardening.targets import ChangeTables, Files, Target
from tests.hardening.troubles import settled
from tests.hardening.writing import transaction
from tests.integration.publishing import in_thread, until
from tests.support.servers import absent


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of this size, where one may be mounted."""
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
@pytest.mark.parametrize("full, size", [("documents", "64k"), ("change tables", "512k"), ("log", "1m")])
def test_a_full_disk_is_waited_for(sqlite: Engine, tmp_path: Path, full: str, size: str) -> None:
    with small_disk(tmp_path, size) as disk:
        engine = create_engine(f"sqlite:///{disk / 'app.db'}") if full == "log" else sqlite
        elsewhere = tmp_path if full == "log" else disk
        aim: Target = ChangeTables(engine, disk) if full == "change tables" else Files(elsewhere)
        prepare(engine, aim.style)
        config = configure(engine, tmp_path, aim)
        with in_thread(Publisher.from_config(config)) as working, writers(engine, 9):
            until(lambda: settled(engine) > 5, "there is room at first")
            fill(disk)
            until(lambda: working.vitals.reading().state == "failing", "it notices that the disk is full")
            assert "full" in str(working.vitals.reading().error) or "No space" in str(working.vitals.reading().error)
            (disk / "ballast").unlink()
            # What has come meanwhile needs more room than was freed.
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            before = settled(engine)
            until(lambda: settled(engine) > before, "it goes on")
        finish(engine, config)
        assert aim.check(engine) == tables(engine)
        engine.dispose()


def fill(disk: Path) -> None:
    """Takes all the room that is left."""
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(1024))


def test_the_checker_notices_what_is_missing_twice_or_out_of_order(sqlite: Engine, tmp_path: Path) -> None:
    aim = Files(tmp_path)
    prepare(sqlite, aim.style)
    dice = random.Random(1)
    for _ in range(30):
        transaction(sqlite, dice)
    finish(sqlite, configure(sqlite, tmp_path, aim))
    assert aim.check(sqlite) == tables(sqlite)
    first, *_, last = sorted(aim.folder.glob("*.xml"))
    for spoil in (first.unlink, lambda: first.write_bytes(last.read_bytes()), lambda: first.rename(f"{last}.xml")):
        body = first.read_bytes()
        spoil()
        with pytest.raises(AssertionError):
            aim.check(sqlite)
        Path(f"{last}.xml").unlink(missing_ok=True)
        first.write_bytes(body)
    assert aim.check(sqlite) == tables(sqlite)
