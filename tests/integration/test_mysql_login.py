"""What an account of MySQL meets first: its login, with TLS and without, and the binary log that keeps triggers from it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from pymysql import _auth
from sqlalchemy import Engine

from eventlog.admin.check import PointLevel, check
from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import ConfigError, InstallError, SourceError
from eventlog.sql.connect import connect
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.support.logged import USR, left_by, run
from tests.support.servers import absent

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
