"""Two trials of docs/how-to/plug-ins.md, each at most 80 lines: a webhook, and changes from a CSV file, published whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from eventlog.daemon.publisher import Publisher
from tests.support.plugins import Site, proven_by_pytest, site

__all__ = ["site"]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "examples"
MOST_LINES = 80


def installed(site: Site, name: str, group: str, called: str = "") -> None:
    """The example, as pip would put it there; `called` is what it offers, if that is not its own name."""
    module = EXAMPLES / name / f"eventlog_{name}.py"
    text = module.read_text()
    value = name.upper()
    site.install(f"eventlog-{name}", {group: {called or name.replace("_", "-"): f"eventlog_{name}:{value}"}})
    shutil.copy(module, site.folder)
    assert text.count("\n") <= MOST_LINES


def test_their_author_has_proven_them(tmp_path: Path) -> None:
    folders = [EXAMPLES / name for name in ("webhook", "csv_changes")]
    tests = [folder / f"{folder.name}_test.py" for folder in folders]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*folders, ROOT]))}
    assert "passed" in proven_by_pytest("-c", os.devnull, "--rootdir", tmp_path, *tests, cwd=tmp_path, env=env)


def test_changes_from_a_csv_are_published(site: Site, tmp_path: Path) -> None:
    installed(site, "csv_changes", "sources")
    changes = tmp_path / "changes.csv"
    changes.write_text("op,at,id,name\nadd,2026-11-24T10:00:00,1,Ada\nadd,2026-11-24T10:00:01,2,Bob\n")
    file = tmp_path / "eventlog.toml"
    file.write_text(
        f'[source]\nkind = "csv-changes"\n[source.csv_changes]\npath = "{changes}"\nmarks = "{tmp_path / "marks.json"}"\n'
        f'[[output]]\nsink = "files"\npath = "{tmp_path / "out"}"\n'
    )
    assert published(file) == 2
    with changes.open("a") as out:
        out.write("modify,2026-11-24T10:00:02,1,Eve\ndelete,2026-11-24T10:00:03,2,Bob\nadd,2026-11-24T10:00:04,3,hal")
    assert published(file) == 2, "what is written half is not there yet"
    texts = [one.read_text() for one in sorted((tmp_path / "out").glob("*.xml"))]
    assert [next(word for word in ("<add ", "<modify ", "<delete ") if word in text) for text in texts] == [
        "<add ",
        "<add ",
        "<modify ",
        "<delete ",
    ]
    assert "Eve" in texts[2]


def published(file: Path) -> int:
    with Publisher.from_config(file) as publisher:
        return sum(report.documents for report in publisher.rounds(until_empty=True))
