"""Ways to a server: a module of the site's own, or Informix's JDBC driver in a Java virtual machine of this process.

No Python driver reads smart large objects, and a session is read as one, so a DB-API connection alone is not enough.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eventlog.errors import ConfigError, SourceError
from eventlog.sources.gbase.session import Driver
from eventlog.sources.gbase.settings import GbaseSettings

_CAPTURES = "SELECT count(*) FROM syscdctabs WHERE dbname = ? AND owner = ? AND tabname = ? AND sessid <> ?"


def driver_of(settings: GbaseSettings) -> Driver:
    """The driver that the settings name; ConfigError when it cannot be loaded."""
    if settings.driver == "jdbc":
        return JdbcDriver(settings)
    module, _, name = settings.driver.partition(":")
    if not name:
        hint = "It is module:callable, or jdbc. Without a server, path names a file of captured bytes."
        raise ConfigError(f"source.gbase.driver is {settings.driver!r}, which names no driver.", hint=hint)
    try:
        made = getattr(import_module(module), name)(settings)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"source.gbase.driver {settings.driver} cannot be loaded: {error}.") from None
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
        return self._number(_CAPTURES, (*parts_of(table), but))

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


class JdbcDriver:
    """Informix's or GBase's JDBC driver through JPype; the session is read with its class IfxSmartBlob."""

    def __init__(self, settings: GbaseSettings, java: Any = None) -> None:
        self._java = java or _started(settings)
        manager = self._java.JClass("java.sql.DriverManager")
        self._connection = self._asked("connecting", manager.getConnection, settings.url)
        package = "com.gbasedbt.jdbc" if settings.url.startswith("jdbc:gbasedbt") else "com.informix.jdbc"
        self._blob = self._java.JClass(f"{package}.IfxSmartBlob")(self._connection)

    def call(self, function: str, *arguments: object) -> int:
        marks = ", ".join("?" * len(arguments))
        return self._number(f"EXECUTE FUNCTION {function}({marks})", arguments)

    def read(self, session: int, most: int) -> bytes:
        buffer = self._java.JArray(self._java.JByte)(most)
        count = int(self._asked("reading the session", self._blob.IfxLoRead, session, buffer, most))
        if count < 0:
            raise SourceError(f"The session cannot be read: the driver answers {count}.")
        return bytes(byte & 0xFF for byte in buffer[:count])  # what lies behind is of earlier reads

    def captures(self, table: str, but: int) -> int:
        return self._number(_CAPTURES, (*parts_of(table), but))

    def close(self) -> None:
        self._connection.close()

    def _number(self, statement: str, arguments: tuple[object, ...]) -> int:
        prepared = self._asked("preparing a call", self._connection.prepareStatement, statement)
        for place, argument in enumerate(arguments, start=1):
            self._asked("preparing a call", prepared.setObject, place, argument)
        rows = self._asked(statement.partition("(")[0], prepared.executeQuery)
        rows.next()
        number = int(rows.getLong(1))
        prepared.close()
        return number

    def _asked(self, doing: str, function: Any, *arguments: object) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # Java's exceptions come as Python ones of classes that only JPype knows
            raise SourceError(f"The server refuses {doing}: {error}.") from error


def parts_of(table: str) -> tuple[str, str, str]:
    """Database, owner and name of `database:owner.table`."""
    database, _, rest = table.partition(":")
    owner, _, name = rest.rpartition(".")
    if not (database and owner and name):
        raise ConfigError(f"{table} is not a table of a server; it is written database:owner.table.")
    return database, owner, name


def _started(settings: GbaseSettings) -> Any:
    try:
        java = import_module("jpype")
    except ImportError:
        raise ConfigError("source.gbase.driver is jdbc, which needs the package JPype1.") from None
    if not java.isJVMStarted():
        java.startJVM(classpath=list(settings.classpath))
    return java
