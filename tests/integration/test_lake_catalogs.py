"""Iceberg's tables in each kind of catalog that can be had here, and catalogs that do not answer as they should."""

from __future__ import annotations

import json
import random
import socket
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from eventlog.config.settings import from_settings
from eventlog.core.errors import SinkError
from eventlog.core.model import Op
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.secrets import secret_places
from eventlog.sinks.lake import catalogs
from eventlog.sinks.lake.plugin import lake_tables
from tests.integration.scripted_server import ScriptedServer, Step, answer, hang_up, raw
from tests.support.changerows import GRP, USR, told
from tests.support.lakes import Lake, iceberg, iceberg_in, once, put, random_step
from tests.support.sinks import KilledError, dying

Make = Callable[..., Lake]
ADD = told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5")
BOTH = [told(2, Op.ADD, 2, fname="Ada"), told(3, Op.ADD, 3, "grp", name="staff"), told(4, Op.DELETE, 1)]


@pytest.fixture(params=["sqlite", "postgresql", "rest"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes lakes with one catalog."""
    if request.param == "sqlite":
        return lambda *positional, **chosen: iceberg(tmp_path / "lake", *positional, **chosen)
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql").url.render_as_string(hide_password=False)
        catalog, namespace = {"type": "sql", "uri": url}, "eventlog"
    else:
        server = request.getfixturevalue("catalog_server")
        catalog, namespace = server.catalog, server.namespace()
    return lambda *positional, **chosen: iceberg_in(
        catalog, tmp_path / "lake", *positional, **{"namespace": namespace, **chosen}
    )


@pytest.mark.in_turn
def test_a_mirror_equals_its_source_whatever_publisher_follows_another(lake: Make) -> None:
    chance, rows, numbers = random.Random(41), dict[int, str | None](), count(1)
    found = lake("mirror")
    sink = found.sink()
    for plan in range(8):
        changes = [change for _ in range(chance.randrange(1, 20)) for change in random_step(chance, rows, numbers)]
        put(sink, str(plan), *changes)
        assert [(row["idu"], row["fname"]) for row in found.rows("usr")] == sorted(rows.items())
        if plan % 4 == 3:
            sink = found.sink(plan)


@pytest.mark.in_turn
def test_who_dies_at_any_step_leaves_each_change_once(lake: Make) -> None:
    fates = set[bool]()
    for before in count(1):
        found = lake("mirror", task=f"task{before}", namespace=f"{lake().settings.namespace}_{before}")  # type: ignore[attr-defined]  # an output of Iceberg
        sink = found.sink()
        put(sink, "a", ADD)
        with dying(before) as died, suppress(KilledError):
            put(sink, "b", *BOTH)
        heir = found.sink(2)
        there = heir.resolve("b").documents is None
        fates.add(there)
        if not there:
            put(heir, "c", *BOTH)
        assert (found.keys("usr"), found.keys("grp")) == ([2], [3])
        if not died.happened:
            break
    assert fates == {True, False}


@pytest.mark.in_turn
@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_two_writers_at_once_lose_nothing(lake: Make, mode: str) -> None:
    failed = list[BaseException]()

    def write(task: str, begin: int) -> None:
        try:
            sink = lake(mode, task=task).sink()
            for number in range(begin, begin + 5):
                put(sink, str(number), told(number, Op.ADD, number, fname=task))
        except BaseException as error:  # noqa: BLE001  # told below
            failed.append(error)

    lake(mode).tables().schema("usr")  # which makes the tables of a catalog in a database
    threads = [Thread(target=write, args=(task, begin)) for task, begin in (("one", 1), ("two", 101))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    assert sorted(lake(mode).keys("usr" if mode == "mirror" else "usr__ct")) == [*range(1, 6), *range(101, 106)]


def test_a_commit_of_somebody_else_is_seen_and_a_column_is_added(lake: Make) -> None:
    ours, theirs = lake("mirror"), lake("mirror", task="other")
    sink, other = ours.sink(), theirs.sink()
    put(sink, "a", ADD)
    put(other, "a", told(1, Op.ADD, 20))
    more = Catalog([Table(name="usr", columns=(*USR.columns, Column(name="email", type="text"))), GRP])
    with once(type(sink._tables), "_put", lambda: put(other, "b", told(2, Op.ADD, 21))):
        put(sink, "b", told(2, Op.MODIFY, 1, fname=("Jack", "Joe"), email=(None, "a@b")), catalog=more)
    assert [(row["idu"], row["fname"], row["email"]) for row in ours.rows("usr")] == [
        (1, "Joe", "a@b"),
        (20, None, None),
        (21, None, None),
    ]


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
    assert "geheim" in {secret for _, secret in secret_places(config)}
