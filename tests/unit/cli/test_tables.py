"""Tables in lines: none is longer than the page, and nothing that names a row is shortened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from unittest.mock import patch

import click
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from eventlog.cli.tables import Page, cut, folded, table

NAMES = ("id", "status", "table", "key", "value", "note")
LETTERS = "ab -é语\u0301🙂"
TEXTS = st.text(LETTERS, max_size=150).map(str.strip)
ROWS = st.lists(
    st.tuples(st.integers(0, 10**9).map(str), st.sampled_from("NSWE"), TEXTS, TEXTS, TEXTS, TEXTS),
    min_size=1,
    max_size=6,
)
WIDTHS = st.integers(60, 160)
PAGES = st.builds(Page, WIDTHS, st.booleans(), st.booleans())


def lines(rows: Sequence[Sequence[str]], page: Page, measured: int = 500) -> list[str]:
    with patch("eventlog.cli.tables.MEASURED_ROWS", measured):
        return [click.unstyle(line) for line in table(NAMES, rows, page)]


EMPTY = ("0", "N", "", "", "", "")


@example(rows=[EMPTY, ("0", "N", "", "a" * 14, "a" * 32, "")], page=Page(60, terminal=False), measured=1)
@given(rows=ROWS, page=PAGES, measured=st.integers(1, 7))
def test_no_line_is_longer_than_its_page(
    rows: list[tuple[str, ...]],
    page: Page,
    measured: int,
) -> None:
    assert [line for line in lines(rows, page, measured) if cell_len(line) > page.width] == []


@given(rows=ROWS, width=WIDTHS, measured=st.integers(1, 7))
def test_a_row_of_a_list_is_a_line_with_its_number_and_letter(
    rows: list[tuple[str, ...]], width: int, measured: int
) -> None:
    found = lines(rows, Page(width=width, terminal=False, listed=True), measured)
    assert [line.split()[:2] for line in found[2:]] == [[*row[:2]] for row in rows]


@given(rows=ROWS, width=WIDTHS)
def test_a_terminal_gets_every_word(rows: list[tuple[str, ...]], width: int) -> None:
    found = "".join(chain.from_iterable(lines(rows, Page(width=width, terminal=True))))
    assert "…" not in found
    for letter in set(LETTERS) - {" ", "-", "a", "b"}:  # the latter are in names of columns too
        assert found.count(letter) == sum(cell.count(letter) for row in rows for cell in row)


def test_the_longest_cells_are_shortened_first_and_numbers_and_times_never() -> None:
    page = Page(width=60, terminal=False, listed=True)
    row = ("1742", "E", "usr", "2026-11-25 10:00:00.123456", "v" * 50, "the receiver says no")
    assert lines([row], page)[2] == " 1742   E        usr     2026-11-25 10:00:00   vvvv…   the…"
    assert lines([(*row[:3], "idu=1", "v", "")], page)[2] == " 1742   E        usr     idu=1   v"


@given(text=TEXTS, width=st.integers(2, 80), begin=st.integers(0, 20), indent=st.integers(0, 20))
def test_a_folded_text_has_all_its_words(text: str, width: int, begin: int, indent: int) -> None:
    width += max(begin, indent)
    first, *more = folded(text, width, begin=begin, indent=indent)
    assert cell_len(first) <= width - begin
    assert [part for part in more if not part or cell_len(part) > width - indent] == []
    assert "".join([first, *more]).replace(" ", "") == text.replace(" ", "")
    assert all(part in text for part in (first, *more))


@given(text=TEXTS, width=st.integers(0, 80))
def test_a_text_is_cut_to_a_width(text: str, width: int) -> None:
    assert cell_len(cut(text, width)) <= width
    assert cut(text, max(width, cell_len(text))) == text
