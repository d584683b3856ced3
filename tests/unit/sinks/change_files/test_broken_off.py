"""Change tables in files whose publisher is killed, and whose next one has less to tell: no row comes twice."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from eventlog.core.model import Op
from eventlog.sinks.change_files.settings import PARQUET, RowFiles
from eventlog.sinks.change_files.sink import ChangeTableFiles
from tests.support.changerows import CSV, JSON, documents, told
from tests.support.sinks import KilledError, dying, opened, tenure
from tests.unit.sinks.change_files.test_sink import parquet

THREE = [told(1, Op.ADD, 1), told(2, Op.ADD, 2, "grp"), told(3, Op.ADD, 3)]


def keys(folder: Path) -> list[tuple[str, int]]:
    """The number of each row, and whose row it is."""
    return sorted((row["header__change_seq"], row.get("idu") or row["idg"]) for row in parquet(folder))


@pytest.mark.parametrize("plan", ["a", "b"], ids=["the same plan", "another plan"])
def test_rows_that_are_gone_when_a_plan_is_repeated_leave_the_others_once(tmp_path: Path, plan: str) -> None:
    """The rows of the first table are deleted between the two tries, so the others are numbered anew."""
    whole, less = documents(*THREE), documents(*THREE[1:])
    for before in count(1):
        folder = tmp_path / str(before)
        former = opened(ChangeTableFiles(folder), tenure())
        with dying(before) as died, suppress(KilledError):
            former.commit("a", whole)
        heir = opened(ChangeTableFiles(folder), tenure(2))
        there = heir.resolve("a").documents is None
        heir.commit("a" if there else plan, less)
        assert [key for _, key in keys(folder)] == ([1, 2, 3] if there else [2, 3])
        assert len({number for number, _ in keys(folder)}) == (3 if there else 2)
        if not died.happened:
            return


@pytest.mark.parametrize("form", [PARQUET, CSV, JSON], ids=["parquet", "csv", "json"])
def test_files_that_are_prepared_for_a_folder_that_went_on_are_made_anew(tmp_path: Path, form: RowFiles) -> None:
    """Names, versions and loads go on from what is there when a plan is shown, not from what was there before it."""
    first, second = documents(THREE[0]), documents(THREE[2], after=documents(THREE[0])[-1].id)
    sink = opened(ChangeTableFiles(tmp_path / "a", form))
    sink.prepare("b", second)
    sink.commit("a", first)
    sink.commit("b", second)
    plain = opened(ChangeTableFiles(tmp_path / "b", form))
    plain.commit("a", first)
    plain.commit("b", second)
    state, same = ((tmp_path / name / "_position.json").read_bytes() for name in "ab")
    assert state == same
    assert not list(tmp_path.rglob("*.part"))
