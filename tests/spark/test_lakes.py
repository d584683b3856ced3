"""What the page about Spark shows of lake tables works with Delta Lake and Iceberg, on the newest Spark that has both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers import found

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "spark.md").read_text()


@pytest.mark.long
def test_change_tables_are_appended_and_merged(java: None, tmp_path: Path) -> None:
    jars, older = found("lakes", "lakes"), found("lakes", "spark-4.1")
    code = PAGE.split("### Lake tables\n")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "shown.py").write_text(code)
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(older), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tests.spark.lake", str(tmp_path / "shown.py"), str(tmp_path), f"{jars}/*"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=surroundings, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = "[(1, 'Anna', 'A'), (3, 'Cid', None)] ['2', '3', '4', '4', '5', '6']"
    assert done.stdout.splitlines() == [told, told]
