"""How long a session lets statements run and wait for locks: never for ever."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from eventlog.errors import ConfigError
from eventlog.sql.access import IS_SET, session_statements
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.queries import statement, texts

if TYPE_CHECKING:
    from sqlalchemy import Engine

STATEMENT_SECONDS: Final = 300.0
LOCK_SECONDS: Final = 30.0
"""The defaults; ConfigError comes only where somebody asks for a limit that the database cannot keep."""

ANSWER_SECONDS: Final = 30
"""How much longer than a statement may run its answer is waited for, where the driver would wait for ever."""


def limit_sessions(engine: Engine, statement_timeout: float | None, lock_timeout: float | None) -> None:
    """Limits every session that the engine opens from now on, and prepares it for reading once and for all."""
    from sqlalchemy import event

    dialect = dialect_of(engine)
    _refuse(dialect, statement_timeout=statement_timeout, lock_timeout=lock_timeout)
    seconds = statement_timeout or STATEMENT_SECONDS
    settings = list(_settings(dialect, seconds, lock_timeout or LOCK_SECONDS))
    arguments = dict(dialect.connect_arguments)
    if dialect.answer_argument is not None:
        arguments[dialect.answer_argument] = ceil(seconds) + ANSWER_SECONDS

    def limit(connection: Any, record: Any) -> None:
        if dialect.limits_calls:
            connection.call_timeout = round(seconds * 1000)
        cursor = connection.cursor()
        for setting in settings:
            cursor.execute(setting)
        cursor.close()
        connection.commit()
        record.info[IS_SET] = True

    def hurry(_dialect: Any, _record: Any, _positional: Any, given: dict[str, Any]) -> None:
        for name, value in arguments.items():
            given.setdefault(name, value)

    event.listen(engine, "do_connect", hurry)
    event.listen(engine, "connect", limit)


def _refuse(dialect: Dialect, **wanted: float | None) -> None:
    limits = texts(dialect.folder)["session_limits"]
    for name, seconds in wanted.items():
        hole = f"/* {name.removesuffix('timeout')}"
        known = hole in limits or (dialect.limits_calls and name == "statement_timeout")
        if seconds is not None and not known:
            raise ConfigError(
                f"source.{name} cannot be set: {dialect.name} has no such limit for a session; leave it out."
            )


def _settings(dialect: Dialect, statement_seconds: float, lock_seconds: float) -> Iterator[str]:
    """What a new session is told; limits come last, for they are the narrower ones."""
    yield from session_statements(dialect)
    limits = statement(
        dialect,
        "session_limits",
        statement_ms=str(round(statement_seconds * 1000)),
        statement_s=f"{statement_seconds:.3f}",
        lock_ms=str(round(lock_seconds * 1000)),
        lock_s=str(ceil(lock_seconds)),
    )
    if limits:
        yield limits
