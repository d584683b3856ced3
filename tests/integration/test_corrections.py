"""An object that was refused is whole again with its correction, however its changes are captured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.plan import Style, TriggerOptions
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon import Publisher
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.outputs import FilesOutput
from tests.support.logged import run

STYLES = [Style.ROW_BACK, Style.FIELD, Style.FIELD_REPLACE, Style.IMAGE]
"""Those whose correction tells of what was refused; a row of `field-back` has no former value."""


@pytest.mark.parametrize("style", STYLES)
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
