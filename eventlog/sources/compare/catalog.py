"""What is compared: tables and views, and queries as the tables that they are for those who get their rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

from eventlog.compare.tables import as_table
from eventlog.core.errors import DataError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.compare.settings import CompareSettings, QuerySettings
from eventlog.sources.compare.tables import PREFIX
from eventlog.sql.access import in_text
from eventlog.sql.dialect import dialect_of, statement
from eventlog.sql.reflect import reflect


def read_compared_catalog(
    connection: Connection, tables: Sequence[str], schema: str | None, settings: CompareSettings
) -> Catalog:
    """Read the compared tables and views, and the configured queries."""
    if not settings.queries:
        whole = reflect(connection, tables or None, schema)
        # The state may be kept in the same schema, and is not what is compared.
        ours = [table for table in whole if table.name.casefold().startswith(f"{PREFIX}_")]
        if tables or not ours:
            return whole
        return Catalog([table for table in whole if table not in ours], case_sensitive=whole.case_sensitive)
    reflected = [*reflect(connection, tables, schema)] if tables else []
    twice = next((table.name for table in reflected if table.name in settings.queries), None)
    if twice is not None:
        raise DataError(
            f"{twice} is a table of source.tables, and a query of source.compare.queries too.",
            hint="Give the query another name.",
        )
    queries = [_table(connection, name, query) for name, query in settings.queries.items()]
    return Catalog([*reflected, *queries], case_sensitive=dialect_of(connection).case_sensitive)


def query_of(table: Table, settings: CompareSettings) -> str | None:
    """Return the query behind a table, if it is one."""
    query = settings.queries.get(table.name) if table.schema is None else None
    return None if query is None else query.sql


def _table(connection: Connection, name: str, query: QuerySettings) -> Table:
    dialect = dialect_of(connection)
    row = dialect.quote(name)
    asked = statement(dialect, "compare_columns", table=in_text(as_table(query.sql)), row=in_text(row))
    names = [*connection.execute(text(asked)).keys()]
    folded = {column.casefold(): column for column in names}
    for what, named in (("key", query.key), ("types", query.types)):
        for column in named:
            if column.casefold() not in folded:
                raise DataError(
                    f"source.compare.queries.{name}.{what} names {column}, which is no column of the query.",
                    hint=f"It has {', '.join(names)}.",
                )
    keys = {column.casefold(): number for number, column in enumerate(query.key, 1)}
    types = {column.casefold(): kind for column, kind in query.types.items()}
    columns = [
        Column(name=column, type=types.get(column.casefold(), "varchar"), key=keys.get(column.casefold()))
        for column in names
    ]
    return Table(name=name, columns=tuple(columns), view=True)
