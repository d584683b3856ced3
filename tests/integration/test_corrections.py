"""An object that was refused is whole again with its correction, however its changes are captured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.logged import run


@pytest.mark.parametrize("style", Style)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_correction_brings_what_the_refused_change_brought(
    postgresql: Engine, tmp_path: Path, style: Style, at_once: bool
) -> None:
    """A field row tells one column; the refused change had changed another one too."""
    install(postgresql)
    run(postgresql, "CREATE TABLE t (i INTEGER PRIMARY KEY, n DOUBLE PRECISION, v VARCHAR(9), w VARCHAR(9))")
    track(postgresql, ["t"], TriggerOptions(style=style))
    settings = MessageSettings(on_value="refuse-object")
    output = FilesOutput(path=str(tmp_path), format="messages", messages=settings)
    source = SourceConfig(url=postgresql.url.render_as_string(hide_password=False))
    config = Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(output,))
    with Publisher(config) as publisher:
        for change in (
            "INSERT INTO t VALUES (1, 1.5, 'a', 'w')",
            "UPDATE t SET n = 'NaN', v = 'b', w = NULL",
            "UPDATE t SET n = 2.5",
        ):
            run(postgresql, change)
            if not at_once:
                publisher.run_once()
        publisher.run_once()
    row: dict[str, Any] = {}
    for file in sorted(tmp_path.glob("*.json*")):
        for line in file.read_text().splitlines():
            message = json.loads(line)
            message = message.get("value", message)
            message = message.get("message", message)
            row |= message["data"]
    assert (row["n"], row["v"], row["w"]) == (2.5, "b", None)


@pytest.mark.parametrize("output_format", ["messages", "xds"])
def test_what_a_read_back_field_may_follow_comes_with_it_whatever_it_corrects(
    postgresql: Engine, tmp_path: Path, output_format: str
) -> None:
    """A value that still cannot be said does not refuse the next change, of another column."""
    install(postgresql)
    run(postgresql, "CREATE TABLE t (i INTEGER PRIMARY KEY, n DATE, v VARCHAR(9), w VARCHAR(9))")
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD_BACK))
    output = FilesOutput(path=str(tmp_path), format=output_format, messages=MessageSettings(on_value="refuse-object"))
    source = SourceConfig(url=postgresql.url.render_as_string(hide_password=False))
    settings = PublisherConfig(allow_loopback=True, on_value="refuse-object")
    told, seen = [], list[Path]()
    with Publisher(Config(source=source, publisher=settings, output=(output,))) as publisher:
        for change in (
            "INSERT INTO t VALUES (1, '2024-01-05', 'a', 'w')",
            "UPDATE t SET n = 'infinity', v = 'b'",
            "UPDATE t SET w = 'x'",
            "UPDATE t SET n = '2024-01-06'",
        ):
            run(postgresql, change)
            publisher.run_once()
            files = [file for file in sorted(tmp_path.glob("[!.]*.*")) if file not in seen]
            told.append("".join(file.read_text() for file in files))
            seen += files
    assert told[1] == ""
    assert "w" in told[2]
    assert "x" in told[2]
    assert "infinity" not in told[2]
    assert "2024-01-06" in told[3]
    assert all(f"{mark}b{mark}" in told[3].replace(">", '"').replace("<", '"') for mark in '"')
