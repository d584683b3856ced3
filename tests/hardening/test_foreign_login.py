"""A login without any right on the log can neither stop a publisher nor make it work much harder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import config_of, site

FORMER_LOCK = "SELECT pg_try_advisory_lock(CAST(1702257011 AS bigint) << 32 | {oid})"


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
        assert publisher.run_once().settled == 1
