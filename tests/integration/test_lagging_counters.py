"""The counters of transactions at an output that lags: 1 to n and one last there too, whatever the others have meanwhile."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from eventlog.config.build import outputs_of
from eventlog.config.settings import from_settings
from eventlog.core.errors import SinkError
from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import in_thread, publish_all, until
from tests.integration.test_transaction_counters import TABLE, Place, wrote
from tests.support.logged import run
from tests.unit.delivery.test_counting import runs


def test_who_lags_is_told_each_transaction_whole(
    postgresql: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(postgresql)
    run(postgresql, TABLE)
    track(postgresql, ["thing"], TriggerOptions(style=Style.IMAGE))
    messages = {"topic": "all", "on_value": "refuse-object", "batch_size": 3}
    outputs = [
        {"name": name, "format": "messages", "sink": "files", "path": str(tmp_path / name), "messages": messages}
        for name in ("near", "far")
    ]
    publisher = {"query_limit": 7, "polling_interval": 1, "allow_loopback": True}
    url = postgresql.url.render_as_string(hide_password=False)
    settings: dict[str, Any] = {"source": {"url": url}, "publisher": publisher, "output": outputs}
    config = from_settings(settings, {}, origin="the test")
    made = outputs_of(config)
    away = threading.Event()
    monkeypatch.setattr(made[1].sink, "commit", partial(refusing, away, made[1].sink.commit))
    wrote(postgresql, 60, 0)
    away.set()
    with in_thread(Publisher(config, outputs=made)):
        until(lambda: len(told(tmp_path / "near")) > 2, "near has some")
        assert "N" in letters(postgresql)
        wrote(postgresql, 60, 1)
        away.clear()
        until(lambda: "N" not in letters(postgresql), "all is settled")
    near, far = told(tmp_path / "near"), told(tmp_path / "far")
    assert {one: runs(places) for one, places in near.items()} == dict.fromkeys(near, 1)
    # A change of several rows is one message where they come together, so numbers differ, and ends do not.
    assert {one: runs(places) for one, places in far.items()} == dict.fromkeys(near, 1)
    assert "E" in letters(postgresql), "some are refused"


def refusing(away: threading.Event, write: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Writes, unless it is away."""
    if away.is_set():
        raise SinkError("The folder is away.")
    return write(*given, **named)


def told(folder: Path) -> dict[str, list[Place]]:
    """What the messages of each transaction say, in the order of their numbers."""
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_bytes().splitlines()]
    found: dict[str, list[Place]] = defaultdict(list)
    for one in sorted([msgspec.json.decode(line)["value"]["headers"] for line in lines], key=_sequence):
        found[one["transactionId"]].append((one["transactionEventCounter"], one["transactionLastEvent"]))
    return dict(found)


def _sequence(headers: dict[str, Any]) -> str:
    return str(headers["changeSequence"])


def letters(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(text("SELECT DISTINCT status FROM event_log")).scalars())


def test_rows_that_were_left_leave_room_for_new_ones(postgresql: Engine, tmp_path: Path) -> None:
    """What is left of a transaction may have as many rows as a batch; its end is still looked for behind them."""
    install(postgresql)
    run(postgresql, TABLE)
    track(postgresql, ["thing"], TriggerOptions(style=Style.IMAGE))
    run(
        postgresql,
        "INSERT INTO thing VALUES (5, 1, 'a', NULL)",
        "INSERT INTO thing VALUES (1, 1, 'b', NULL)",
        "UPDATE thing SET born = 'infinity', n = 2, note = 'c' WHERE id = 1",
        "UPDATE thing SET born = 'infinity', n = 2, note = 'd' WHERE id = 5",
    )
    messages = {"topic": "all", "on_value": "refuse-object"}
    output = {"format": "messages", "sink": "files", "path": str(tmp_path / "out"), "messages": messages}
    publisher = {"query_limit": 4, "allow_loopback": True}
    url = postgresql.url.render_as_string(hide_password=False)
    settings: dict[str, Any] = {"source": {"url": url}, "publisher": publisher, "output": [output]}
    publish_all(from_settings(settings, {}, origin="the test"))
    assert [*told(tmp_path / "out").values()] == [[(1, False), (2, True)]]
    assert letters(postgresql) == {"S", "E"}
