"""What a login meets first: a refusal that is for good, TLS and without, and the binary log that keeps triggers from it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pymysql import _auth
from sqlalchemy import URL, Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import EX_UNAVAILABLE, ConfigError, InstallError, SourceError
from eventlog.sql.access import is_lasting
from eventlog.sql.connect import connect
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import Process
from tests.integration.test_publisher_faults import OwnServer, own_server
from tests.support.logged import USR, left_by, run
from tests.support.servers import absent, mysqls

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


_numbers = count(1)
WORD = "pä ss€%&/"


@pytest.fixture
def account(mysql: Engine) -> Iterator[str]:
    """The name of somebody with a password and without rights; nobody has logged in since."""
    name = f"somebody{next(_numbers)}"
    with mysql.begin() as connection:
        connection.exec_driver_sql(f"CREATE USER {name} IDENTIFIED WITH caching_sha2_password BY %s", (WORD,))
        connection.exec_driver_sql("FLUSH PRIVILEGES")
    yield name
    run(mysql, f"DROP USER {name}")


def url_of(engine: Engine, account: str, *, encrypted: bool = True) -> str:
    url = engine.url.set(username=account, password=WORD)
    found = url if encrypted else url.update_query_dict({"ssl_disabled": "1"})
    return found.render_as_string(hide_password=False)


@pytest.mark.parametrize("encrypted", [True, False], ids=["tls", "plain"])
def test_a_login_with_a_password_of_any_letters_succeeds_first_and_again(
    mysql: Engine, account: str, encrypted: bool
) -> None:
    run(mysql, f"GRANT SELECT ON {mysql.url.database}.* TO {account}")
    for _ in ("the whole way", "by what the server remembers"):
        engine = connect(url_of(mysql, account, encrypted=encrypted))
        with engine.connect() as connection:
            (_, cipher) = connection.exec_driver_sql("SHOW STATUS LIKE 'Ssl_cipher'").one()
        engine.dispose()
        assert bool(cipher) is encrypted


def test_what_the_driver_lacks_for_a_login_is_told(
    mysql: Engine, account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(mysql, f"GRANT SELECT ON {mysql.url.database}.* TO {account}")
    monkeypatch.setattr(_auth, "_have_cryptography", False)
    url = url_of(mysql, account, encrypted=False)
    with pytest.raises(
        ConfigError, match=r"cannot log in: 'cryptography' package is required.*pip install cryptography"
    ):
        connect(url).connect()
    *_, point = check(lambda: Config(source=SourceConfig(url=url)))
    assert (point.name, point.level) == ("connection", PointLevel.FAILURE)


def test_a_server_that_its_administrators_have_to_themselves_is_tried_again(mysql: Engine, account: str) -> None:
    run(mysql, f"GRANT SELECT ON {mysql.url.database}.* TO {account}")
    run(mysql, "SET GLOBAL offline_mode = ON")
    try:
        with pytest.raises(SourceError, match="offline mode") as told:
            Log(connect(url_of(mysql, account)), LogNames()).transaction().__enter__()
    finally:
        run(mysql, "SET GLOBAL offline_mode = OFF")
    assert told.value.may_pass


@pytest.fixture
def distrusted(mysql: Engine, account: str) -> Iterator[Engine]:
    """An installer with the least rights where the server has a binary log and trusts nobody with triggers."""
    with mysql.connect() as connection:
        if not connection.exec_driver_sql("SELECT @@GLOBAL.log_bin").scalar_one():
            absent("mysql", "this server has no binary log")
    install(mysql)
    run(mysql, *USR)
    give_rights(mysql, Roles(installer=f"{account}@%"), tables=["usr"])
    run(mysql, "SET GLOBAL log_bin_trust_function_creators = 0")
    engine = connect(url_of(mysql, account))
    yield engine
    engine.dispose()
    run(mysql, "SET GLOBAL log_bin_trust_function_creators = 1")


def tracking(engine: Engine) -> PointLevel:
    """What `eventlog check` says about making triggers."""
    url = engine.url.render_as_string(hide_password=False)
    return {point.name: point.level for point in check(lambda: Config(source=SourceConfig(url=url)))}["tracking"]


def test_who_may_make_no_triggers_because_of_the_binary_log_loses_none(mysql: Engine, distrusted: Engine) -> None:
    track(mysql, ["usr"])
    with pytest.raises(InstallError, match=r"without the right SUPER.*log_bin_trust_function_creators to 1"):
        track(distrusted, ["usr"], TriggerOptions(style=Style.FIELD))
    assert {state.state for state in trigger_states(mysql)} == {TriggerCondition.CURRENT}
    assert left_by(mysql, "INSERT INTO usr (idu) VALUES (1)") == [(5, "idu=1", None, None, None)]
    assert (tracking(distrusted), tracking(mysql)) == (PointLevel.WARNING, PointLevel.OK)


@pytest.mark.parametrize("mended", ["GRANT SUPER ON *.* TO {}", "SET GLOBAL log_bin_trust_function_creators = 1"])
def test_each_of_the_ways_out_is_one(mysql: Engine, distrusted: Engine, mended: str) -> None:
    run(mysql, mended.format(distrusted.url.username))
    assert tracking(distrusted) is PointLevel.OK
    assert {state.state for state in track(distrusted, ["usr"])} == {TriggerCondition.CURRENT}
