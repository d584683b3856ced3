"""How a URL begins, which driver it takes, and what is said to check where no connection can be made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from eventlog.cli.main import exit_code
from eventlog.core.errors import ConfigError
from eventlog.sql.connect import SILENT, UNOPENED, connect, make_readable_url, read_url


@pytest.mark.parametrize("begins", ["postgres", "postgresql", "mysql", "mariadb"])
def test_a_url_without_a_driver_takes_ours(begins: str) -> None:
    engine = connect(f"{begins}://app:secret@db.example/app?connect_timeout=3")
    assert (engine.url.host, engine.url.password, engine.url.query["connect_timeout"]) == ("db.example", "secret", "3")
    assert engine.dialect.driver == {"p": "psycopg", "m": "pymysql"}[begins[0]]


def test_a_driver_that_is_named_stays() -> None:
    assert connect("mariadb+pymysql://db/app").url.drivername == "mariadb+pymysql"
    assert read_url("postgresql://db/app").drivername == "postgresql", "what is noted of a place is as it was"


@pytest.mark.parametrize("begins", ["postgres", "mysql"])
def test_who_cannot_connect_is_told_what_to_check(begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["status", "--no-config", "--database", f"{begins}://127.0.0.1:9/app"]) != 0
    assert capsys.readouterr().err.rstrip().endswith(SILENT)


@pytest.mark.parametrize(
    "there, said",
    [
        (True, f"app.db cannot be read: Permission denied. {UNOPENED}"),
        (False, "this user may not write into {folder}. Name another place."),
    ],
)
def test_a_file_that_may_not_be_used_is_named(
    there: bool, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of tests may be root, who may do all."""
    if there:
        sqlite3.connect(tmp_path / "app.db").close()
    monkeypatch.setattr("eventlog.sql.connect.os.access", lambda *_: False)
    assert exit_code(["install", "--no-config", "--database", f"sqlite:///{tmp_path}/app.db"]) == 78
    assert capsys.readouterr().err.rstrip().endswith(said.format(folder=tmp_path))


def test_a_file_that_is_locked_is_named_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sql.connect.LOCK_WAIT_SECONDS", 0.01)
    with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as holder:
        holder.executescript("CREATE TABLE usr (idu INTEGER PRIMARY KEY); BEGIN EXCLUSIVE")
        assert exit_code(["status", "--no-config", "--database", f"sqlite:///{tmp_path}/app.db"]) == 75
    assert "Another process has locked the database file" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["u:s3cret", "u:s3cret@db:s3cret/app", "u:s3cret@[::s3cret/app"])
def test_a_url_that_cannot_be_read_is_not_told(
    place: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(["status", "--no-config", "--database", f"postgresql://{place}"]) == 78
    told = capsys.readouterr().err
    assert "The database URL cannot be read." in told
    assert "s3cret" not in told
    with pytest.raises(ConfigError, match="cannot be read"):
        make_readable_url(f"postgresql://{place}")


@pytest.mark.parametrize(
    "url, said",
    [
        ("postgres://idm:s3cret@127.0.0.1:9/app?x=1", "psycopg does not know: x. Correct its name, or leave it out."),
        ("postgres://idm:s3cret@127.0.0.1:9/app?sslmod=s3cret", "psycopg does not know: sslmod. Did you mean sslmode?"),
        ("mysql://idm:s3cret@127.0.0.1:9/app?charset=latin1&x=s3cret", "pymysql does not know: x. "),
        ("mariadb://idm:s3cret@127.0.0.1:9/app?read_timeot=s3cret", "Did you mean read_timeout?"),
        ("oracle://idm:s3cret@127.0.0.1:9/?service_name=a&x=s3cret", "oracledb does not know: x. "),
        ("sqlite:///app.db?x=s3cret", "pysqlite does not know: x. "),
        ("postgres://idm:a@b?s3cret=c@db.example/app", "psycopg does not know. It may be a piece of the password: "),
        ("sqlite:///app.db?check_same_thread=true&timeout=s3cret", "cannot be read: that of timeout. Correct it."),
    ],
)
def test_an_option_that_the_driver_does_not_know_is_named(
    url: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["install", "--no-config", "--database", url]) == 78
    told = capsys.readouterr().err
    assert said in told
    assert "s3cret" not in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "url",
    [
        "postgres://db/app?sslmode=verify-full&host=a:5432&host=b:5432&target_session_attrs=read-write&service=s",
        "postgres://db/app?application_name=a%40b",
        "mysql://db/app?charset=utf8mb4&ssl_ca=/ca.pem&ssl_check_hostname=false&read_timeout=3",
        "oracle://db/?service_name=app&expire_time=3",
        "sqlite:///app.db?timeout=3",
        "sqlite:///file:app.db?uri=true&mode=ro",
        "sqlite:///file:app.db?vfs=unix&uri=true&x=1",
    ],
)
def test_options_that_the_driver_knows_are_taken(url: str, recwarn: pytest.WarningsRecorder) -> None:
    assert connect(url, may_create=True).url.query
    assert [*recwarn] == []


@pytest.mark.parametrize(
    "url, code, said",
    [
        ("mysql://u@127.0.0.1:9/x?charset=s3cret", 78, "cannot use an option of the database URL. See to the value"),
        ("mysql://u@127.0.0.1:9/x?connect_timeout=0&charset=utf8mb4", 78, "of each: connect_timeout, charset."),
        (
            "mysql://u@127.0.0.1:9/x?ssl_ca=/s3cret",
            78,
            "URL: No such file or directory. See to the value of each: ssl_ca.",
        ),
        ("postgres://u@127.0.0.1:9/x?sslmode=nono", 69, "See to the value of sslmode in the database URL."),
        ("postgres://u@127.0.0.1:9/x?keepalives=nono", 69, "See to the value of keepalives in the database URL."),
        ("postgres://u@127.0.0.1:9/x?sslmode=disable", 75, "See that the server runs and takes connections there."),
    ],
)
def test_a_value_that_only_the_driver_refuses_is_no_fault_of_ours(
    url: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["status", "--no-config", "--database", url]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "fault of eventlog" not in error
    assert "s3cret" not in error


def test_a_publisher_does_not_wait_for_the_url_to_become_right(capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgres://u@127.0.0.1:9/x?sslmode=nono"
    assert exit_code(["run", "--no-config", "--log-format", "json", "--database", url]) == 69
    [record] = capsys.readouterr().err.splitlines()
    assert '"action":"fatal"' in record
    assert "See to the value of sslmode in the database URL." in record
