"""Lineage of conversions: a run each, told to the publisher's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.config.settings import from_settings
from eventlog.lineage.converting import report_conversion


def told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "lineage.jsonl").read_text().splitlines()]


def test_one_that_fails_says_why_and_never_who_logs_in(tmp_path: Path) -> None:
    config = from_settings({"lineage": {"file": str(tmp_path / "lineage.jsonl")}}, {}, origin="test")
    url = "postgresql://app:secret@db.example/app"
    with (
        pytest.raises(ValueError, match="no luck"),
        report_conversion(config, source=url, output="out", tables=["usr"]),
    ):
        raise ValueError("no luck")
    [_, end] = told(tmp_path)
    assert end["eventType"] == "FAIL"
    assert end["run"]["facets"]["errorMessage"]["message"] == "no luck"
    assert end["inputs"][0]["namespace"] == "postgresql://db.example"
    assert "secret" not in json.dumps(told(tmp_path))
