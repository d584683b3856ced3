"""The golden files: every worked example of the reference and more; adding a case is adding a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eventlog.xds.validate import validate
from tests.support.golden_file import GoldenCase, golden_cases


@pytest.mark.parametrize("path", golden_cases(), ids=lambda path: path.stem)
def test_a_history_becomes_what_its_golden_file_says(path: Path) -> None:
    case = GoldenCase(path)
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        case.write()
        case = GoldenCase(path)
    assert case.actual() == {name: case.sections[name] for name in ("outcomes", "xds")}


@pytest.mark.parametrize("path", golden_cases(), ids=lambda path: path.stem)
def test_every_golden_document_follows_the_grammar(path: Path) -> None:
    text = GoldenCase(path).sections["xds"]
    assert validate(f'<nds dtdversion="2.0"><input>{text}</input></nds>'.encode()) == []


@pytest.mark.parametrize("path", golden_cases(), ids=lambda path: path.stem)
def test_every_event_has_exactly_one_outcome(path: Path) -> None:
    case = GoldenCase(path)
    rows = case.sections["rows"].splitlines()
    assert len(case.decide().outcomes) == len(rows) == len({row.split(" | ")[0] for row in rows})


def test_there_are_golden_files() -> None:
    assert len(golden_cases()) >= 30
