"""The faults of a server that PostgreSQL's tests know, on MariaDB and MySQL: connections that are cut, locks that are held."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import OperationalError

from eventlog.core.errors import SourceError
from eventlog.daemon.publisher import Publisher
from eventlog.sql.access import IS_SET, session_statements
from eventlog.sql.connect import connect
from eventlog.sql.dialect import dialect_of
from tests.integration.publishing import config_of, in_thread, published, settled, site, until
from tests.support.servers import mysqls

OTHERS = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"


def kill_all_others(engine: Engine) -> None:
    """Ends every other session on the database, in the middle of whatever it does."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for (session,) in list(connection.execute(text(OTHERS))):
            with suppress(OperationalError):  # it ended by itself meanwhile
                connection.exec_driver_sql(f"KILL {int(session)}")


def impatient(engine: Engine) -> Engine:
    """An engine whose sessions wait for a lock for a second, not for half a minute."""
    found = connect(engine.url.render_as_string(hide_password=False))

    def prepare(session: Any, record: Any) -> None:
        cursor = session.cursor()
        for setting in session_statements(dialect_of(found)):
            cursor.execute(setting.replace("lock_wait_timeout = 30", "lock_wait_timeout = 1"))
        record.info[IS_SET] = True

    event.listen(found, "connect", prepare)
    return found


@pytest.fixture(params=mysqls())
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each of the two."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def test_connections_that_are_cut_again_and_again_lose_and_double_nothing(server: Engine, tmp_path: Path) -> None:
    log = site(server)
    out = tmp_path / "out"
    with in_thread(Publisher(config_of(server, out, query_limit=5))):
        for start in range(1, 61, 20):
            for number in range(start, start + 20):
                log.write(number, key=f"idu={number}")
            until(lambda: "S" in log.statuses().values(), "it works")
            kill_all_others(server)
        until(settled(log, 60), "all rows")
    assert list(published(out).values()) == [[str(number)] for number in range(1, 61)]


@pytest.mark.parametrize("held", ["event_log_mark WHERE name = 'publisher'", "event_log WHERE record_id = 1"])
def test_a_lock_is_not_waited_for_for_ever(server: Engine, tmp_path: Path, held: str) -> None:
    log = site(server)
    log.write(1)
    with Publisher(config_of(server, tmp_path / "out"), engine=impatient(server)) as publisher:
        assert publisher.run_once().settled == 1
        log.run("UPDATE event_log SET status = 'N'")
        with server.begin() as other:
            other.execute(text(f"SELECT * FROM {held} FOR UPDATE")).all()
            with pytest.raises(SourceError, match=r"[Ll]ock wait timeout") as waited:
                publisher.run_once()
            assert waited.value.may_pass
        assert publisher.run_once().settled == 1
    assert log.statuses() == {1: "S"}
