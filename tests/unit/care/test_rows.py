"""What people type for row care: record_ids and ranges, ages, letters; and rows as an archive keeps them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.care.log_commands import check_statuses
from eventlog.care.rows import MOST_STATUS_CHARACTERS, Choice, read_age, read_runs_of_ids
from eventlog.core.errors import ConfigError, UsageError
from eventlog.purge.archive import Archive

numbers = st.integers(0, 60)
ranges = st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(ranges, max_size=8))
def test_ids_and_ranges_mean_exactly_their_numbers_each_once(wanted: list[tuple[int, int]]) -> None:
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in wanted]
    runs = read_runs_of_ids(texts)
    read = [number for first, last in runs for number in range(first, last + 1)]
    assert read == sorted({number for first, last in wanted for number in range(first, last + 1)})


@pytest.mark.parametrize("text", ["", "-5", "5-", "x", "1,2", "1..2", "5 7", "1" * 19, "٥"])
def test_what_is_no_id_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="is no record_id; write numbers and ranges"):
        read_runs_of_ids(["1", text])


def test_a_range_backwards_is_turned_around() -> None:
    with pytest.raises(UsageError, match="The range 9-7 runs backwards; write 7-9"):
        read_runs_of_ids(["1", "9-7"])


@pytest.mark.parametrize(
    "text,seconds",
    [("45s", 45), ("90m", 5400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600), (" 1 d ", 86_400)],
)
def test_an_age_is_read_in_seconds(text: str, seconds: int) -> None:
    assert read_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "30 days", "1y"])
def test_what_is_no_age_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="is no age; write a number with s, m, h, d or w"):
        read_age(text)


@given(st.text("NSWEFX", max_size=MOST_STATUS_CHARACTERS))
def test_a_query_gets_every_letter_and_no_other(statuses: str) -> None:
    parameters = Choice(statuses=statuses).parameters()
    given = {parameters[f"status_{place}"] for place in range(1, MOST_STATUS_CHARACTERS + 1)}
    assert given == (set(statuses) or {"?"})
    assert parameters["any_status"] == int(not statuses)


def test_without_pyarrow_an_archive_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install 'pyarrow>="):
        Archive(tmp_path, "event_log")


def test_letters_are_told_once_each_and_not_more_than_a_query_takes() -> None:
    assert (check_statuses("E,W,E"), check_statuses("")) == ("EW", "")
    for statuses in ("ABCDEF", "\n"):
        with pytest.raises(UsageError, match="up to 5 letters"):
            check_statuses(statuses)
