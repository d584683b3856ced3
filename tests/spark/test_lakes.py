"""What the page about Spark shows of lake tables works with Delta Lake and Iceberg, on the newest Spark that has both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.model import Op
from eventlog.sinks.lake.settings import IcebergSettings
from tests.support.changerows import told
from tests.support.lakes import LAKES, open_catalog, put
from tests.support.servers import found

USERS = [[1, "Anna", "A"], [3, "Cid", None]]
"""What six rows of the log leave of three users: one was renamed, of whom the second batch does not tell the last name; one
is gone; one is new, and has no last name.
"""

HISTORY = [
    (1, "I", "2", 1, "Ann", "A"),  # two fields of one object, next to each other, are one change; it stands at the last
    (2, "I", "3", 2, "Bob", None),
    (3, "B", "4", 1, "Ann", None),  # the row before has the number of its update, and what the log tells of it
    (3, "U", "4", 1, "Anna", None),
    (4, "D", "5", 2, None, None),  # a log of fields knows a row that is gone by its key only
    (5, "I", "6", 3, "Cid", None),
]
"""What docs/how-to/change-tables.md says of the same rows: the change's number, its letter, its place in the log, the row."""

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "spark.md").read_text()


def told_by_spark(folder: Path, *words: str) -> list[Any]:
    """What it says, line by line."""
    jars, older = found("lakes", "lakes"), found("lakes", "spark-4.1")
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(older), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tests.spark.lake", str(folder), f"{jars}/*", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=surroundings, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_change_tables_are_appended_and_merged(java: None, tmp_path: Path) -> None:
    code = PAGE.split("### Lake tables\n")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "shown.py").write_text(code)
    lakes = told_by_spark(tmp_path, "written", str(tmp_path / "shown.py"))
    for lake in lakes:
        numbers = [int(number[-19:]) for number, *_ in lake["history"]]
        assert lake["users"] == USERS
        assert [(number, *rest) for number, (_, *rest) in zip(numbers, lake["history"], strict=True)] == HISTORY
    assert len(lakes) == len(("delta", "iceberg"))


@pytest.mark.long
def test_spark_reads_what_outputs_have_written(java: None, tmp_path: Path) -> None:
    """With the code of Delta Lake and Iceberg themselves."""
    changes = (
        told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5"),
        told(2, Op.ADD, 2, fname="Zoë"),
        told(3, Op.ADD, 3),
    )
    places: list[str] = []
    for kind in ("delta", "iceberg"):
        mirror = LAKES[kind](tmp_path / kind, "mirror", partition_by=("fname",))
        sink = mirror.sink()
        put(sink, "a", *changes)
        put(sink, "b", told(4, Op.MODIFY, 2, fname=("Zoë", "Ada")), told(5, Op.DELETE, 3))
        if kind == "delta":
            places += [kind, str(tmp_path / kind / "usr")]
        else:
            assert isinstance(mirror.settings, IcebergSettings)
            table = open_catalog(**mirror.settings.properties).load_table(("eventlog", "usr"))
            places += [kind, table.metadata_location]
    expected = [["1", "Jack", "1.50", "AAAA", "2026-01-02 03:04:05.500000"], ["2", "Ada", "None", "None", "None"]]
    assert told_by_spark(tmp_path, "shown", *places) == [expected, expected]
