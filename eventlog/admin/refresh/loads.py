"""What a full load tells, and how fast it may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.schema import Table

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.names import LogNames

CHUNK_ROWS: Final = 10_000
"""Rows of a transaction, unless somebody says otherwise."""


class Load(Struct, frozen=True, kw_only=True):
    """What is to be told: a class under the name that the log has for it, the rows for which the conditions hold.

    `tracked` says that the class has triggers of this log; `when` is the condition that they have, `where` one more.
    """

    table: Table
    called: str
    tracked: bool = False
    when: str | None = None
    where: str | None = None


class RefreshPace(Struct, frozen=True, kw_only=True):
    """How many rows a transaction writes, and how many may wait in the log when it begins; 0 is no bound."""

    chunk: int = CHUNK_ROWS
    backlog: int = 0


def loads(engine: Engine, names: LogNames, tables: Sequence[str], schema: str | None, where: str | None) -> list[Load]:
    """The loads of classes by their names; InstallError where a table is missing or has no key."""
    from eventlog.sql.reflect import Classes
    from eventlog.sql.triggers import installed, plan
    from eventlog.sql.triggers.clauses import logged_name

    found = []
    with engine.connect() as connection:
        options = {trigger.marker.table: trigger.marker.options for trigger in installed(connection, names)}
        classes = Classes(connection, schema)
        for named in classes.named(tables):
            asked = options.get(named.whole)
            table = classes.one(named.whole, (), asked.key) if asked is not None and asked.key else named
            found.append(
                Load(
                    table=table,
                    called=logged_name(plan(table), names),
                    tracked=asked is not None,
                    when=asked.when if asked is not None else None,
                    where=where,
                )
            )
    return found
