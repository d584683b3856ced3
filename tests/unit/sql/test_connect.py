"""How a URL begins, which driver it takes, and what is said to check where no connection can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.cli.main import exit_code
from eventlog.sql.connect import SILENT, UNOPENED, connect, read_url
from eventlog.sql.install import install_sql


@pytest.mark.parametrize("begins", ["postgres", "postgresql", "mysql", "mariadb"])
def test_a_url_without_a_driver_takes_ours(begins: str) -> None:
    engine = connect(f"{begins}://app:secret@db.example/app?connect_timeout=3")
    assert (engine.url.host, engine.url.password, engine.url.query["connect_timeout"]) == ("db.example", "secret", "3")
    assert engine.dialect.driver == {"p": "psycopg", "m": "pymysql"}[begins[0]]


def test_a_driver_that_is_named_stays() -> None:
    assert connect("mariadb+pymysql://db/app").url.drivername == "mariadb+pymysql"
    assert read_url("postgresql://db/app").drivername == "postgresql", "what is noted of a place is as it was"


def test_a_script_is_printed_for_postgres() -> None:
    assert install_sql("postgres://") == install_sql("postgresql+psycopg://")


@pytest.mark.parametrize("begins", ["postgres", "mysql"])
def test_who_cannot_connect_is_told_what_to_check(begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["status", "--no-config", "--database", f"{begins}://127.0.0.1:9/app"]) != 0
    assert capsys.readouterr().err.rstrip().endswith(SILENT)


def test_a_file_that_cannot_be_opened_has_an_advice_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["install", "--no-config", "--database", f"sqlite:///{tmp_path}/none/app.db"]) != 0
    assert capsys.readouterr().err.rstrip().endswith(UNOPENED)
