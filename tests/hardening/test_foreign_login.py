"""A login without any right on the log can neither stop a publisher nor make it work much harder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import psycopg
import pytest
from sqlalchemy import Engine, text

from eventlog.daemon.publisher import Publisher
from eventlog.daemon.scheduling import LONGEST_SECONDS, Wakeup
from tests.integration.publishing import config_of, finished, in_thread, site, until

FORMER_LOCK = "SELECT pg_try_advisory_lock(CAST(1702257011 AS bigint) << 32 | {oid})"
FLOOD_SECONDS = 1.5


@pytest.fixture
def stranger(postgresql: Engine) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session of somebody who may connect and nothing else."""
    with postgresql.begin() as connection:
        connection.execute(text("DROP ROLE IF EXISTS stranger"))
        connection.execute(text("CREATE ROLE stranger LOGIN"))
    url = postgresql.url
    session = psycopg.connect(
        host=url.host, port=url.port, dbname=url.database, user="stranger", autocommit=True, connect_timeout=10
    )
    yield session
    session.close()
    with postgresql.begin() as connection:
        connection.execute(text("DROP ROLE stranger"))


def test_whoever_may_connect_cannot_keep_a_publisher_from_publishing(
    postgresql: Engine, stranger: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    log = site(postgresql)
    [(oid,)] = log.ask("SELECT CAST('event_log'::regclass::oid AS bigint)")
    assert stranger.execute(FORMER_LOCK.format(oid=oid)).fetchone() == (True,)
    for refused in (
        "SELECT * FROM event_log_mark FOR UPDATE",
        "DO $$ BEGIN LOCK TABLE event_log_mark IN ACCESS SHARE MODE; END $$",
        "UPDATE event_log_mark SET value = 'mine'",
        "INSERT INTO event_log_mark (name, value) VALUES ('publisher', '2099-01-01T00:00:00.000 mine')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(refused)
    log.write(1)
    with Publisher(config_of(postgresql, tmp_path / "out")) as publisher:
        assert publisher.run_once().finished == 1


def test_a_flood_of_notifications_costs_a_bounded_number_of_looks(
    postgresql: Engine,
    stranger: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = site(postgresql)
    looks: list[float] = []
    usual = Wakeup._anything

    def counted(wakeup: Wakeup) -> bool:
        looks.append(time.monotonic())
        return usual(wakeup)

    monkeypatch.setattr(Wakeup, "_anything", counted)
    over, sent = Flag(), []

    def flood() -> None:
        while not over.is_set():
            sent.append(stranger.execute("NOTIFY event_log"))

    with in_thread(Publisher(config_of(postgresql, tmp_path / "out"))) as publisher:
        until(lambda: publisher.post.taken, "it has the lock")
        time.sleep(10 * LONGEST_SECONDS)  # from then on it looks seldom
        noise = Thread(target=flood)
        noise.start()
        began = time.monotonic()
        time.sleep(FLOOD_SECONDS)
        seconds, made = time.monotonic() - began, len([look for look in looks if look >= began])
        log.write(1)
        until(finished(log, 1), "it publishes all the same")
        over.set()
        noise.join()
    assert len(sent) > 2 * made
    assert made <= 3 * seconds / LONGEST_SECONDS
