"""Tasks whose results are kept for a run that resumes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from msgspec import Struct

from eventlog.convert.work import Workers


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
