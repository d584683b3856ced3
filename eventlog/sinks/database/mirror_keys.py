"""Whether the key of a mirror tells all texts apart.

A mirror that takes 'a' for 'A' would lose one of two rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, text

from eventlog.core.errors import DataError
from eventlog.sinks.database.control import Control, Record
from eventlog.sql.access import fetch, transaction
from eventlog.sql.dialect import dialect_of, statement
from eventlog.sql.loose_keys import find_loose_key


def refuse_loose_key(connection: Connection, name: str, schema: str | None, record: Record) -> None:
    """Refuses a table whose key would take different keys of the source for equal."""
    keys = [column.name for column in record.columns if column.key]
    types = {column.name.casefold(): column.type for column in record.columns}
    loose = find_loose_key(connection, name, schema, keys, types)
    if loose is not None:
        column, collation = loose
        whole = f"{schema}.{name}" if schema else name
        problem = f"its key column {column} takes different texts for equal ({collation})"
        raise DataError(f"The mirror {whole} may lose rows: {problem}.", hint=_WAY_OUT)


def loose_mirrors(engine: Engine, change_schema: str | None) -> Iterator[tuple[str, str]]:
    """Find mirrors with a wrong key; yield the problem and its correction.

    `change_schema` has the change tables.
    """
    with transaction(engine, "The database of the change tables") as connection:
        control = Control("", change_schema)
        known = sa.inspect(connection).has_table(control.records.name, change_schema)
        records = control.all_records(connection) if known else []
        query = text(statement(dialect_of(connection), "watermark_schemas"))
        for (found,) in fetch(connection, query):
            # The connection's own goes without saying.
            schema = None if found == connection.dialect.default_schema_name else found
            watermarks = sa.table("eventlog_applied", sa.column("mirror"), schema=found)
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


_WAY_OUT = (
    "Drop it, delete its row in eventlog_applied, and run `eventlog apply` again, which makes it"
    " with an exact key; rows that the change table no longer has come with `eventlog refresh`."
    " To adopt a table of your own, give its key column a collation that compares byte by byte."
)
