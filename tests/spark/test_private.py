"""What Spark shuffles and spills is for its user alone, and encrypted where a policy hides values of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from eventlog.core.schema_file import catalog_to_json
from tests.spark.inputs import Row, write_rows
from tests.support.strategies import CATALOG

SECRET: Final = "a name that nobody may read"
ROWS: Final = 3_000
POLICY: Final = """
[[output]]
name = "feed"
sink = "stdout"

[[output.steps]]
do = "redact"
classes = ["usr"]
attributes = ["lname"]
"""


class Seen(Struct):
    """What stood in Spark's folder at some time of a run: whatever others could reach, and whether a value could be read."""

    shuffled: int = 0
    open_to_others: set[str] = set()
    with_secret: set[str] = set()

    def look(self, folder: Path) -> None:
        for place, _, names in os.walk(folder):
            for name in ["", *names]:
                path = Path(place, name)
                try:
                    mode = path.stat().st_mode & 0o777
                    content = path.read_bytes() if "shuffle" in name else b""
                except OSError:  # it has gone since
                    continue
                if mode & 0o077 and path != folder:
                    self.open_to_others.add(f"{mode:o} {path.relative_to(folder)}")
                if SECRET.encode() in content:
                    self.with_secret.add(str(path.relative_to(folder)))
                self.shuffled += "shuffle" in name


@pytest.mark.in_turn
def test_nobody_else_reads_what_spark_keeps_while_it_works(java: None, tmp_path: Path) -> None:
    source, folder = tmp_path / "in", tmp_path / "spark"
    source.mkdir()
    folder.mkdir(mode=0o755)
    write_rows(source / "all.parquet", [_row(number) for number in range(1, ROWS)])
    (tmp_path / "schema.json").write_bytes(catalog_to_json(CATALOG))
    (tmp_path / "eventlog.toml").write_text(POLICY)
    # Uncompressed, so that a value that is not encrypted would be found.
    settings = {"spark.local.dir": str(folder), "spark.shuffle.compress": "false", "spark.driver.memory": "512m"}
    settings["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={folder} -XX:TieredStopAtLevel=1"
    told = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "eventlog", "convert", str(source), "--out", str(tmp_path / "out"), "--engine"]
    run = subprocess.Popen(
        [*command, "spark", "--master", "local[2]", "--schema", "schema.json", "--config", "eventlog.toml", *told],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=0o022,
    )
    seen = Seen()
    while run.poll() is None:
        seen.look(folder)
        time.sleep(0.05)
    out, _ = run.communicate()
    assert run.returncode == 0, out
    assert seen.shuffled > 0
    assert seen.open_to_others == set()
    assert seen.with_secret == set()


def _row(number: int) -> Row:
    value = f"{SECRET} {number}"
    return number, "N", 1, "2026-01-01 00:00:00", "app", "usr", f"idu={number % 700}", "lname", None, value
