"""A queue in a database, made and filled with the emulator's rows: for tests and for users without
a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Final

from msgspec.structs import astuple

from eventlog.sources.linter.rows import COLUMNS, QueueRow, to_signed
from eventlog.sql.dialect import fill_holes, split

WRITTEN_ROWS: Final = 500
"""Rows that are written at once."""


def make_queue(engine: Any, table: str = "DISPATCH_QUEUE") -> None:
    """Makes the table if the database does not have it."""
    from sqlalchemy import LargeBinary, inspect

    inspector = inspect(engine)
    # Databases that fold names to lower case know the table by that.
    if inspector.has_table(table) or inspector.has_table(table.lower()):
        return
    binary = LargeBinary().compile(dialect=engine.dialect)
    with engine.begin() as connection:
        connection.exec_driver_sql(_statement("create", queue=table, binary=binary))


def fill_queue(engine: Any, rows: Iterable[QueueRow], table: str = "DISPATCH_QUEUE") -> int:
    """Writes rows and says how many they were."""
    from sqlalchemy import text

    statement = text(_statement("insert", queue=table))
    rows, count = iter(rows), 0
    with engine.begin() as connection:
        while chunk := [to_columns(row) for row in islice(rows, WRITTEN_ROWS)]:
            connection.execute(statement, chunk)
            count += len(chunk)
    return count


def to_columns(row: QueueRow) -> dict[str, Any]:
    """Map the row's values by column for SQL: its integers are signed."""
    values = dict(zip(COLUMNS, astuple(row), strict=True))
    signs = {"TRANSACT_ID": 64, "SYSLOG_ADDR": 64, "ROWID_SRC": 32, "BLOBATR": 16}
    return {name: to_signed(value, signs[name]) if name in signs else value for name, value in values.items()}


def _statement(query: str, **holes: str) -> str:
    return fill_holes(_texts()[query], holes, origin=f"queue.sql/{query}")


@cache
def _texts() -> dict[str, str]:
    return dict(split(files("eventlog_streams_tools.linter").joinpath("queue.sql").read_text(encoding="utf-8")))
