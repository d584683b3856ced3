"""Text of any length as a parameter, where a database takes long text only as a LOB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, event

STRING_BYTES: Final = 4000
"""The longest string of Oracle's SQL, whatever MAX_STRING_SIZE says."""


def bind_long_texts(connection: Connection) -> None:
    """Bind texts longer than a string as LOB, whatever the statement and parameter.

    So no statement has a long string behind a LOB, which Oracle refuses (ORA-24816), and nobody
    lists which parameters may be long.
    """
    clob = getattr(connection.dialect.loaded_dbapi, "CLOB", None)

    def tell(
        _connection: Any,
        cursor: Any,
        _statement: str,
        parameters: Any,
        _context: Any,
        many: bool,
    ) -> None:
        long = set(_find_long(parameters if many else [parameters]))
        if long:
            cursor.setinputsizes(**dict.fromkeys(sorted(long), clob))

    event.listen(connection, "before_cursor_execute", tell)


def _find_long(rows: Sequence[Any]) -> Iterator[str]:
    for row in rows:
        if isinstance(row, Mapping):
            yield from (name for name, value in row.items() if _is_long(value))


def _is_long(value: Any) -> bool:
    # A character has four bytes at most.
    return isinstance(value, str) and len(value) > STRING_BYTES // 4 and len(value.encode()) > STRING_BYTES
