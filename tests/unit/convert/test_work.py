"""Tasks whose results are kept for a run that resumes."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import Struct

from eventlog.convert.settings import Conversion, FilesInput
from eventlog.convert.work import Workers
from eventlog_spark.convert import _absolute


class Doubling(Struct, frozen=True, kw_only=True):
    """A number that is to be doubled."""

    name: str
    number: int
    folder: str = ""


def test_what_another_version_left_is_done_anew(tmp_path: Path) -> None:
    done: list[str] = []

    def double(task: Doubling) -> int:
        done.append(task.name)
        return 2 * task.number

    tasks = [Doubling(name="a", number=1), Doubling(name="b", number=2), Doubling(name="c", number=3)]
    (tmp_path / "a.json").write_text("2")
    (tmp_path / "b.json").write_text('{"doubled": 4}')
    crew = Workers(tmp_path, cast("Any", SimpleNamespace(shared=None)), None)
    assert crew.run(double, tasks, int) == [2, 4, 6]
    assert done == ["b", "c"]
    assert crew.run(double, tasks, int) == [2, 4, 6]
    assert done == ["b", "c"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked for it")
def test_what_is_free_between_what_is_used_is_given_back() -> None:
    """Each hundredth value is kept, so that no whole end of the heap is free."""
    code = """
import os
from pathlib import Path
from eventlog.convert.work import give_back

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20

values = [bytes(20_000) for _ in range(5_000)]
values = values[::100]
before = held()
give_back()
print(before - held())
"""
    environment = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert int(done.stdout) > 50, "MiB of the hundred that were free"


def test_spark_takes_files_by_their_whole_names_and_keeps_whose_time_is_in_them(tmp_path: Path) -> None:
    source = FilesInput(places=("rows.parquet",), statuses="NE", clock="Europe/Berlin")
    made = _absolute(Conversion(input=source, destination=tmp_path))
    assert made.input == FilesInput(places=(str(Path.cwd() / "rows.parquet"),), statuses="NE", clock="Europe/Berlin")
