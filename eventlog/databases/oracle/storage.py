"""Tablespaces and partitions in the statements that make a log.

Oracle has no tablespace of a session, so each table, key and index says its own. LOBs lie where
their table does.
"""

from __future__ import annotations

import re
from typing import Final

from eventlog.databases.oracle.types import ROWDEPENDENCIES_CLAUSE

_key: Final = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_table_end: Final = re.compile(r"^\)", re.MULTILINE)


def add_storage(statement: str, tablespace: str | None, partition_rows: int | None) -> str:
    """Add the configured storage to a statement."""
    where = f" TABLESPACE {tablespace}" if tablespace else ""
    text = statement.strip()
    if text.startswith("CREATE INDEX"):
        return f"{text}{where}"
    if not text.startswith("CREATE TABLE"):
        return statement
    is_log = text.endswith(ROWDEPENDENCIES_CLAUSE)
    rows = partition_rows if is_log else None
    index = where
    if rows:
        # A key of each partition goes with it, so that an empty partition is dropped without a look
        # at the others.
        index = f" LOCAL{where}"
    if index:
        text = _key.sub(lambda key: f"{key[0]} USING INDEX{index}", text)
    text = _table_end.sub(f"){where}", text, count=1)
    if rows is None:
        return text
    # An interval makes further partitions by itself, from the first one on.
    [number] = _key.findall(text)
    first = f"(PARTITION first_rows VALUES LESS THAN ({rows}))"
    partitions = f"PARTITION BY RANGE ({number}) INTERVAL ({rows}) {first}"
    return f"{text.removesuffix(ROWDEPENDENCIES_CLAUSE)}{partitions}\n{ROWDEPENDENCIES_CLAUSE}"
