"""Marks: numbers of rows as text and as sets, and marks in a file that survive whatever happens while they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core.errors import DataError, SourceError
from eventlog.publisher.new_rows import fewer
from eventlog.sources.marks import RowRanges
from eventlog.sources.stream.source import FileMarks
from tests.support.shares import met, shares

numbers = st.lists(st.integers(min_value=-(2**62), max_value=2**62), unique=True)
crowded = st.lists(st.integers(min_value=-3, max_value=30), unique=True)


@given(st.one_of(numbers, crowded))
def test_they_hold_exactly_the_numbers(found: list[int]) -> None:
    assert [*RowRanges.of(found)] == sorted(found)


def test_the_text_is_compact() -> None:
    assert RowRanges.of([60, 61, 62, 70, 5, 6]).text() == "5..6,60..62,70"
    assert RowRanges.of(range(1, 100_001)).text() == "1..100000"
    assert (RowRanges().text(), RowRanges.read("")) == ("", RowRanges())
    assert repr(RowRanges([(1, 3), (7, 7)])) == "RowRanges('1..3,7')"
    assert RowRanges() != 0


@pytest.mark.parametrize("text", ["x", "1,", "1..", "1,,2", "1 2", "..3", "1..2..3", "1.5"])
def test_what_is_no_list_of_numbers_is_told(text: str) -> None:
    with pytest.raises(DataError, match="is not a list of numbers"):
        RowRanges.read(text)


def test_it_is_told_with_its_beginning_its_place_and_what_to_do() -> None:
    with pytest.raises(DataError) as told:
        RowRanges.read("1..3,70,x" + "9" * 100)
    shown = "1..3,70,x" + "9" * 71 + "… (29 more characters)"
    assert str(told.value) == (
        f"The mark {shown!r} is not a list of numbers (character 9)."
        " Somebody else has written it; restore the table of marks from a backup."
    )


def test_marks_in_a_file_are_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "marks.json"
    marks = FileMarks(path)
    assert marks.get("last") is None
    marks.change({"last": "7é\n", "in hand": "1..3"})
    marks.change({"in hand": None, "never set": None})
    marks.all().clear()
    again = FileMarks(path)
    assert marks.all() == again.all()
    assert (again.get("last"), again.get("in hand")) == ("7é\n", None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["marks.json"]
    assert path.read_text(encoding="utf-8") == '{\n  "last": "7é\\n"\n}\n', "people can read it"


def test_a_mark_that_cannot_be_written_is_not_remembered_either(tmp_path: Path) -> None:
    marks = FileMarks(tmp_path / "missing" / "marks.json")
    with pytest.raises(SourceError, match="cannot be written"):
        marks.change({"last": "7"})
    assert marks.get("last") is None


def test_a_crash_before_the_rename_leaves_the_former_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = FileMarks(tmp_path / "marks.json")
    marks.change({"last": "7"})

    def crash(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        marks.change({"last": "8"})
    assert FileMarks(tmp_path / "marks.json").get("last") == "7"


@pytest.mark.parametrize("content", [b"", b"[]", b'{"last": 7}', b"\xff"])
def test_a_file_that_holds_no_marks_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "marks.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match="does not hold marks") as told:
        FileMarks(path)
    assert str(told.value).endswith(
        "Restore the file; without it the source starts from the beginning and repeats what was published."
    )
    assert path.read_bytes() == content


def test_marks_that_cannot_be_read_are_told_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=str(tmp_path)):
        FileMarks(tmp_path)


number_sets = st.sets(st.integers(-5, 60)) | st.sets(st.integers(0, 12), min_size=4)
"""Scattered ones, and such as lie close together."""


@shares(common=0.2, cut=0.01)
@given(number_sets, number_sets)
@example(set(range(10)), {1, 2, 3, 5, 7, 8})
def test_they_are_sets(one: set[int], other: set[int]) -> None:
    mine, others = RowRanges.of(one), RowRanges.of(other)
    met(common=one & other, cut=len((mine - others).parts) > len(mine.parts))
    assert [*mine] == sorted(one)
    assert [*(mine | others)] == sorted(one | other)
    assert [*(mine - others)] == sorted(one - other)
    assert [*(mine & others)] == sorted(one & other)
    assert len(mine) == len(one)
    assert bool(mine) is bool(one)
    assert (mine == others) is (one == other)
    assert all((number in mine) is (number in one) for number in range(-7, 63))
    assert len({mine, RowRanges.of(one)}) == 1
    assert mine | others == RowRanges.of(one | other)


@given(number_sets, st.integers(-7, 63), st.integers(-7, 63))
def test_a_stretch_of_them_is_a_set_too(one: set[int], first: int, last: int) -> None:
    row_range = RowRanges.run(first, last)
    assert [*row_range] == [*range(first, last + 1)]
    assert RowRanges.of(one).within(first, last) == RowRanges.of(one) & row_range


@given(number_sets)
def test_they_are_as_short_as_can_be_and_read_back(one: set[int]) -> None:
    found = RowRanges.of(one)
    assert all(first - last > 1 for (_, last), (first, _) in zip(found.parts, found.parts[1:], strict=False))
    assert RowRanges.read(found.text()) == found


@shares(more=0.2, fewer=0.1)
@given(number_sets, st.integers(1, 8))
def test_fewer_gaps_hold_all_that_were_there(one: set[int], most: int) -> None:
    every = [(first, last) for first, last in gaps_of(one)]
    met(more=len(every) > most, fewer=len(every) <= most)
    found = fewer(every, most)
    assert len(found) <= most
    covered = RowRanges(found)
    assert all(number in covered for first, last in every for number in range(first, last + 1))
    assert found == sorted(found)


def gaps_of(one: set[int]) -> list[tuple[int, int]]:
    return [*(RowRanges([(-6, max(one))]) - RowRanges.of(one)).parts] if one else []
