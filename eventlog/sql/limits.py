"""How long a session lets statements run and wait for locks: never for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eventlog.errors import ConfigError
from eventlog.sql.access import IS_SET, session_statements
from eventlog.sql.dialect import dialect_of
from eventlog.sql.queries import statement, texts

if TYPE_CHECKING:
    from sqlalchemy import Engine

STATEMENT_SECONDS: Final = 300.0
LOCK_SECONDS: Final = 30.0
"""The defaults; ConfigError comes only where somebody asks for a limit that the database cannot keep."""


def limit_sessions(engine: Engine, statement_timeout: float | None, lock_timeout: float | None) -> None:
    """Limits every session that the engine opens from now on, and prepares it for reading once and for all."""
    from sqlalchemy import event

    dialect = dialect_of(engine)
    limits = texts(dialect.folder)["session_limits"]
    for name, hole, wanted in (
        ("statement_timeout", "statement_ms", statement_timeout),
        ("lock_timeout", "lock_ms", lock_timeout),
    ):
        if wanted is not None and f"/* {hole} */" not in limits:
            raise ConfigError(
                f"source.{name} cannot be set: {dialect.name} has no such limit for a session; leave it out."
            )
    sql = statement(
        dialect,
        "session_limits",
        statement_ms=str(round((statement_timeout or STATEMENT_SECONDS) * 1000)),
        lock_ms=str(round((lock_timeout or LOCK_SECONDS) * 1000)),
    )
    settings = [sql, *session_statements(dialect)] if sql else session_statements(dialect)

    def limit(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        for setting in settings:
            cursor.execute(setting)
        cursor.close()
        connection.commit()
        record.info[IS_SET] = True

    def hurry(_dialect: Any, _record: Any, _positional: Any, arguments: dict[str, Any]) -> None:
        for name, value in dialect.connect_arguments.items():
            arguments.setdefault(name, value)

    event.listen(engine, "do_connect", hurry)
    event.listen(engine, "connect", limit)
