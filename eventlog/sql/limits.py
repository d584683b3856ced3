"""How long a session lets statements run and wait for locks: never for ever."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, Final

from sqlalchemy import Engine, event

from eventlog.core.errors import ConfigError
from eventlog.sql.access import IS_SET, session_statements
from eventlog.sql.dialect import Dialect, dialect_of, statement, texts

STATEMENT_SECONDS: Final = 300.0
LOCK_SECONDS: Final = 30.0
"""The defaults; ConfigError comes only where somebody asks for a limit that the database cannot keep."""

ANSWER_SECONDS: Final = 30
"""How much longer than a statement may run its answer is waited for, where the driver would wait for ever."""

IDLE_LEASES: Final = 2
"""A transaction may be idle for so many leases: between two statements of it a large batch is computed, and machines stutter."""

SHORTEST_SECONDS: Final = 1.0
"""No lease counts as shorter here."""

PROBES: Final = 3
"""After so many probes without an answer a connection counts as dead."""


def limit_sessions(
    engine: Engine, statement_timeout: float | None, lock_timeout: float | None, lease: float | None = None
) -> None:
    """Limits every session that the engine opens from now on, and prepares it for reading once and for all.

    With a `lease`, a client that is frozen or cut off while it holds row locks loses its session within two of them,
    as far as the database can do that.
    """
    dialect = dialect_of(engine)
    _refuse(dialect, statement_timeout=statement_timeout, lock_timeout=lock_timeout)
    seconds = statement_timeout or STATEMENT_SECONDS
    settings = list(_settings(dialect, seconds, lock_timeout or LOCK_SECONDS))
    if lease is not None:
        settings += _lease_settings(dialect, lease)
    arguments = _connect_arguments(dialect, lease)
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
    limits = texts(dialect.name).get("session_limits", "")
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


def _lease_settings(dialect: Dialect, lease: float) -> list[str]:
    """What a new session is told so that nobody waits for its client much longer than a lease."""
    seconds = max(lease, SHORTEST_SECONDS)
    limits = statement(
        dialect,
        "lease_limits",
        idle_ms=str(round(seconds * IDLE_LEASES * 1000)),
        idle_s=str(ceil(seconds * IDLE_LEASES)),
        silent_s=str(ceil(seconds)),
        probe_s=str(ceil(seconds / PROBES)),
        probes=str(PROBES),
        unheard_ms=str(round(seconds * 2000)),
    )
    return [limits] if limits else []


def _connect_arguments(dialect: Dialect, lease: float | None) -> dict[str, int]:
    """What keeps a connection from being waited for that nobody answers on: two leases, and never longer than usual."""
    arguments = dict(dialect.connect_arguments)
    for name, per_second in dialect.lease_arguments.items() if lease is not None else ():
        seconds = max(lease or 0.0, SHORTEST_SECONDS)
        arguments[name] = min(arguments[name], ceil(seconds * per_second))
    return arguments
