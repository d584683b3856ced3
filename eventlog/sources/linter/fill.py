"""Puts the emulator's rows into a database: a DISPATCH_QUEUE for tests, and for users without a server."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import astuple

from eventlog.sources.linter.queue import queue_statement
from eventlog.sources.linter.rows import COLUMNS, QueueRow, signed

if TYPE_CHECKING:
    from sqlalchemy import Engine

WRITTEN: Final = 500
"""Rows that are written at once."""


def make_queue(engine: Engine, table: str = "DISPATCH_QUEUE") -> None:
    """Makes the table if the database does not have it."""
    from sqlalchemy import LargeBinary, inspect

    if inspect(engine).has_table(table) or inspect(engine).has_table(table.lower()):
        return
    binary = LargeBinary().compile(dialect=engine.dialect)
    with engine.begin() as connection:
        connection.exec_driver_sql(queue_statement("create", queue=table, binary=binary))


def fill_queue(engine: Engine, rows: Iterable[QueueRow], table: str = "DISPATCH_QUEUE") -> int:
    """Writes rows and says how many they were."""
    from sqlalchemy import text

    statement = text(queue_statement("insert", queue=table))
    rows, count = iter(rows), 0
    with engine.begin() as connection:
        while chunk := [stored(row) for row in islice(rows, WRITTEN)]:
            connection.execute(statement, chunk)
            count += len(chunk)
    return count


def stored(row: QueueRow) -> dict[str, Any]:
    """The row's values by column, as SQL has them: its integers are signed."""
    values = dict(zip(COLUMNS, astuple(row), strict=True))
    signs = {"TRANSACT_ID": 64, "SYSLOG_ADDR": 64, "ROWID_SRC": 32, "BLOBATR": 16}
    return {name: signed(value, signs[name]) if name in signs else value for name, value in values.items()}
