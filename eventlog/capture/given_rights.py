"""Rights that were given: each as one GRANT, run, kept in the log's registry, and taken back.

Kept are only those that gave something new: what a role had before is somebody else's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from eventlog.sql.access import answers, fetch, verbatim
from eventlog.sql.dialect import Dialect, dialect_of, offers, statement
from eventlog.sql.names import LogNames
from eventlog.tracked.registry import define_setup, has_registry, read_setup


class RoleStatement(Struct, frozen=True, kw_only=True):
    """A statement, and whom it is for: the part of the work, and the role as it was named.

    `later` says that it is about a log that is not there yet.
    """

    part: str
    role: str
    sql: str
    later: bool = False


def account(dialect: Dialect, role: str) -> tuple[str, str | None]:
    """Split the user from the host, where accounts belong to hosts: `app@localhost`."""
    user, at, host = role.rpartition("@")
    if at and offers(dialect, "role_at_host"):
        return user, host
    return role, None


def quote_role(dialect: Dialect, role: str) -> str:
    user, host = account(dialect, role)
    if host is None:
        return dialect.quote(user)
    return statement(dialect, "role_at_host", user=dialect.quote(user), host=dialect.quote(host))


PREFIX: Final = "given: "
"""What the names of these notes begin with."""

_name = r'(?:[\w$]+|"(?:[^"]|"")+"|`(?:[^`]|``)+`)'
_rights = rf"[\w ]+?(?: \({_name}(?:, {_name})*\))?"
_place = rf"(?:SCHEMA )?(?:{_name}(?:\.{_name})?|\*)"
# What is taken back is one grant and nothing else.
_grant = re.compile(
    rf"GRANT (?P<what>{_rights}(?:, {_rights})*(?: ON {_place})?|{_name})"
    rf"\s+TO (?P<role>{_name}(?:@{_name})?)"
).fullmatch

# A right on a schema is none on a table.
_on_table = re.compile(rf" ON (?!SCHEMA )({_name}(?:\.{_name})?)\s+TO ")


def taking_back(grant: str) -> str | None:
    """Write the statement to revoke a grant; None if it granted nothing."""
    parts = _grant(grant)
    if parts is None:
        return None
    return f"REVOKE {parts['what']} FROM {parts['role']}"


def give(connection: Connection, names: LogNames, statements: Iterable[RoleStatement]) -> None:
    """Run statements; keep those that granted something new."""
    kept, setup = has_registry(connection, names, "setup"), define_setup(names)
    # What a role has, as long as nothing has changed since it was asked.
    known: dict[str, list[tuple[object, ...]]] = {}
    for written in statements:
        role = quote_role(dialect_of(connection), written.role)
        is_kept = kept and taking_back(written.sql) is not None
        before = (known.get(role) or _list_grants(connection, role)) if is_kept else []
        connection.execute(verbatim(written.sql))
        known = {}
        if kept and written.sql.startswith("REVOKE "):
            for grant in list_kept_grants(connection, names):
                if taking_back(grant) == written.sql:
                    connection.execute(setup.delete().where(setup.c.name == _note_name(grant)))
        if is_kept:
            known[role] = _list_grants(connection, role)
            # A right that was there before is somebody else's, and is not taken back with ours.
            if known[role] != before:
                name = _note_name(written.sql)
                connection.execute(setup.delete().where(setup.c.name == name))
                connection.execute(setup.insert(), {"name": name, "value": written.sql})


def list_kept_grants(connection: Connection, names: LogNames) -> list[str]:
    """Read the kept grants, as they were run."""
    notes = sorted(read_setup(connection, names).items())
    return [grant for name, grant in notes if name.startswith(PREFIX) and taking_back(grant) is not None]


def take_back(connection: Connection, grants: Iterable[str]) -> list[str]:
    """Revoke rights; return those not revoked. Rights on dropped objects are gone already."""
    dialect = dialect_of(connection)
    left = []
    for grant in grants:
        text = verbatim(taking_back(grant) or "")
        # Elsewhere the statement ends the transaction, and a savepoint with it.
        begun = connection.begin_nested() if dialect.ddl.transactional_ddl else nullcontext()
        try:
            with begun, _warnings(connection) as warned:
                connection.execute(text)
            # PostgreSQL warns of what another role has given, and leaves it.
            is_left = NOT_REVOKED in warned
        except SQLAlchemyError:
            # The table that it was about may be gone, where the database can be asked by its written name.
            table = _on_table.search(grant)
            can_ask = table is not None and offers(dialect, "table_owner")
            is_left = not can_ask or any(answers(connection, "table_owner", {"place": table and table[1]}))
        if is_left:
            left.append(grant)
    return left


NOT_REVOKED: Final = "01006"
"""The SQLSTATE of a right that stays, because somebody else has given it."""


@contextmanager
def _warnings(connection: Connection) -> Iterator[list[str | None]]:
    """Collect the SQLSTATEs of warnings, where the driver tells them."""
    warned: list[str | None] = []
    driver: Any = connection.connection.driver_connection

    def note(diagnostic: Any) -> None:
        warned.append(diagnostic.sqlstate)

    if not hasattr(driver, "add_notice_handler"):
        yield warned
        return
    driver.add_notice_handler(note)
    try:
        yield warned
    finally:
        driver.remove_notice_handler(note)


def _list_grants(connection: Connection, role: str) -> list[tuple[object, ...]]:
    for query in ("given_rights", "given_rights_seen"):
        if offers(dialect_of(connection), query):
            # Where the first may not be asked the second is; in a savepoint, for the transaction
            # goes on.
            with suppress(SQLAlchemyError), connection.begin_nested():
                rights = statement(dialect_of(connection), query, role=role)
                return fetch(connection, verbatim(rights))
    return []


def _note_name(grant: str) -> str:
    return PREFIX + hashlib.sha256(grant.encode()).hexdigest()
