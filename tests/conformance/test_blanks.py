"""CHAR on PostgreSQL: values have the blanks that fill their columns, keys have none, and `verify` sees which are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import url_of
from tests.support.logged import run

TABLE = "CREATE TABLE held (code {char}(4) PRIMARY KEY, a {char}(5), b {other}, c {char}(3))"


@pytest.mark.parametrize("style", Style)
def test_values_have_their_blanks_and_keys_have_none(postgresql: Engine, tmp_path: Path, style: Style) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE DOMAIN short AS char(5)",
        "CREATE TABLE held (code char(4) PRIMARY KEY, a char(5), b short, c bpchar, d char(3)[], boss char(4) REFERENCES held)",
    )
    track(postgresql, ["held"], TriggerOptions(style=style))
    run(
        postgresql,
        "INSERT INTO held VALUES ('k', 'ab', 'x', 'y ', '{ab}', 'k')",
        "UPDATE held SET a = '', b = 'é', c = 'y  '",
    )
    source = SourceConfig(url=url_of(postgresql))
    output = FilesOutput(path=str(tmp_path / "out"), format="change-tables", file_format="json")
    with Publisher(
        Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(output,))
    ) as publisher:
        publisher.run_once()
    files = sorted(tmp_path.rglob("*held__ct/*.json"))
    told = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {row["code"] for row in told} == {"k"}
    last: dict[str, str] = {}
    for row in told:
        last |= {name: row[name] for name in ("a", "b", "c", "d", "boss") if row[name] is not None}
    assert last == {"a": "     ", "b": "é    ", "c": "y  ", "d": '{"ab "}', "boss": "k   "}


@pytest.mark.parametrize("target", ["postgresql", "mariadb", "sqlite"])
def test_verify_counts_blanks_where_the_target_keeps_them(
    postgresql: Engine, target: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    there: Engine = request.getfixturevalue(target)
    run(postgresql, TABLE.format(char="char", other="char(5)"), "INSERT INTO held VALUES ('k', 'ab', 'ab', NULL)")
    if target == "postgresql":
        run(there, TABLE.format(char="char", other="text").replace("held", "held_copy"))
        run(there, "INSERT INTO held_copy VALUES ('k', 'ab', 'ab   ', NULL)")
    else:
        run(there, TABLE.format(char="char" if target == "mariadb" else "varchar", other="varchar(5)"))
        held = "ab" if target == "mariadb" else "ab   "
        run(there, f"INSERT INTO held VALUES ('k', '{held}', 'ab   ', NULL)")
    name = "held_copy" if target == "postgresql" else "held"
    against = ["--against", url_of(there), "--suffix", name.removeprefix("held")]
    command = ["verify", "held", "--database", url_of(postgresql), "--json", "--wait", "0", *against]
    install(postgresql)
    track(postgresql, ["held"])
    assert exit_code(command) == 0, capsys.readouterr().out
    run(there, f"UPDATE {name} SET b = 'ab'")
    capsys.readouterr()
    assert exit_code(command) == 1
    [difference] = json.loads(capsys.readouterr().out)["tables"][0]["differences"]
    assert difference["values"] == [{"column": "b", "source": "ab   ", "target": "ab"}]


class Unknown(SQLiteDialect_pysqlite):
    """A database that eventlog does not know, which fills CHAR with blanks."""

    name = "unknown"
    supports_statement_cache = True


def test_verify_reads_each_row_of_a_database_that_nobody_knows(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.register("unknown", __name__, "Unknown")
    there = create_engine(f"unknown:///{tmp_path / 'there.db'}")
    run(sqlite, TABLE.format(char="varchar", other="text"), "INSERT INTO held VALUES ('k', 'ab', 'ab', NULL)")
    with there.begin() as connection:
        connection.exec_driver_sql(TABLE.format(char="char", other="text"))
        connection.exec_driver_sql("INSERT INTO held VALUES ('k   ', 'ab   ', 'ab', NULL)")
    install(sqlite)
    track(sqlite, ["held"])
    command = ["verify", "held", "--database", url_of(sqlite), "--wait", "0", "--against", url_of(there)]
    assert exit_code(command) == 0, capsys.readouterr()
    with there.begin() as connection:
        connection.exec_driver_sql("UPDATE held SET b = 'ab '")
    assert exit_code(command) == 1
    there.dispose()
