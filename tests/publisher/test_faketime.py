"""The clock of a real PostgreSQL goes back by two hours, by libfaketime: nothing waits longer than the longest wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.daemon.publisher import Publisher
from eventlog.publisher import reader
from tests.integration.publishing import config_of, finished, in_thread, site, until
from tests.publisher.scene import Scene
from tests.support.servers import absent, postgres_binaries, postgresql_database, postgresql_in

LEVEL = "faketime"
SetClock = Callable[[str], None]


@pytest.fixture(scope="module")
def server_with_clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, SetClock]]:
    """Start a server; yield its URL and a function to set its clock: "-2h" is two hours back."""
    binaries = postgres_binaries()
    if binaries is None:
        absent("postgres", "no binaries were found")
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        absent(LEVEL, "there is no libfaketime")
    folder = tmp_path_factory.mktemp("clock")
    for place in (folder, *folder.parents[:3]):  # the server is another user
        if place.stat().st_uid == os.getuid():
            place.chmod(0o755)
    clock = folder / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with postgresql_in(environment, binaries, {}) as server:
        admin = create_engine(server + "postgres")

        def now() -> float:
            with admin.connect() as connection:
                return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

        def set_clock(by: str) -> None:
            before = now()
            clock.write_text(by)
            until(lambda: abs(now() - before) > 3_600, "the server's clock is another one")

        yield server, set_clock
        admin.dispose()


@pytest.fixture
def clocked(server_with_clock: tuple[str, SetClock]) -> Iterator[tuple[Engine, SetClock]]:
    server, set_clock = server_with_clock
    admin = create_engine(server + "postgres", isolation_level="AUTOCOMMIT")
    with postgresql_database(server, admin) as engine:
        yield engine, set_clock
    admin.dispose()


def test_a_row_that_comes_again_goes_at_once(clocked: tuple[Engine, SetClock], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, set_clock = clocked
    monkeypatch.setattr(reader, "CLOCK_SECONDS", 0.0)
    scene = Scene(engine, "one")  # its longest wait is an hour
    scene.receivers["one"].again = {2}
    scene.write(1, 3)
    scene.publish()
    scene.receivers["one"].again.clear()
    scene.publish()
    assert scene.waiting() == [2], "it waits for its time"
    set_clock("-2h")
    scene.publish()
    assert (scene.waiting(), scene.receivers["one"].came[-1]) == ([], 2)
    set_clock("+0")


def test_a_table_that_was_locked_is_read_within_the_longest_wait(
    clocked: tuple[Engine, SetClock], tmp_path: Path
) -> None:
    engine, set_clock = clocked
    log = site(engine)
    log.run("INSERT INTO usr VALUES (1, 'a', 'b')")
    config = config_of(engine, tmp_path / "out", retry_first=20.0, retry_longest=20.0, read_back_timeout=0.2)
    with Publisher(config) as publisher, engine.connect() as other:
        other.execute(text("LOCK TABLE usr IN ACCESS EXCLUSIVE MODE"))
        with in_thread(publisher):
            log.write(1, key="idu=1", event_type=6, column_name=None, new_value=None)
            parked = text("SELECT count(*) FROM event_log_parked")
            until(lambda: other.execute(parked).scalar_one(), "the row waits for the table")
            set_clock("-2h")
            other.rollback()
            began = time.monotonic()
            until(finished(log, 1), "the row is published")
            assert time.monotonic() - began < 60, "two hours would be too long"
    set_clock("+0")
