"""Tasks of a conversion: by one process or many, and kept for a run that resumes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eventlog.convert import work
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.convert.work import SharedTally, Task, Workers, advance, find_why_alone, workers
from eventlog_spark.convert import _absolute


class Doubling(Task, frozen=True, kw_only=True):
    """A number that is to be doubled."""

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


def test_spark_takes_files_by_their_whole_names_and_keeps_whose_time_is_in_them(tmp_path: Path) -> None:
    source = FilesInput(places=("rows.parquet",), clock="Europe/Berlin")
    made = _absolute(Conversion(input=source, destination=tmp_path))
    assert made.input == FilesInput(places=(str(Path.cwd() / "rows.parquet"),), clock="Europe/Berlin")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the server says to who asks it for a lock there."""

    class Refusing:
        def Lock(self) -> None:  # noqa: N802  # as multiprocessing calls it
            raise PermissionError(13, "Permission denied")

    find_why_alone.cache_clear()
    monkeypatch.setattr(work, "get_context", lambda _start: Refusing())
    yield
    find_why_alone.cache_clear()


def test_who_has_a_long_temporary_folder_is_told_and_converts(tmp_path: Path) -> None:
    """Python's processes meet at a socket there, and a path of one has at most 107 bytes."""
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    row = {
        "record_id": 1,
        "event_time": "2026-03-02 11:23:42",
        "event_type": 4,
        "table_name": "usr",
        "table_key": "idu=1",
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    command = [sys.executable, "-m", "eventlog", "convert", "rows.jsonl", "--out", "out", "--engine", "local[2]"]
    environment = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "shorten TMPDIR" in done.stderr) == (0, True), done.stderr
    assert list((tmp_path / "out").glob("*.xml"))


@pytest.mark.usefixtures("alone")
def test_where_processes_can_have_no_locks_together_one_does_the_work(tmp_path: Path) -> None:
    def double(task: Doubling) -> int:
        advance(2)
        return 2 * task.number

    tally = SharedTally()
    with workers(4, tmp_path, tally) as crew:
        assert crew.run(double, [Doubling(name="a", number=1), Doubling(name="b", number=2)], int) == [2, 4]
    assert tally.rows == 4
