"""Catalogs of Iceberg that do not answer as they should; tests/conformance/test_lake.py asks each kind for what it should."""

from __future__ import annotations

import json
import socket
import time
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eventlog.config.settings import from_settings
from eventlog.core.errors import SinkError
from eventlog.core.model import Op
from eventlog.core.secrets import secret_places
from eventlog.sinks.lake import catalogs
from eventlog.sinks.lake.plugin import lake_tables
from tests.integration.scripted_server import ScriptedServer, Step, answer, hang_up, raw
from tests.support.changerows import told
from tests.support.lakes import iceberg, iceberg_in, put

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
    assert "geheim" in {secret for _, secret in secret_places(config)}
