"""A new column on the day of a release: an output with the guard stops, or leaves it at home; others go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import OutputError
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import publish_all, url_of
from tests.support.logged import USR, run

UPPER: dict[str, Any] = {"do": "text", "to": "upper"}


def config_of(engine: Engine, folder: Path, guard: str, *named: str) -> Config:
    """Configure an output with the guard, and one without."""
    steps: list[dict[str, Any]] = [
        {"do": "drop", "attributes": ["age"]},
        UPPER | {"attributes": ["fname", "lname", *named]},
    ]
    files: dict[str, Any] = {"sink": "files", "format": "jsonl"}
    outputs = [
        {**files, "name": "guarded", "path": str(folder / "guarded"), "unmapped": guard, "steps": steps},
        {**files, "name": "free", "path": str(folder / "free")},
    ]
    settings = {"source": {"url": url_of(engine)}, "publisher": {"allow_loopback": True}, "output": outputs}
    return from_settings(settings, {}, origin="test")


def told(folder: Path) -> str:
    return "".join(file.read_text() for file in sorted(folder.rglob("*.jsonl")))


@pytest.mark.parametrize("guard", ["stop", "drop"])
def test_a_column_that_a_release_adds_stays_at_home(sqlite: Engine, tmp_path: Path, guard: str) -> None:
    install(sqlite)
    run(sqlite, USR[0])
    track(sqlite, ["usr"], TriggerOptions(style=Style.IMAGE))
    run(sqlite, "INSERT INTO usr VALUES (1, 'Ada', 'Byron', 36)")
    publish_all(config_of(sqlite, tmp_path, guard))
    assert "ADA" in told(tmp_path / "guarded")
    run(sqlite, "ALTER TABLE usr ADD COLUMN ssn VARCHAR(20)")
    track(sqlite, ["usr"], TriggerOptions(style=Style.IMAGE))
    run(sqlite, "INSERT INTO usr VALUES (2, 'Bob', 'Bee', 7, '078-05-1120')")
    if guard == "stop":
        with pytest.raises(OutputError, match=r"usr\.ssn is named by no mapping and no policy"):
            publish_all(config_of(sqlite, tmp_path, guard))
        assert "BOB" not in told(tmp_path / "guarded")
        publish_all(config_of(sqlite, tmp_path, guard, "ssn"))  # somebody has named it
        assert "078-05-1120" in told(tmp_path / "guarded")
    else:
        publish_all(config_of(sqlite, tmp_path, guard))
        assert "BOB" in told(tmp_path / "guarded")
        assert "078-05-1120" not in told(tmp_path / "guarded")
    assert "078-05-1120" in told(tmp_path / "free")
