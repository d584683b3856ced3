"""The rows of a list as CSV, a part at a time. Pure but for what gives the parts."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Final

from eventlog.care.rows import LogRow

COLUMNS: Final = tuple(name for name in LogRow.__struct_fields__ if name not in ("attempts", "next_attempt"))

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How texts begin that a spreadsheet would run."""


def write_csv(parts: Iterable[Iterable[LogRow]]) -> Iterator[bytes]:
    """Write a head and then each part; NULL is empty, and no value is a formula."""
    yield _lines([COLUMNS])
    for rows in parts:
        yield _lines([_cell(getattr(row, name)) for name in COLUMNS] for row in rows)


def _lines(rows: Iterable[Iterable[object]]) -> bytes:
    into = StringIO()
    csv.writer(into, lineterminator="\r\n").writerows(rows)
    # Half of a surrogate pair is none that a file could have.
    return into.getvalue().encode("utf-8", "replace")


def _cell(entry: str | int | None) -> str:
    """Write a value so that a spreadsheet shows it and runs nothing of it."""
    text = "" if entry is None else str(entry)
    if text.startswith(FORMULA) and not _is_number(text):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
