"""Lineage: run events as OpenLineage has them, told while rows come, and nothing of who logs in."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from eventlog.config.settings import from_settings
from eventlog.core.errors import SinkError
from eventlog.core.plugins import BackgroundOrder
from eventlog.daemon.health import VitalsReading
from eventlog.lineage.events import append_event
from eventlog.lineage.publishing import LINEAGE, PublisherLineage, name_source


def order_of(folder: Path, reading: Any) -> BackgroundOrder:
    settings = {
        "source": {"url": "postgresql://app:secret@db.example/app"},
        "output": [{"sink": "files", "path": "out", "name": "people"}],
        "lineage": {"file": str(folder / "lineage.jsonl"), "every": 1},
    }
    config = from_settings(settings, {}, origin="test")
    assert LINEAGE.wanted(config)
    return BackgroundOrder(
        config=config, names=None, journal=None, vitals=SimpleNamespace(reading=reading), mark=lambda *_: None
    )


def told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "lineage.jsonl").read_text().splitlines()]


def test_a_run_begins_tells_what_came_and_ends(tmp_path: Path) -> None:
    asked: list[int] = []

    def reading() -> VitalsReading:
        asked.append(1)
        if len(asked) == 2:
            work.stop()
        return VitalsReading(tables={"usr": 5})

    work = PublisherLineage(order_of(tmp_path, reading))
    thread = Thread(target=work.run)
    thread.start()
    thread.join(60)
    events = told(tmp_path)
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1
    last = events[-1]
    assert [(one["name"], one["inputFacets"]["inputStatistics"]["rowCount"]) for one in last["inputs"]] == [("usr", 5)]
    assert last["outputs"] == [{"namespace": "eventlog", "name": "people"}]
    assert {"eventTime", "producer", "schemaURL", "job", "run"} <= last.keys()
    # The pointer of the published schema: a receiver looks up by it what it has.
    assert last["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert "secret" not in json.dumps(events)


def test_a_run_that_failed_says_so(tmp_path: Path) -> None:
    work = PublisherLineage(order_of(tmp_path, lambda: VitalsReading(error="The database is away.")))
    work.stop()
    work.run()
    end = told(tmp_path)[-1]
    assert (end["eventType"], end["run"]["facets"]["errorMessage"]["message"]) == ("FAIL", "The database is away.")


@pytest.mark.parametrize(
    "url, name",
    [
        ("postgresql+psycopg://app:x@db:5432/app", "postgresql://db:5432"),
        ("mariadb+pymysql://app:x@db/app", "mariadb://db"),
        ("sqlite:////srv/app.db", "file:///srv/app.db"),
        ("", "stream"),
    ],
)
def test_a_source_is_named_without_its_login(url: str, name: str) -> None:
    assert name_source(url) == name


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="cannot be written"):
        append_event(tmp_path / "none" / "lineage.jsonl", {})


def test_without_a_file_there_is_none() -> None:
    assert not LINEAGE.wanted(from_settings({}, {}, origin="test"))
