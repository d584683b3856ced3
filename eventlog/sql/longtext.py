"""Text of any length as a parameter, where a database takes long text only as a LOB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, event

STRING_BYTES: Final = 4000
"""The longest string of Oracle's SQL, whatever MAX_STRING_SIZE says."""

LONG_COLUMNS: Final = frozenset(
    [
        "answers",
        "awaiting",
        "body",
        "changed",
        "covers",
        "definition",
        "described",
        "details",
        "new_value",
        "note",
        "objects",
    ]
    + [
        "old_value",
        "options",
        "paused",
        "recent",
        "records",
        "route",
        "transactions",
        "value",
        "warning",
        "watched",
        "whole_name",
    ]
)
"""The columns of our tables that are LOBs; a parameter for one of them has its name."""
_named = re.compile(r":([a-z]\w*)")
_document = re.compile(r"JSON_TABLE\(:([a-z]\w*)")


@lru_cache(maxsize=1000)
def find_long_parameters(statement: str) -> frozenset[str]:
    """Find the parameters of a statement that are for LOBs: of our columns, and documents that it reads."""
    return LONG_COLUMNS.intersection(_named.findall(statement)).union(_document.findall(statement))


def bind_long_texts(connection: Connection) -> None:
    """Bind all texts of a statement that are for LOBs as LOBs, where one of them is longer than a string.

    All or none: Oracle refuses a string of more than 1,000 characters behind a LOB (ORA-24816). Short texts are
    strings, because each LOB is made by two calls to the server.
    """
    clob = getattr(connection.dialect.loaded_dbapi, "CLOB", None)

    def set_sizes(
        _connection: Any,
        cursor: Any,
        statement: str,
        parameters: Any,
        _context: Any,
        many: bool,
    ) -> None:
        rows = [row for row in (parameters if many else [parameters]) if isinstance(row, Mapping)]
        long = {name for row in rows for name, value in row.items() if _is_long(value)}
        lobs = find_long_parameters(statement) if long else frozenset[str]()
        if long & lobs:
            cursor.setinputsizes(**dict.fromkeys(sorted(lobs & rows[0].keys()), clob))

    event.listen(connection, "before_cursor_execute", set_sizes)


def _is_long(value: Any) -> bool:
    # A character has four bytes at most.
    return isinstance(value, str) and len(value) > STRING_BYTES // 4 and len(value.encode()) > STRING_BYTES
