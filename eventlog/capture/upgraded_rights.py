"""Rights on tables that an upgrade made: who was given those on the marks gets the same on them, in
the same step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.given_rights import RoleStatement, give, given, taking_back
from eventlog.capture.rights import held_rights
from eventlog.capture.track import with_schema
from eventlog.sql.dialect import dialect_of, statement
from eventlog.sql.names import LogNames

NEEDED_RIGHTS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})


def companion_grants(
    connection: Connection,
    names: LogNames,
    tables: Iterable[str],
) -> Iterator[RoleStatement]:
    """The statements for these companions.

    They begin with what `eventlog rights` has given and noted.
    """
    dialect, log = dialect_of(connection), with_schema(connection, names)
    marks, new = dialect.qualified(log.schema, log.marks), list(tables)
    if not new:
        return
    for grant in given(connection, log):
        role = (taking_back(grant) or "").rpartition(" FROM ")[2]
        wanted = statement(dialect, "publisher_on_companion", role=role, table=marks)
        if grant.split() != wanted.split():
            continue
        plain = _plain(role)
        held = {right.upper() for right in held_rights(connection, log, log.marks, plain)}
        # Publishers can write marks, so a note alone gives nothing: the role must have its rights
        # on the marks by now.
        if not held >= NEEDED_RIGHTS:
            continue
        for table in new:
            target = dialect.qualified(log.schema, table)
            text = statement(dialect, "publisher_on_companion", role=role, table=target)
            yield RoleStatement(part="publisher", role=plain, sql=text)


def give_where_allowed(
    connection: Connection,
    names: LogNames,
    statements: Iterable[RoleStatement],
) -> None:
    """Gives rights as far as whoever upgrades may: elsewhere an administrator runs `eventlog
    rights` once more.
    """
    transactional = dialect_of(connection).transactional_ddl
    log = with_schema(connection, names)
    for grant in statements:
        # Elsewhere a GRANT ends the transaction, and a savepoint with it.
        savepoint = connection.begin_nested() if transactional else nullcontext()
        with suppress(SQLAlchemyError), savepoint:
            give(connection, log, [grant])


def _plain(role: str) -> str:
    """A role as people name it: `app@localhost`, without the quotes that a statement needs."""
    parts = []
    for part in role.split("@"):
        quote = part[:1]
        parts.append(part[1:-1].replace(quote * 2, quote) if quote in ('"', "`") else part)
    return "@".join(parts)
