"""A capture session on a server: the documented calls in their order, undone in the reverse order,
also on failure.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Protocol

from eventlog.core.errors import ConfigError, SourceError
from eventlog.sources.gbase.codes import in_words
from eventlog.sources.gbase.settings import GBaseSettings

READ_BYTES: Final = 65_536
"""Bytes that are asked for at once."""
# CDC_E_LSN: the log that holds the position is no longer on disk (gbase-cdc.md 8).
POSITION_GONE: Final = -83713
MAJOR: Final = 1
BIGINTS: Final = frozenset(("startcapture", "endcapture", "activatesess"))
"""The functions whose second argument is a position, a BIGINT; every other number is an INTEGER."""
CAPTURES: Final = "SELECT count(*) FROM syscdctabs WHERE dbname = ? AND owner = ? AND tabname = ? AND sessid <> ?"
"""How many other sessions capture a table.

It is asked for by `parts_of` its name and the own session.
"""


class Driver(Protocol):
    """What a site's way to its server must offer; the calls go to the database syscdcv1."""

    def call(self, function: str, *arguments: object) -> int:
        """Executes a function such as `informix.cdc_opensess` and gives the integer that it
        returns.
        """

    def read(self, session: int, most: int) -> bytes:
        """Read at most so many bytes of the session, only those `ifx_lo_read` reports as read."""

    def captures(self, table: str, but: int) -> int:
        """Count other sessions capturing `database:owner.table`, by syscdctabs."""

    def close(self) -> None:
        """Ends the connection."""


class CaptureSession:
    """An activated session. What it switched on is switched off when it closes, but for what others
    still use.
    """

    def __init__(
        self,
        driver: Driver,
        settings: GBaseSettings,
        start: int,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._report = report
        self._undo = ExitStack()
        if not settings.tables:
            purpose = "it says which tables are captured, as 1 = 'db:owner.table'"
            raise ConfigError(f"source.gbase.tables is empty; {purpose}.")
        try:
            self.number = self._open()
            for label, table in settings.tables.items():
                self._capture(int(label), table)
            try:
                # A start of 0 means now (gbase-cdc.md 7).
                self._call("activatesess", self.number, start, doing="starting to read")
            except SourceError as error:
                if str(POSITION_GONE) in error.message:
                    lost = "What happened since is lost"
                    hint = f"{lost}: load the tables again, and begin without the state file."
                    raise SourceError(error.message, hint=hint, may_pass=False) from None
                raise
            self._undo.callback(self._undoing, "deactivatesess", self.number)
        # Also an interrupt, or the server would hold the session until its own limit.
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        """Read the next bytes of the stream; a heartbeat after a while without changes."""
        return self._driver.read(self.number, READ_BYTES)

    def close(self) -> None:
        """Ends captures, switches full row logging off, ends the session."""
        self._undo.close()

    def _open(self) -> int:
        own = self._settings
        # The second one is reserved.
        arguments = (own.server, 0, own.timeout, own.max_records, MAJOR, own.minor_version)
        number = self._call("opensess", *arguments, doing="opening a session")
        self._undo.callback(self._undoing, "closesess", number)
        return number

    def _capture(self, label: int, table: str) -> None:
        columns = self._settings.columns.get(table)
        if not columns:
            purpose = "it says which columns are captured"
            raise ConfigError(f"source.gbase.columns has nothing for {table}; {purpose}.")
        # First, for the server captures no table of which it does not log whole rows.
        self._call("set_fullrowlogging", table, 1, doing=f"logging whole rows of {table}")
        # Before the capture, so that it is undone after it: it may be off only then (gbase-cdc.md
        # 7).
        self._undo.callback(self._log_no_longer, table)
        chosen = ",".join(columns)
        doing = f"capturing {table}"
        # The second argument is always 0, as a BIGINT (gbase-cdc.md 7).
        self._call("startcapture", self.number, 0, table, chosen, label, doing=doing)
        self._undo.callback(self._undoing, "endcapture", self.number, 0, table)

    def _call(self, function: str, *arguments: object, doing: str) -> int:
        owner = self._settings.owner and f"{self._settings.owner}."
        answer = self._driver.call(f"{owner}cdc_{function}", *arguments)
        if answer < 0:
            # Of all its errors only that of its own inside may pass by itself.
            problem = f"The server refuses {doing}: {in_words(answer)}"
            raise SourceError(problem, may_pass=answer == -83790)
        return answer

    def _undoing(self, function: str, *arguments: object) -> None:
        """Undo one step; report a failure and continue with the others."""
        try:
            self._call(function, *arguments, doing=f"to undo ({function})")
        except SourceError as error:
            self._report(str(error))

    def _log_no_longer(self, table: str) -> None:
        # It is one switch a table for all sessions, so it is left on where others need it.
        try:
            others = self._driver.captures(table, self.number)
        except SourceError as error:
            self._report(f"{error} Full row logging of {table} stays on.")
            return
        if others:
            sessions = f"Other sessions that capture {table}: {others}"
            self._report(f"{sessions}. So full row logging stays on.")
        else:
            self._undoing("set_fullrowlogging", table, 0)


def parts_of(table: str) -> tuple[str, str, str]:
    """Split `database:owner.table`."""
    database, _, rest = table.partition(":")
    owner, _, name = rest.rpartition(".")
    if not (database and owner and name):
        problem = f"{table} is not a table of a server"
        raise ConfigError(f"{problem}; it is written database:owner.table.")
    return database, owner, name
