"""Keys whose columns take texts that differ for equal: a collation without case, CITEXT, blanks that do not count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy import Connection, text

from eventlog.core.sql_types import bare_type
from eventlog.sql.access import fetch
from eventlog.sql.dialect import dialect_of, statement

PADDED: Final = frozenset({"char", "character", "nchar", "bpchar"})
"""Types of source columns whose values have no blanks at their end."""


def find_loose_key(
    connection: Connection,
    name: str,
    schema: str | None,
    keys: Iterable[str],
    types: Mapping[str, str],
) -> tuple[str, str] | None:
    """Find the first key column that takes different values of its source for equal, and by what; `types` are
    those of the source's columns, by their names in small letters.

    None where none does.
    """
    dialect = dialect_of(connection)
    owner = None if schema is None else dialect.report_name(schema)
    where = {"schema": owner, "table": dialect.report_name(name)}
    folded = {key.casefold() for key in keys}
    query = text(statement(dialect, "loose_columns"))
    for column, collation, only_blanks in fetch(connection, query, where):
        # Values of CHAR come without blanks at their end, so none is lost where only they do not count.
        never_padded = bare_type(types.get(column.casefold(), "")) in PADDED
        if column.casefold() in folded and not (only_blanks and never_padded):
            return str(column), str(collation)
    return None
