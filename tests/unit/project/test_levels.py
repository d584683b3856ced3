"""The levels of the suite: what needs more than nothing fails in this one, and what takes long is left out where nobody asks."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import pytest

from tests import watched
from tests.support.levels import leave_out_long


def test_no_program_is_started_here() -> None:
    with pytest.raises(pytest.fail.Exception, match="starts no servers"):
        subprocess.run(["true"], check=True)
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def test_no_worker_process_is_started_here() -> None:
    with pytest.raises(pytest.fail.Exception, match="starts no servers"):
        multiprocessing.get_context("spawn").Process(target=print).start()


@pytest.mark.parametrize("asked, left", [(False, ["short"]), (True, ["short", "takes-minutes"])])
def test_what_takes_long_is_asked_where_somebody_wants_it(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, asked: bool, left: list[str]
) -> None:
    marks = {"short": None, "takes-minutes": pytest.mark.long}
    items = [_Item(name, mark) for name, mark in marks.items()]
    monkeypatch.setattr(pytestconfig.option, "long", asked)
    monkeypatch.setattr(pytestconfig.hook, "pytest_deselected", lambda **_: None)
    leave_out_long(pytestconfig, items)  # type: ignore[arg-type]  # as much of an item as is asked for
    assert [item.name for item in items] == left


class _Item:
    def __init__(self, name: str, mark: object) -> None:
        self.name = name
        self._mark = mark

    def get_closest_marker(self, name: str) -> object:
        return self._mark if name == "long" else None


def test_coverage_looks_at_the_first_examples_of_a_property() -> None:
    stops: list[int] = []
    property_of = watched.limited(lambda number: number, lambda: stops.append(called))
    for called in range(watched.EXAMPLES + 9):
        assert property_of(called) == called
    assert stops == [watched.EXAMPLES]
