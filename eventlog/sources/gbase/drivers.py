"""Ways to a server: a module of the site's own, or a JDBC driver in a Java virtual machine of this
process.

No Python driver reads smart large objects, and a session is read as one, so a DB-API connection
alone is not enough.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from eventlog.core.errors import ConfigError, SourceError
from eventlog.core.packages import require
from eventlog.sources.gbase.session import BIGINTS, CAPTURES, Driver, parts_of
from eventlog.sources.gbase.settings import GBaseSettings

_OWN_SIGNALS: Final = "-Xrs"
"""Without it Java ends the process on SIGTERM and Ctrl-C, before a session could be closed."""


class JdbcDriver:
    """A connection to syscdcv1; the session is read with the vendor's class IfxSmartBlob."""

    def __init__(self, settings: GBaseSettings) -> None:
        require('source.gbase.driver = "jdbc"', "jpype")
        self._java = import_module("jpype")
        # Java is started once a process, and only then learns its classpath.
        if not self._java.isJVMStarted():
            try:
                self._java.startJVM(_OWN_SIGNALS, classpath=list(settings.classpath), interrupt=False)
            except (OSError, ValueError) as error:
                hint = "JAVA_HOME says where Java is."
                raise ConfigError(f"Java does not start: {_first_line(error)}.", hint=hint) from None
        manager = self._java.JClass("java.sql.DriverManager")
        self._connection = self._ask("connecting", manager.getConnection, settings.url)
        package = "com.gbasedbt.jdbc" if settings.url.startswith("jdbc:gbasedbt") else "com.informix.jdbc"
        try:
            self._blob = self._java.JClass(f"{package}.IfxSmartBlob")(self._connection)
        except Exception as error:
            self.close()
            hint = "source.gbase.classpath names the jar of the database's JDBC driver."
            raise ConfigError(
                f"Java has no class {package}.IfxSmartBlob: {_first_line(error)}.",
                hint=hint,
            ) from error
        self._buffer = self._java.JArray(self._java.JByte)(0)

    def call(self, function: str, *arguments: object) -> int:
        marks = ", ".join("?" * len(arguments))
        # The second argument of these is a BIGINT, which JDBC binds by another method than an
        # INTEGER.
        position = 2 if function.rpartition("cdc_")[2] in BIGINTS else 0
        return self._number(f"EXECUTE FUNCTION {function}({marks})", arguments, position)

    def read(self, session: int, most: int) -> bytes:
        # All reads ask for the same number of bytes, so the array is made once.
        if len(self._buffer) != most:
            self._buffer = self._java.JArray(self._java.JByte)(most)
        count = int(self._ask("reading the session", self._blob.IfxLoRead, session, self._buffer, most))
        if count < 0:
            raise SourceError(f"The session cannot be read: the driver answers {count}.")
        # What lies behind the count is of earlier reads (gbase-cdc.md 1).
        return bytes(memoryview(self._buffer))[:count]

    def captures(self, table: str, but: int) -> int:
        return self._number(CAPTURES, (*parts_of(table), but))

    def close(self) -> None:
        self._ask("closing the connection", self._connection.close)

    def _number(self, statement: str, arguments: tuple[object, ...], position: int = 0) -> int:
        doing = statement.partition("(")[0]
        prepared = self._ask(doing, self._connection.prepareStatement, statement)
        try:
            for number, argument in enumerate(arguments, start=1):
                if number == position:
                    bind = prepared.setLong
                elif isinstance(argument, int):
                    bind = prepared.setInt
                else:
                    bind = prepared.setString
                self._ask(doing, bind, number, argument)
            rows = self._ask(doing, prepared.executeQuery)
            # A result of JDBC stands before its first row.
            self._ask(doing, rows.next)
            return int(self._ask(doing, rows.getLong, 1))
        finally:
            self._ask(doing, prepared.close)

    def _ask(self, doing: str, function: Any, *arguments: object) -> Any:
        try:
            return function(*arguments)
        # Java's exceptions come as Python ones of classes that only JPype knows.
        except Exception as error:
            raise SourceError(f"The server refuses {doing}: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(". ")


def driver_of(settings: GBaseSettings) -> Driver:
    """Load the driver in the settings; raise ConfigError if impossible."""
    if settings.driver == "jdbc":
        return JdbcDriver(settings)
    module, _, name = settings.driver.partition(":")
    if not name:
        hint = "It is module:callable, or jdbc; without a server, path names a file of captured bytes."
        raise ConfigError(
            f"source.gbase.driver is {settings.driver!r}, which names no driver.",
            hint=hint,
        )
    try:
        made = getattr(import_module(module), name)(settings)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"source.gbase.driver {settings.driver} cannot be loaded: {error}.",
            hint="Install it where eventlog runs.",
        ) from None
    # A plain DB-API connection is enough for the calls; with one method more it is a driver.
    if hasattr(made, "cursor"):
        return DbApiDriver(made)
    driver: Driver = made
    return driver


class DbApiDriver:
    """A DB-API connection to syscdcv1 that has one method more: `lo_read(session, most) -> bytes`."""

    def __init__(self, connection: Any) -> None:
        if not hasattr(connection, "lo_read"):
            hint = "The session is read with ifx_lo_read, which the site's driver must offer under that name."
            raise ConfigError(
                "The driver's connection has no method lo_read(session, most).",
                hint=hint,
            )
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
        try:
            cursor = self._connection.cursor()
            try:
                cursor.execute(statement, arguments)
                return int(cursor.fetchone()[0])
            finally:
                cursor.close()
        except Exception as error:  # each driver has errors of its own
            raise SourceError(f"The server refuses {statement.partition('(')[0]}: {error}.") from error
