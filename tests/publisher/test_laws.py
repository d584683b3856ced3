"""What histories are judged by finds what is lost, twice, out of order or ended wrongly, and nothing else."""

from __future__ import annotations

from math import inf

import pytest

from tests.publisher.laws import Arrival, Due, find_overtaken, judge_status


@pytest.mark.parametrize(
    "due, count, what",
    [
        (Due(), 1, None),
        (Due(), 0, "lost"),
        (Due(), 2, "twice"),
        (Due(2, 2), 1, "lost"),
        (Due(0, inf), 0, None),
        (Due(1, inf), 9, None),
    ],
)
def test_a_row_comes_as_often_as_is_due(due: Due, count: int, what: str | None) -> None:
    assert due.judge(count) == what


def test_a_row_behind_a_later_one_of_its_object_is_found() -> None:
    came = [Arrival("a", 1), Arrival("b", 9), Arrival("a", 3), Arrival("a", 2), Arrival("b", 10)]
    assert [*find_overtaken(came)] == [(3, 2, 3)]
    assert [*find_overtaken([*came[:3], Arrival("a", 2, since=3), Arrival("a", 2)])] == [(4, 2, 3)]


@pytest.mark.parametrize(
    "statuses, allowed, what",
    [
        ("S", "S", None),
        ("S", "SE", None),
        ("SE", "S", "wrong letter"),
        ("N", "S", "still waits"),
        ("SN", "S", "still waits"),
    ],
)
def test_rows_end_in_an_allowed_way(statuses: str, allowed: str, what: str | None) -> None:
    assert judge_status(statuses, allowed) == what
