"""The SQL of the how-to on change tables, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.core.model import Op
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.support.changerows import documents, told
from tests.support.sinks import opened

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "change-tables.md"
QUERIES = dict(re.findall(r"^```sql\n-- ([^\n]+)\n(.+?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
AT = "2024050607080912"
FIRST, SECOND, THIRD, FOURTH = (f"{AT}{number:019d}" for number in range(1, 5))
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "each update with the row before it": [
        (FIRST, "I", 1, None, "Jack"),
        (SECOND, "U", 1, "Jack", "John"),
        (THIRD, "I", 2, None, "Ida"),
        (FOURTH, "D", 2, None, None),
    ],
    "what is left of each object, if it was not deleted": [(1, "John", SECOND)],
    "from when to when each version of an object was true": [
        (1, "Jack", FIRST, SECOND, 0),
        (1, "John", SECOND, None, 0),
        (2, "Ida", THIRD, FOURTH, 0),
        (2, None, FOURTH, None, 1),
    ],
    "the next rows after a watermark": [
        (SECOND, "B", 1, "Jack"),
        (SECOND, "U", 1, "John"),
        (THIRD, "I", 2, "Ida"),
        (FOURTH, "D", 2, None),
    ],
    "the earliest row that is still there: above the watermark, rows may have been purged that nobody has read": [
        (FIRST,)
    ],
    "the changes of each transaction": [
        (f"{number:02d}{'0' * 30}", 1, seq) for number, seq in enumerate((FIRST, SECOND, THIRD, FOURTH), 1)
    ],
}


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """A database with a change table of four changes."""
    changes = [
        told(1, Op.ADD, 1, fname="Jack"),
        told(2, Op.MODIFY, 1, fname=("Jack", "John")),
        told(3, Op.ADD, 2, fname="Ida"),
        told(4, Op.DELETE, 2),
    ]
    opened(DatabaseSink(DatabaseSettings(url=""), engine)).commit("", documents(*changes))
    return engine


def test_every_query_of_the_page_finds_what_it_says(filled: Engine) -> None:
    with filled.connect() as connection:
        found = {said: [tuple(row) for row in connection.execute(text(query))] for said, query in QUERIES.items()}
    assert found == EXPECTED
