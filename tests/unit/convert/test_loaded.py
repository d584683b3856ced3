"""What is loaded to convert XDS rows: nothing of other formats, receivers and sources."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.converting import log_row, write_lines

OURS = "sorted(name for name in sys.modules if name.split('.')[0] in ('eventlog', 'eventlog_spark'))"
FOREIGN = (
    "gbase",
    "linter",
    "kafka",
    "lake",
    "qlik",
    "policies",
    "database",
    "compare",
    "http",
    "capture",
    "publisher",
)
WORKER = ("eventlog_spark.deciding", "eventlog_spark.exchange", "eventlog.convert.to_xds")
"""What a Spark worker loads that reads and decides rows, and writes documents."""


def loaded(script: str, *words: str) -> Sequence[str]:
    """Our modules in a process that has run a script."""
    line = f"import sys\n{script}\nimport json\nprint(json.dumps({OURS}))"
    done = subprocess.run([sys.executable, "-c", line, *words], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


def test_a_conversion_of_rows_into_documents_loads_nothing_of_others(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [log_row(1)])
    words = ["convert", str(file), "--out", str(tmp_path / "out"), "--engine", "local[1]"]
    names = loaded("from eventlog.cli.main import exit_code; assert not exit_code(sys.argv[1:])", *words)
    folders = {part for name in names for part in name.split(".")[1:]}
    assert not folders.intersection(FOREIGN)


def test_a_worker_of_spark_loads_little() -> None:
    names = loaded(f"import {', '.join(WORKER)}")
    assert not {part for name in names for part in name.split(".")[1:]}.intersection(FOREIGN)
    assert len(names) <= 60
