"""Many rows in one go from PostgreSQL: its library waits and reads by itself, and holds up no other thread meanwhile.

psycopg comes back to Python for every 16 KB that have arrived; where another thread computes, each time costs a
change of the interpreter's lock, which together is as much as reading the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.sql.elements import TextClause

from eventlog.sql.access import fetched

_hole = re.compile(r"%\((\w+)\)s|%%")


def fetched_at_once(
    connection: Connection, query: TextClause, parameters: Mapping[str, int | str | list[Any]]
) -> list[tuple[Any, ...]]:
    """What a lone statement finds; with another database, in a transaction or with arrays as `fetched` does it."""
    driver: Any = connection.connection.driver_connection
    plain = all(isinstance(value, int | str) for value in parameters.values())
    if not plain or not hasattr(driver, "pgconn") or not driver.autocommit:
        return fetched(connection, query, parameters)
    values: list[bytes] = []

    def place(hole: re.Match[str]) -> str:
        if hole[1] is None:
            return "%"
        values.append(str(parameters[hole[1]]).encode())
        return f"${len(values)}"

    statement = _hole.sub(place, str(query.compile(connection)))
    return _rows(driver, driver.pgconn.exec_params(statement.encode(), values))


def _rows(driver: Any, result: Any) -> list[tuple[Any, ...]]:
    from psycopg import OperationalError, errors, pq
    from psycopg.adapt import Transformer

    if result.status != pq.ExecStatus.TUPLES_OK:
        if result.error_field(pq.DiagnosticField.SQLSTATE) is None:  # the library says it: the connection is gone
            raise OperationalError(result.get_error_message())
        raise errors.error_from_result(result)
    reading = Transformer(driver)
    reading.set_pgresult(result)
    rows: list[tuple[Any, ...]] = reading.load_rows(0, result.ntuples, tuple)
    return rows
