"""The emulator of GBase 8s as a server: the calls of the real one, over a log that is written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.sources.gbase.layout import CapturedLayout, layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.values import TextRules
from eventlog_streams_tools.gbase.emulator import GBaseEmulator, RecordDialect, record, table_record

OK, NO_DATABASE, NO_TABLE, NO_COLUMN, NO_SESSION = 0, -83703, -83705, -83707, -83708
CAPTURED, NOT_CAPTURED, VERSION, FOURTH, POSITION = -83710, -83711, -83702, -83724, -83713


class _Session:
    """An open session: what it captures, and where it is in the log."""

    def __init__(self, most: int, dialect: RecordDialect) -> None:
        self.most = most
        self.dialect = dialect
        self.captured: dict[str, CapturedLayout] = {}
        self.next: int | None = None
        self.ready: list[bytes] = []
        self.rest = b""


class GBaseServer(GBaseEmulator):
    """Databases with tables and one logical log. A function answers 0, something positive, or the code of an error."""

    def __init__(self, *, wide: bool = True, texts: TextRules | None = None, cut: Sequence[int] = ()) -> None:
        super().__init__(wide=wide, texts=texts)
        self.kept_from = 0
        """What lies before that sequence number is no longer in the logs."""
        self.full: set[str] = set()
        """The tables whose rows are logged whole."""
        self.calls: list[str] = []
        self._cut = list(cut)
        self._failing: list[int] = []
        self._sessions: dict[int, _Session] = {}

    def opensess(self, server: str, session: int, timeout: int, most: int, major: int, minor: int) -> int:
        """Opens a session; the minor version says in which order the sizes are written."""
        self.calls.append("opensess")
        if (major, minor) not in ((1, 0), (1, 1)):
            return VERSION
        if not 1 <= most <= 256:
            return FOURTH
        dialect = RecordDialect(sizes="big" if minor else "little", wide=self.wide, texts=self.texts)
        number = max(self._sessions, default=100) + 1
        self._sessions[number] = _Session(most, dialect)
        return number

    def set_fullrowlogging(self, table: str, on: int) -> int:
        """Switches the logging of whole rows."""
        self.calls.append(f"set_fullrowlogging {table} {on}")
        if table not in self.tables:
            return NO_TABLE
        (self.full.add if on else self.full.discard)(table)
        return OK

    def startcapture(self, session: int, _zero: int, table: str, columns: str, label: int) -> int:
        """Adds a table to what the session captures, under a label."""
        self.calls.append(f"startcapture {table}")
        found = self._sessions.get(session)
        if found is None:
            return NO_SESSION
        if table not in self.tables:
            return (
                NO_TABLE
                if any(name.partition(":")[0] == table.partition(":")[0] for name in self.tables)
                else NO_DATABASE
            )
        if table in found.captured:
            return CAPTURED
        whole = layout_of(label, self.tables[table])
        by_name = {column.name: column for column in whole.columns}
        names = columns.split(",")
        if not set(names) <= by_name.keys():
            return NO_COLUMN
        chosen = [by_name[name] for name in names]
        chosen.sort(key=lambda column: column.type.size is None)
        found.captured[table] = CapturedLayout(label=label, columns=tuple(chosen))
        return OK

    def activatesess(self, session: int, position: int) -> int:
        """Begins to deliver, from a sequence number or from now."""
        self.calls.append(f"activatesess {position}")
        found = self._sessions.get(session)
        if found is None:
            return NO_SESSION
        if position and position < self.kept_from:
            return POSITION
        later = [at for at, written in enumerate(self.log) if written[1] >= position]
        found.next = (later[0] if later else len(self.log)) if position else len(self.log)
        found.ready = [table_record(layout) for layout in found.captured.values()]
        return OK

    def read(self, session: int, most: int) -> bytes:
        """Read the next bytes, at most `most`, of no more records than the session takes, perhaps
        cut.
        """
        found = self._sessions[session]
        if self._failing and not found.rest:
            return record(CdcRecord.ERROR, 1, self._failing.pop())
        if not found.rest:
            records = self._due(found)
            found.rest = b"".join(records) or record(CdcRecord.TIMEOUT, self.log[-1][1] if self.log else 0)
        most = min(most, self._cut.pop(0)) if self._cut else most
        given, found.rest = found.rest[:most], found.rest[most:]
        return given

    def fail_next(self, code: int) -> None:
        """Lets the next read bring an error that ends the session."""
        self._failing.append(code)

    def idle(self, session: int) -> bool:
        """Return True if the next read is a heartbeat."""
        found = self._sessions[session]
        return not found.rest and not found.ready and found.next is not None and found.next >= len(self.log)

    def endcapture(self, session: int, _zero: int, table: str) -> int:
        """Takes a table out of what the session captures."""
        self.calls.append(f"endcapture {table}")
        found = self._sessions.get(session)
        if found is None:
            return NO_SESSION
        return NOT_CAPTURED if found.captured.pop(table, None) is None else OK

    def deactivatesess(self, session: int) -> int:
        """Stops delivering."""
        self.calls.append("deactivatesess")
        return OK if session in self._sessions else NO_SESSION

    def closesess(self, session: int) -> int:
        self.calls.append("closesess")
        return NO_SESSION if self._sessions.pop(session, None) is None else OK

    def captures(self, table: str, but: int) -> int:
        """Count other sessions capturing the table."""
        return sum(table in found.captured for number, found in self._sessions.items() if number != but)

    def _due(self, session: _Session) -> list[bytes]:
        """Return as many records as one read may have."""
        given, session.ready = session.ready[: session.most], session.ready[session.most :]
        while session.next is not None and session.next < len(self.log) and len(given) < session.most:
            data = self.record(self.log[session.next], session.captured, session.dialect)
            session.next += 1
            if data:
                given.append(data)
        return given
