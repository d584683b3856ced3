"""The figures of the full run that are kept: the page beside them says what they are, and no more."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.hardening.deaths import AT_RANDOM, RESULTS, Deaths, keep, kept, table
from tests.hardening.faults import faults_of
from tests.hardening.soaking import Soak, said
from tests.hardening.test_crash import CASES

PAGE = RESULTS / "README.md"
LEAST = 200
"""Deaths of a full run."""


def test_the_full_run_killed_at_every_place_from_everywhere_to_everywhere() -> None:
    runs = kept()
    assert {(one.database, one.sink) for one in runs} == set(CASES)
    assert sum(one.kills for one in runs) >= LEAST
    for one in runs:
        assert set(one.places) == {AT_RANDOM, *faults_of(one.sink, one.database)}


def test_the_page_says_how_many_died() -> None:
    assert "\n".join(table(kept())) in PAGE.read_text(encoding="utf-8")


def test_the_page_says_how_long_the_soak_was() -> None:
    found = msgspec.json.decode((RESULTS / "soak.json").read_bytes(), type=Soak)
    assert found.minutes >= 20
    assert said(found) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("sink", ["files", "http"])
def test_a_run_takes_the_place_of_the_former_one(tmp_path: Path, sink: str) -> None:
    first = Deaths(database="sqlite", sink="files", places={AT_RANDOM: 2}, rows=7)
    second = Deaths(database="sqlite", sink=sink, places={AT_RANDOM: 1}, rows=9)
    keep(first, tmp_path)
    keep(second, tmp_path)
    assert kept(tmp_path) == ([second] if sink == "files" else [first, second])
