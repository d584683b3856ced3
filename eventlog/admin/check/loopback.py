"""The point about loopback: whether the publisher's own user changes captured tables, which is not published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from eventlog.admin.check.point import Point, ok, warning
from eventlog.config.settings import Config
from eventlog.sql.access import fetched, transaction, verbatim
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.queries import offers, statement
from eventlog.sql.rights import held_rights
from eventlog.sql.triggers import tracked
from eventlog.sql.triggers.track import with_schema

if TYPE_CHECKING:
    from sqlalchemy import Engine

WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "INSERT ANY TABLE", "UPDATE ANY TABLE", "DELETE ANY TABLE"})
MOST_SHOWN_TABLES: Final = 5


def loopback_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """What the publisher's own user may write to; whoever tries everything with one user sees no document otherwise."""
    user = config.source.user or engine.url.username
    if dialect_of(engine).embedded or not user:
        return
    if config.publisher.allow_loopback:
        yield ok("loopback", f"changes that {user} makes are published too")
        return
    tables = _written_by(engine, names, config.source.user)
    if not tables:
        yield ok("loopback", f"{user} may not change captured tables")
        return
    more = f" and {len(tables) - MOST_SHOWN_TABLES} more" if len(tables) > MOST_SHOWN_TABLES else ""
    said = f"{user} may change {', '.join(tables[:MOST_SHOWN_TABLES])}{more}; what the publisher's own user changes is not published."
    mend = "Give the publisher a user of its own (`eventlog rights --publisher`); to try with one user, set publisher.allow_loopback = true."
    yield warning("loopback", said, mend)


def _written_by(engine: Engine, names: LogNames, user: str | None) -> list[str]:
    dialect = dialect_of(engine)
    with transaction(engine, "The captured tables") as connection:
        role = user
        if role is None:
            query = "connected_account" if offers(dialect, "connected_account") else None
            role = str(fetched(connection, verbatim(statement(dialect, query)))[0][0]) if query else engine.url.username
        classes = tracked(connection, with_schema(connection, names))
        return [
            table.whole
            for table in classes
            if not table.view
            and WRITES.intersection(
                held_rights(connection, replace(names, schema=table.schema), table.name, dialect.reported(role or ""))
            )
        ]
