"""One has a word of its own."""

from __future__ import annotations

import re
from pathlib import Path

from eventlog.core.plural import count_words


def test_one_is_not_many() -> None:
    assert [count_words(number, "row") for number in (0, 1, 2, 12345)] == ["0 rows", "1 row", "2 rows", "12,345 rows"]
    assert [count_words(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


def test_nothing_leaves_the_choice_to_the_reader() -> None:
    """`row(s)` is what a program says that did not look."""
    package = Path(__file__).parents[3] / "eventlog"
    files = [*package.rglob("*.py"), *package.rglob("*.sql")]
    assert [file.name for file in files if re.search(r"\w\(s\)", file.read_text(encoding="utf-8"))] == []
