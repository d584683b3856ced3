"""Golden conversions: input files and what must become of them, as plain files; adding a case is adding a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from eventlog.convert.settings import SnapshotRows
from eventlog.core.schema_file import catalog_from_json
from eventlog.version import VERSION
from eventlog.xds.validate import validate
from tests.support.converting import converted, files_of, outcomes_of

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "convert"
CASES = sorted(entry for entry in FOLDER.iterdir() if entry.is_dir())

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def made(case: Path, out: Path) -> dict[str, str]:
    """Convert; return the parts without the program's version, and the outcomes as JSON lines."""
    catalog = catalog_from_json((case / "schema.json").read_bytes())
    snapshot = SnapshotRows(folder=case / "snapshot")
    converted(case / "input", out, catalog=catalog, read_back=snapshot, part_events=2)
    parts = {
        part.name: part.read_text().replace(f'version="{VERSION}"', 'version="VERSION"')
        for part in sorted(out.glob("part-*.xml"))
    }
    outcomes = "".join(json.dumps(outcome, ensure_ascii=False) + "\n" for outcome in outcomes_of(out))
    return parts | {"outcomes.jsonl": outcomes, "summary.json": files_of(out)["_SUCCESS"].decode()}


@every_case
def test_files_become_what_the_golden_folder_says(case: Path, tmp_path: Path) -> None:
    found = made(case, tmp_path / "out")
    expected = case / "expected"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        expected.mkdir(exist_ok=True)
        for name, text in found.items():
            (expected / name).write_text(text)
    assert found == {file.name: file.read_text() for file in sorted(expected.iterdir())}


@every_case
def test_golden_parts_follow_the_grammar(case: Path) -> None:
    parts = sorted((case / "expected").glob("part-*.xml"))
    assert parts
    assert [validate(part.read_bytes()) for part in parts] == [[]] * len(parts)
