"""A database that refuses the user, the password or the database: the publisher ends with that, and does not try for ever."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, create_engine, text

from eventlog.core.errors import EX_UNAVAILABLE, SourceError
from eventlog.sql.access import is_lasting
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.integration.publishing import Process
from tests.integration.test_publisher_faults import OwnServer, own_server
from tests.support.servers import mysqls

__all__ = ["own_server"]

WRONG = "wrong-" + secrets.token_hex(4)


def asked(url: URL | str) -> SourceError:
    """What is said to somebody who asks for the log there."""
    engine = create_engine(url)
    with pytest.raises(SourceError) as refused, Log(engine, LogNames()).transaction():
        pass
    engine.dispose()
    return refused.value


def with_passwords(server: OwnServer) -> URL:
    """Makes the server ask for passwords; the URL of an account that has another one than it says."""
    admin = create_engine(server.url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        rules = Path(connection.execute(text("SHOW hba_file")).scalar_one())
        connection.execute(text("CREATE ROLE idm LOGIN PASSWORD 'right'"))
        connection.execute(text("CREATE ROLE nobody_in NOLOGIN"))
        former = rules.read_text()
        rules.write_text(f"host all idm 127.0.0.1/32 scram-sha-256\nhost all shut 127.0.0.1/32 reject\n{former}")
        connection.execute(text("SELECT pg_reload_conf()"))
    url = admin.url.set(username="idm", password=WRONG)
    admin.dispose()
    return url


def test_postgresql_is_not_tried_again_with_what_it_has_refused(own_server: OwnServer, tmp_path: Path) -> None:
    url = with_passwords(own_server)
    for refused in (
        url,
        url.set(password=None),
        url.set(username="shut"),
        url.set(username="nobody_in"),
        url.set(username="nobody_knows"),
        url.set(username="postgres", database="nowhere"),
    ):
        told = asked(refused)
        assert (told.may_pass, told.exit_code) == (False, EX_UNAVAILABLE), str(told)
        assert WRONG not in str(told)
    engine = create_engine(url)
    with Process(engine, tmp_path / "out") as process:
        assert process.end() == EX_UNAVAILABLE
        said = process.said.read_text()
        assert said.count("\n") == 1  # nothing stands there but the record
        last = process.journal[-1]
        assert last.items() >= {"action": "fatal", "exit_code": EX_UNAVAILABLE}.items()
    assert 'password authentication failed for user "idm"' in last["error"]
    assert last["error"].endswith("see to user, password and database in the URL, and to who may connect.")
    assert WRONG not in said


def test_a_server_that_is_away_or_full_is_tried_again(own_server: OwnServer) -> None:
    admin = create_engine(own_server.url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE ROLE busy LOGIN CONNECTION LIMIT 0"))
    assert asked(admin.url.set(username="busy")).may_pass
    admin.dispose()
    own_server.down()
    assert asked(own_server.url).may_pass
    own_server.up()


@pytest.mark.parametrize("database", mysqls())
def test_mariadb_and_mysql_are_not_tried_again_with_a_password_that_they_have_refused(
    database: str, request: pytest.FixtureRequest
) -> None:
    server: Engine = request.getfixturevalue(database)
    assert not asked(server.url.set(username="nobody_knows", password=WRONG)).may_pass
    assert not asked(server.url.set(database="nowhere")).may_pass


@pytest.mark.parametrize(
    "said, lasting",
    [
        ('FATAL:  password authentication failed for user "idm"', True),
        ("fe_sendauth: no password supplied", True),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  sorry, too many clients already", False),
        ("connection refused", False),
        ('column "idm" does not exist', False),
    ],
)
def test_only_a_refusal_at_the_door_is_for_good(said: str, lasting: bool) -> None:
    assert is_lasting(Exception(said)) is lasting
