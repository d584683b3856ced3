"""Tables in lines: none is longer than the page, and nothing is cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from unittest.mock import patch

import click
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from eventlog.cli.tables import PADDED_COLUMNS, Page, fold_text, table

NAMES = ("id", "status", "table", "key", "value", "note")
LETTERS = "ab -é语\u0301🙂"
TEXTS = st.text(LETTERS, max_size=150).map(str.strip)
ROWS = st.lists(
    st.tuples(st.integers(0, 10**9).map(str), st.sampled_from("NSWE"), TEXTS, TEXTS, TEXTS, TEXTS),
    min_size=1,
    max_size=6,
)
WIDTHS = st.integers(60, 160)
PAGES = st.builds(Page, WIDTHS, st.booleans())
PIPE = Page(width=None)


def lines(rows: Sequence[Sequence[str]], page: Page, measured: int = 500) -> list[str]:
    with patch("eventlog.cli.tables.MEASURED_ROWS", measured):
        return [click.unstyle(line) for line in table(NAMES, rows, page)]


EMPTY = ("0", "N", "", "", "", "")


@example(rows=[EMPTY, ("0", "N", "", "a" * 14, "a" * 32, "")], page=Page(60), measured=1)
@given(rows=ROWS, page=PAGES, measured=st.integers(1, 7))
def test_no_line_is_longer_than_its_page(
    rows: list[tuple[str, ...]],
    page: Page,
    measured: int,
) -> None:
    width = page.width or 0
    assert [line for line in lines(rows, page, measured) if cell_len(line) > width] == []


@given(rows=ROWS, measured=st.integers(1, 7))
def test_in_a_pipe_a_row_is_a_line_with_whole_values(rows: list[tuple[str, ...]], measured: int) -> None:
    found = lines(rows, PIPE, measured)[2:]
    assert [line.split()[:2] for line in found] == [[*row[:2]] for row in rows]
    assert all(cell in line for line, row in zip(found, rows, strict=True) for cell in row)


def test_one_long_value_does_not_make_each_line_long() -> None:
    rows = [("1", "N", "usr", "v" * 1_000, "", "x"), ("2", "N", "usr", "v", "", "x")]
    first, second = lines(rows, PIPE)[2:]
    assert "v" * 1_000 in first
    assert len(second) < PADDED_COLUMNS + 60


@given(rows=ROWS, width=WIDTHS)
def test_every_word_is_there(rows: list[tuple[str, ...]], width: int) -> None:
    found = "".join(chain.from_iterable(lines(rows, Page(width=width))))
    assert "…" not in found
    for letter in set(LETTERS) - {" ", "-", "a", "b"}:  # the latter are in names of columns too
        assert found.count(letter) == sum(cell.count(letter) for row in rows for cell in row)


@given(text=TEXTS, width=st.integers(2, 80), begin=st.integers(0, 20), indent=st.integers(0, 20))
def test_a_folded_text_has_all_its_words(text: str, width: int, begin: int, indent: int) -> None:
    width += max(begin, indent)
    first, *more = fold_text(text, width, begin=begin, indent=indent)
    assert cell_len(first) <= width - begin
    assert [part for part in more if not part or cell_len(part) > width - indent] == []
    assert "".join([first, *more]).replace(" ", "") == text.replace(" ", "")
    assert all(part in text for part in (first, *more))
