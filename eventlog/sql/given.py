"""Rights that `eventlog rights` gave and that were not there before: kept in marks of the log, so that they can be taken back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from eventlog.sql.access import answers, fetched, verbatim
from eventlog.sql.dialect import dialect_of, log_holes, offers, statement
from eventlog.sql.names import LogNames
from eventlog.sql.triggers.asked import has_marks

PREFIX: Final = "given: "
"""What the names of these marks begin with."""

_name = r'(?:[\w$]+|"(?:[^"]|"")+"|`(?:[^`]|``)+`)'
_rights = rf"[\w ]+(?: \({_name}\))?"
_place = rf"(?:SCHEMA )?(?:{_name}(?:\.{_name})?|\*)"
# Publishers can write marks, so what stands there must be one grant and nothing else.
_grant = re.compile(
    rf"GRANT (?P<what>{_rights}(?:, {_rights})*(?: ON {_place})?|{_name})\s+TO (?P<role>{_name}(?:@{_name})?)"
).fullmatch

_on_table = re.compile(rf" ON (?!SCHEMA )({_name}(?:\.{_name})?)\s+TO ")


def taking_back(grant: str) -> str | None:
    """The statement that takes back what a grant gave; None for a statement that gave nothing."""
    found = _grant(grant)
    return f"REVOKE {found['what']} FROM {found['role']}" if found else None


def give(connection: Connection, names: LogNames, statements: Iterable[tuple[str, str]]) -> list[str]:
    """Runs statements, each with the role that it is about, and keeps those that gave something new."""
    kept, done = has_marks(connection, names), []
    known: tuple[str, list[tuple[object, ...]]] | None = None
    for role, sql in statements:
        grants = kept and taking_back(sql) is not None
        before = known[1] if known and known[0] == role else _given(connection, role) if grants else []
        connection.execute(verbatim(sql))
        done.append(sql)
        known = (role, _given(connection, role)) if grants else None
        if known and known[1] != before:
            _keep(connection, names, sql)
    return done


def given(connection: Connection, names: LogNames) -> list[str]:
    """The grants that are kept, as they were run."""
    if not has_marks(connection, names):
        return []
    query = statement(dialect_of(connection), "given_read", **log_holes(dialect_of(connection), names))
    found = [str(value) for (value,) in fetched(connection, verbatim(query))]
    return [grant for grant in found if taking_back(grant) is not None]


def take_back(connection: Connection, grants: Iterable[str]) -> list[str]:
    """Takes rights back, and tells those that could not be; rights on what is gone have gone with it."""
    whole = dialect_of(connection).transactional_ddl
    left = []
    for grant in grants:
        text = verbatim(taking_back(grant) or "")
        try:
            # Elsewhere the statement ends the transaction, and a savepoint with it.
            with connection.begin_nested() if whole else nullcontext():
                connection.execute(text)
        except SQLAlchemyError:
            left += [] if _is_gone(connection, grant) else [grant]
    return left


def _is_gone(connection: Connection, grant: str) -> bool:
    """Whether the table is gone that a grant was about, where the database can be asked by the table's written name."""
    found = _on_table.search(grant)
    if found is None or not offers(dialect_of(connection), "table_owner"):
        return False
    owners = answers(connection, "table_owner", {"place": found[1]})
    return not any(owner for (owner,) in owners)


def _given(connection: Connection, role: str) -> list[tuple[object, ...]]:
    query = statement(dialect_of(connection), "given_rights", role=role)
    with suppress(SQLAlchemyError), connection.begin_nested():
        return fetched(connection, verbatim(query))
    return []


def _keep(connection: Connection, names: LogNames, grant: str) -> None:
    query = text(statement(dialect_of(connection), "mark_write", **log_holes(dialect_of(connection), names)))
    name = PREFIX + hashlib.sha256(grant.encode()).hexdigest()
    connection.execute(query, {"name": name, "value": grant})
