"""Ways to a server: a module of the site's own, or a JDBC driver.

No Python driver reads smart large objects, and a session is read as one, so a DB-API connection alone is not enough.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eventlog.core.errors import ConfigError, SourceError
from eventlog.sources.gbase.session import CAPTURES, Driver, parts_of
from eventlog.sources.gbase.settings import GbaseSettings


def driver_of(settings: GbaseSettings) -> Driver:
    """The driver that the settings name; ConfigError when it cannot be loaded."""
    if settings.driver == "jdbc":
        from eventlog.sources.gbase.jdbc import JdbcDriver

        return JdbcDriver(settings)
    module, _, name = settings.driver.partition(":")
    if not name:
        hint = "It is module:callable, or jdbc; without a server, path names a file of captured bytes."
        raise ConfigError(f"source.gbase.driver is {settings.driver!r}, which names no driver.", hint=hint)
    try:
        made = getattr(import_module(module), name)(settings)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"source.gbase.driver {settings.driver} cannot be loaded: {error}.", hint="Install it where eventlog runs."
        ) from None
    if hasattr(made, "cursor"):
        return DbApiDriver(made)
    driver: Driver = made
    return driver


class DbApiDriver:
    """A DB-API connection to syscdcv1 that has one method more: `lo_read(session, most) -> bytes`."""

    def __init__(self, connection: Any) -> None:
        if not hasattr(connection, "lo_read"):
            hint = "The session is read with ifx_lo_read, which the site's driver must offer under that name."
            raise ConfigError("The driver's connection has no method lo_read(session, most).", hint=hint)
        self._connection = connection

    def call(self, function: str, *arguments: object) -> int:
        marks = ", ".join("?" * len(arguments))
        return self._number(f"EXECUTE FUNCTION {function}({marks})", arguments)

    def read(self, session: int, most: int) -> bytes:
        try:
            return bytes(self._connection.lo_read(session, most))
        except Exception as error:  # each driver has errors of its own
            raise SourceError(f"The session cannot be read: {error}.") from error

    def captures(self, table: str, but: int) -> int:
        return self._number(CAPTURES, (*parts_of(table), but))

    def close(self) -> None:
        self._connection.close()

    def _number(self, statement: str, arguments: tuple[object, ...]) -> int:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, arguments)
            return int(cursor.fetchone()[0])
        except Exception as error:  # each driver has errors of its own
            raise SourceError(f"The server refuses {statement.partition('(')[0]}: {error}.") from error
        finally:
            cursor.close()
