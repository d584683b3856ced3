"""One table as a database describes it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine

from eventlog.core.schema import Table
from eventlog.sql.reflect import reflect


def reflect_table(
    where: Engine | Connection, name: str, schema: str | None = None, children: Sequence[str] = ()
) -> Table:
    return reflect(where, [name], schema, children).tables[0]
