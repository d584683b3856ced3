"""Whether the key of a mirror tells all texts apart.

A mirror that takes 'a' for 'A' would lose one of two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, text

from eventlog.core.errors import DataError
from eventlog.core.sql_types import bare_type
from eventlog.sinks.database.control import Control, Record
from eventlog.sql.access import fetched, transaction
from eventlog.sql.dialect import dialect_of, statement

PADDED = frozenset({"char", "character", "nchar", "bpchar"})
"""Types of source columns whose values have no blanks at their end."""


def refuse_loose_key(connection: Connection, name: str, schema: str | None, record: Record) -> None:
    """Refuses a table whose key would take different keys of the source for equal."""
    keys = [column.name for column in record.columns if column.key]
    types = {column.name.casefold(): column.type for column in record.columns}
    loose = _loose_key(connection, name, schema, keys, types)
    if loose is not None:
        column, collation = loose
        whole = f"{schema}.{name}" if schema else name
        problem = f"its key column {column} takes different texts for equal ({collation})"
        raise DataError(f"The mirror {whole} may lose rows: {problem}.", hint=_WAY_OUT)


def loose_mirrors(engine: Engine, change_schema: str | None) -> Iterator[tuple[str, str]]:
    """What is wrong with the keys of mirrors that are there, and what mends it.

    `change_schema` has the change tables.
    """
    with transaction(engine, "The database of the change tables") as connection:
        control = Control("", change_schema)
        known = sa.inspect(connection).has_table(control.records.name, change_schema)
        records = control.all_records(connection) if known else []
        query = text(statement(dialect_of(connection), "watermark_schemas"))
        for (schema,) in fetched(connection, query):
            watermarks = sa.table("eventlog_applied", sa.column("mirror"), schema=schema)
            for name in connection.scalars(sa.select(watermarks.c.mirror)).all():
                # A mirror beside change tables is called as its source, with a suffix that only
                # `apply` knows; of several sources the longest name fits best.
                alike = [record for record in records if name.startswith(record.table)]
                if not alike:
                    continue
                of = max(alike, key=lambda record: len(record.table))
                try:
                    refuse_loose_key(connection, name, schema, of)
                except DataError as error:
                    yield error.message, error.hint or ""


def _loose_key(
    connection: Connection,
    name: str,
    schema: str | None,
    keys: Iterable[str],
    types: Mapping[str, str],
) -> tuple[str, str] | None:
    """The first key column that takes different values of its source for equal, and by what.

    None where none does.
    """
    dialect = dialect_of(connection)
    owner = None if schema is None else dialect.reported(schema)
    where = {"schema": owner, "table": dialect.reported(name)}
    folded = {key.casefold() for key in keys}
    query = text(statement(dialect, "loose_columns"))
    for column, collation, only_blanks in fetched(connection, query, where):
        # Values of CHAR come without blanks at their end, so none is lost where only they do not count.
        never_padded = bare_type(types.get(column.casefold(), "")) in PADDED
        if column.casefold() in folded and not (only_blanks and never_padded):
            return column, collation
    return None


_WAY_OUT = (
    "Drop it, delete its row in eventlog_applied, and run `eventlog apply` again, which makes it"
    " with an exact key; rows that the change table no longer has come with `eventlog refresh`."
    " To adopt a table of your own, give its key column a collation that compares byte by byte."
)
