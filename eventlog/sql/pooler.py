"""A pooler between us and the server, such as PgBouncer, that gives each transaction another session.

Law: behind one nothing is left in a session. What a session would be prepared with is said at the
begin of each transaction, for that alone; nothing is prepared by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from eventlog.sql.dialect import dialect_of, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import ExceptionContext

IS_POOLED: Final = "eventlog pooled"
"""What a connection's info holds behind a pooler."""

_setting = re.compile(r"set_config\('(\w+)',\s*(?:'([^']*)'|CAST\((\d+) AS text\)), false\)")

_begins: WeakKeyDictionary[Engine, str] = WeakKeyDictionary()
"""What is said at the begin of each transaction, by engine."""
_pooled: WeakKeyDictionary[Engine, bool] = WeakKeyDictionary()


def watch(engine: Engine, asks: Callable[[Any], bool], settings: Sequence[str], is_set: str) -> None:
    """Check each new connection for a pooler, and prepare its transactions if there is one."""
    from sqlalchemy import event

    set_at_begin(engine, settings)

    def note(driver: Any, record: Any) -> None:
        _pooled[engine] = asks(driver)
        if _pooled[engine]:
            record.info[IS_POOLED] = record.info[is_set] = True
            # Not before: elsewhere each statement would be looked at for nothing.
            if not event.contains(engine, "before_cursor_execute", begin_alone):
                event.listen(engine, "before_cursor_execute", begin_alone)
                event.listen(engine, "after_cursor_execute", end_alone)
                event.listen(engine, "handle_error", give_up_alone)

    def prepare(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        if IS_POOLED in connection.info and not driver.autocommit:
            connection.exec_driver_sql(_begins[engine])

    # A statement that stands alone gets a transaction for it.

    def stands_alone(connection: Connection) -> bool:
        driver: Any = connection.connection.driver_connection
        return IS_POOLED in connection.info and bool(driver.autocommit)

    def begin_alone(connection: Connection, *_: Any) -> None:
        if stands_alone(connection):
            _run(connection, f"BEGIN; {_begins[engine]}")

    def end_alone(connection: Connection, *_: Any) -> None:
        if stands_alone(connection):
            _run(connection, "COMMIT")

    def give_up_alone(context: ExceptionContext) -> None:
        connection = context.connection
        if connection is not None and not context.is_disconnect and stands_alone(connection):
            _run(connection, "ROLLBACK")

    event.listen(engine, "connect", note)
    event.listen(engine, "begin", prepare)


def _run(connection: Connection, sql: str) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(sql)
    cursor.close()


def set_at_begin(engine: Engine, settings: Sequence[str]) -> None:
    """Says these settings at the begin of each transaction, should there be a pooler."""
    found = [match for setting in settings for match in _setting.finditer(setting)]
    # No SELECT: it would decide what the transaction sees. And nothing before names are settled, for operators and
    # functions of others could fit better than the server's.
    first = statement(dialect_of(engine), "settle_names")
    said = [first, *(f"SET LOCAL {match[1]} = '{match[2] or match[3]}'" for match in found)]
    _begins[engine] = "; ".join(filter(None, said))


def is_pooled(engine: Engine) -> bool:
    """Return True if a pooler is behind the engine's connections."""
    if engine not in _pooled and engine in _begins:
        engine.connect().close()  # which asks
    return _pooled.get(engine, False)
