"""Tables of a lake by the whole way, and stores and catalogs that do not answer as they should."""

from __future__ import annotations

import json
import random
import signal
import socket
import time
from base64 import b64encode
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError, SinkError
from eventlog.core.model import Op
from eventlog.core.secrets import secret_paths
from eventlog.sinks.lake import catalogs
from eventlog.sinks.lake.plugin import DeltaOutput, IcebergOutput, lake_tables
from eventlog.sinks.store.address import StoreSettings
from eventlog.tracked.options import Style, TriggerOptions
from tests.acceptance.command import eventlog
from tests.integration.publishing import publish_all
from tests.integration.scripted_server import ScriptedServer, Step, answer, hang_up, raw
from tests.integration.test_object_store import answering
from tests.support.changerows import told
from tests.support.converting import log_row, write_lines
from tests.support.forking import Forked
from tests.support.lakes import LAKES, Lake, iceberg, iceberg_in, put
from tests.support.servers_store import SECRET, StoreServer

SCHEMA = """{"tables": [{"name": "usr", "columns": [
    {"name": "idu", "type": "integer", "key": 1}, {"name": "fname", "type": "varchar(8)"}]}]}"""
DYING_AT_A_TABLE = """
import os, signal
from eventlog.sinks.lake import sink
def die(self, staged):
    os.kill(os.getpid(), signal.SIGKILL)
sink.LakeSink._put_plan = die
"""
"""A process that is killed when a plan is shown and no table has it."""

TABLE = "CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR(40), pay NUMERIC(10,2), photo BLOB)"


def output_of(lake: Lake) -> dict[str, Any]:
    settings = lake.settings
    found: dict[str, Any] = {"sink": settings.sink, "path": settings.path, "mode": settings.mode}
    if isinstance(settings, IcebergOutput):
        found["catalog"] = settings.catalog
    return found


def logged(folder: Path, *lakes: Lake) -> tuple[Engine, Config]:
    engine = create_engine(f"sqlite:///{folder / 'app.db'}")
    with engine.begin() as connection:
        connection.execute(text(TABLE))
    install(engine)
    track(engine, ["people"], TriggerOptions(style=Style("image")))
    settings = {
        "source": {"url": str(engine.url)},
        "publisher": {"allow_loopback": True},
        "output": [output_of(one) | {"name": f"lake {number}"} for number, one in enumerate(lakes)],
    }
    return engine, from_settings(settings, {}, origin="a test")


def source(engine: Engine) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(text("SELECT * FROM people ORDER BY id")).mappings()]


def change(engine: Engine, dice: random.Random) -> None:
    values = {
        "k": dice.randint(1, 9),
        "other": dice.randint(1, 9),
        "name": dice.choice([None, "", "Ada", 'O\'Neil, "x"\\']),
        "pay": dice.choice([None, 1.5, -99999.99]),
        "photo": dice.choice([None, b"", b"\xaa\x00"]),
    }
    statement = dice.choice(
        [
            "INSERT OR REPLACE INTO people (id, name, pay, photo) VALUES (:k, :name, :pay, :photo)",
            "UPDATE people SET name = :name WHERE id = :k",
            "UPDATE people SET pay = :pay, photo = :photo WHERE id = :k",
            "UPDATE OR IGNORE people SET id = :other WHERE id = :k",
            "DELETE FROM people WHERE id = :k",
        ]
    )
    with engine.begin() as connection:
        connection.execute(text(statement), values)


@pytest.mark.parametrize("kind", sorted(LAKES))
def test_mirrors_equal_the_source_and_change_tables_have_each_change_once(tmp_path: Path, kind: str) -> None:
    """Also when the table gets a column in between."""
    tables, mirror = LAKES[kind](tmp_path / "tables"), LAKES[kind](tmp_path / "mirrors", "mirror")
    engine, config = logged(tmp_path, tables, mirror)
    dice = random.Random(kind)
    for number in range(6):
        for _ in range(dice.randint(1, 12)):
            change(engine, dice)
        if number == 3:
            with engine.begin() as connection:
                connection.execute(text("ALTER TABLE people ADD COLUMN email VARCHAR(40)"))
            track(engine, ["people"], TriggerOptions(style=Style("image")))
            with engine.begin() as connection:
                connection.execute(text("INSERT INTO people (id, email) VALUES (100, 'a@b')"))
        publish_all(config)
        found = mirror.read("people")
        rows = [] if found is None else sorted(found.to_pylist(), key=lambda row: row["id"])
        assert [_plain(row) for row in rows] == [_plain(row) for row in source(engine)]
    changes = tables.read("people__ct")
    assert changes is not None
    seen = [(row["header__change_seq"], row["header__change_oper"]) for row in changes.to_pylist()]
    assert len(seen) == len(set(seen)) > 6
    with engine.connect() as connection:
        statuses = set(connection.scalars(text("SELECT DISTINCT status FROM event_log")))
    assert statuses <= {"S", "W"}
    engine.dispose()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(value) if name == "pay" else value for name, value in row.items() if value is not None}


def test_a_catalog_keeps_its_secrets() -> None:
    catalog = {"type": "rest", "uri": "https://u:pw-of-uri@c", "token": "tok-1", "credential": "me:cred-2"}
    catalog |= {"s3.secret-access-key": "key-3", "adls.account-key": "key-4", "warehouse": "w"}
    output = IcebergOutput(path="s3://bucket/lake", catalog=catalog)
    assert {"pw-of-uri", "tok-1", "me:cred-2", "key-3", "key-4"} <= {secret for _, secret in secret_paths(output)}
    assert "w" not in {secret for _, secret in secret_paths(output)}
    assert not [one for one in catalog.values() if one in repr(output)]


@pytest.mark.parametrize(
    "keys, said",
    [
        ({"path": "ftp://host/x"}, "nothing is written to ftp://"),
        ({"path": "s3://u:p@bucket/x"}, "no address of a bucket"),
        ({"task": "a/b"}, "output.task"),
        ({"store": StoreSettings(region="x")}, "output.path is a folder"),
        ({"optimize_every": -1}, "below 0"),
    ],
)
def test_settings_that_make_no_tables_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DeltaOutput(**({"path": "lake"} | keys))


@pytest.mark.parametrize("keys", [{"headers": ("change_seq", "change_oper")}, {"before_image": False}])
def test_a_mirror_needs_what_tells_of_its_rows(keys: dict[str, Any]) -> None:
    tables = replace(DeltaOutput(path="x").change_tables, **keys)
    with pytest.raises(ConfigError, match='mode is "mirror"'):
        DeltaOutput(path="x", mode="mirror", change_tables=tables)
    with pytest.raises(ConfigError, match="neither a type nor a uri"):
        IcebergOutput(path="x", catalog={})


@pytest.mark.parametrize("kind", sorted(LAKES))
@pytest.mark.parametrize(
    "status, code, said",
    [
        (403, "AccessDenied", "may not be used with these credentials"),
        # Answers to HEAD, which Iceberg's library begins with, say 404 and no more.
        (404, "NoSuchBucket", "has no such bucket|No such file or directory"),
        (503, "SlowDown", "asks for fewer requests"),
        (0, "", "does not answer"),
    ],
)
def test_a_store_that_fails_under_a_table_is_told_and_what_waits_comes_later(
    s3_store: StoreServer, tmp_path: Path, kind: str, status: int, code: str, said: str
) -> None:
    address = s3_store.address()
    lake = LAKES[kind](address, store=s3_store.settings, catalog_folder=tmp_path)
    sink = lake.sink()
    put(sink, "a", told(1, Op.ADD, 1))
    with answering(status, code) if status else nullcontext("http://127.0.0.1:9") as url:
        store = StoreSettings(endpoint=url, region="us-east-1")
        away = LAKES[kind](address, store=store, catalog_folder=tmp_path).tables()
        tables, sink._tables = sink._tables, away
        with pytest.raises(SinkError, match=said) as caught:
            put(sink, "b", told(2, Op.ADD, 2, fname="Ada"))
        assert caught.value.may_pass
        assert SECRET not in f"{caught.value} {caught.value.hint}"
    sink._tables = tables
    if sink.resolve("b").documents is not None:
        put(sink, "b", told(2, Op.ADD, 2, fname="Ada"))
    assert lake.keys("usr__ct") == [1, 2]


@pytest.mark.parametrize("kind", sorted(LAKES))
def test_a_conversion_goes_into_a_lake_once_and_goes_on_after_a_kill(tmp_path: Path, kind: str) -> None:
    lines = write_lines(
        tmp_path / "log.jsonl",
        [log_row(n, table_key=f"idu={n}", new_value=f"n{n}") for n in range(1, 21)],
    )
    (tmp_path / "schema.json").write_text(SCHEMA)
    lake = LAKES[kind](tmp_path / "lake")
    output = output_of(lake)
    file = tmp_path / "eventlog.toml"
    catalog = f'catalog = {{ type = "sql", uri = "{output["catalog"]["uri"]}" }}\n' if "catalog" in output else ""
    file.write_text(f'[[output]]\nname = "lake"\nsink = "{kind}"\npath = "{output["path"]}"\n{catalog}')
    words = ("convert", str(lines), "--schema", str(tmp_path / "schema.json"), "--to", "change-tables")
    into = ("--config", str(file), "--engine", "local", "--output")
    here = (*words, *into, "lake", "--out", str(tmp_path / "outcomes"))
    killed = Forked(*here, environment={}, program=DYING_AT_A_TABLE)
    assert killed.wait(120) == -signal.SIGKILL
    assert lake.read("usr__ct") is None
    for _ in range(2):
        done = eventlog(*here)
        assert done.returncode == 0, done.stderr
        assert lake.keys("usr__ct") == list(range(1, 21))
    other = eventlog(*words, *into, "lak", "--out", str(tmp_path / "x"))
    assert (other.returncode, "The configuration has no output named lak" in other.stderr) == (64, True)


ADD = told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5")


def once_answered(status: str, kind: str = "", *headers: str) -> Step:
    """Answers as catalogs refuse, or with a page, and closes the connection."""
    error = {"error": {"message": "token=of-eventlog is none", "type": kind, "code": 0}}
    step = answer(json.dumps(error).encode() if kind else b"<html>It works!</html>", status, *headers)

    def act(connection: socket.socket) -> None:
        step(connection)
        hang_up(connection)

    return act


def deaf(connection: socket.socket) -> None:
    """Says nothing for longer than any test waits."""
    connection.settimeout(60)
    with suppress(OSError):
        connection.recv(1)


@pytest.mark.parametrize(
    "step, said",
    [
        (once_answered("401 Unauthorized", "NotAuthorizedException"), "does not know these credentials"),
        (once_answered("403 Forbidden", "ForbiddenException"), "does not allow that"),
        (once_answered("400 Bad Request", "NoSuchWarehouseException"), "does not accept what it is asked"),
        (once_answered("503 Busy", "ServiceUnavailableException"), "cannot be written"),
        (once_answered("200 OK"), "cannot be written"),
        (once_answered("302 Found", "", "Location: http://127.0.0.1:9/elsewhere"), "does not answer"),
        (raw(b"SSH-2.0-nothing\r\n"), "does not answer"),
        (deaf, "does not answer"),
    ],
)
def test_a_catalog_that_does_not_do_its_part_is_told_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Step, said: str
) -> None:
    monkeypatch.setattr(catalogs, "ANSWER_SECONDS", 0.5)
    whole = iceberg(tmp_path / "lake")
    sink = whole.sink()
    put(sink, "a", ADD)
    with ScriptedServer([step]) as server:
        catalog = {"type": "rest", "uri": f"http://localhost:{server.port}", "token": "of-eventlog"}
        tables, sink._tables = sink._tables, iceberg_in(catalog, tmp_path / "lake").tables()
        began = time.monotonic()
        with pytest.raises(SinkError, match=said) as caught:
            put(sink, "b", told(2, Op.ADD, 2))
        assert time.monotonic() - began < 40
    assert caught.value.may_pass
    assert "nothing is lost" in str(caught.value.hint)
    assert "of-eventlog" not in f"{caught.value} {caught.value.hint}"
    sink._tables = tables
    if sink.resolve("b").documents is not None:
        put(sink, "b", told(2, Op.ADD, 2))
    assert whole.keys("usr__ct") == [1, 2]


def test_a_database_of_a_catalog_that_is_down_keeps_its_password(tmp_path: Path) -> None:
    catalog: dict[str, Any] = {"type": "sql", "uri": "postgresql+psycopg://me:geheim@127.0.0.1:9/catalog"}
    with pytest.raises(SinkError, match=r"The catalog of eventlog\.usr does not answer") as caught:
        iceberg_in(catalog, tmp_path / "lake").tables().schema("usr")
    assert "geheim" not in str(caught.value)


def test_every_property_of_a_catalog_is_passed_on(tmp_path: Path) -> None:
    """Also those that are tables of their own, as PyIceberg has them for logins."""
    login = {"type": "basic", "basic": {"username": "me", "password": "geheim"}}
    refused = once_answered("403 Forbidden", "ForbiddenException")
    with ScriptedServer([refused]) as server:
        catalog = {"type": "rest", "uri": f"http://localhost:{server.port}", "auth": login, "header.x-team": "hr"}
        output = {"sink": "iceberg", "path": str(tmp_path), "catalog": catalog}
        config = from_settings({"output": [output]}, {}, origin="a test")
        with pytest.raises(SinkError, match="does not allow that"):
            lake_tables(config.output[0]).schema("usr")  # type: ignore[arg-type]  # an output of Iceberg
        [(head, _)] = server.requests
    assert f"Authorization: Basic {b64encode(b'me:geheim').decode()}" in head
    assert "x-team: hr" in head
    assert "geheim" in {secret for _, secret in secret_paths(config)}
