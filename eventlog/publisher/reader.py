"""Who reads the journal of a log: its memory, the clock, and who may take new rows."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Lock, RLock
from time import monotonic
from typing import TYPE_CHECKING, Final

from eventlog.publisher.journal_view import View
from eventlog.publisher.memory import Memory, Stamp, read_memory
from eventlog.publisher.new_rows import UnsealedRows
from eventlog.publisher.table_faults import TableFaults
from eventlog.publisher.tables import JournalRow
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog
    from eventlog.sources.log.lock import LogLock

CLOCK_SECONDS: Final = 10.0
"""Seconds between two looks at the database's clock, and at the newest row that has its status."""

LATE_SECONDS: Final = 1.0
"""A clock that is so much earlier than before was set back, and not looked at slowly."""


FRESH_SECONDS: Final = 0.05
"""For so long a turn goes by the mark that was read when it was found that rows wait."""

STAMP_SECONDS: Final = 0.01
"""Who looks often whether rows wait reads the mark so often."""

NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""


class JournalReader:
    """Reads the journal of one log. Several threads may use it at the same time."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None = None) -> None:
        self.log = log
        self.settings = settings
        self.rows = UnsealedRows(log, settings, catalog)
        self.one_at_a_time = RLock()
        self._new_rows = Lock()
        self._memory: Memory | None = None
        self._ahead = self._next_look = float("-inf")
        self._now = 0
        self.faults = TableFaults(self.delay)
        self._clock_went_back = False
        """Whether times may be of a clock that somebody has set back since."""
        self._lock: LogLock | None = None
        self._checks_numbers = False
        """Whether it is looked whether the numbers of new rows are their own."""
        self._stamped = float("-inf")
        """When the mark was read last, or found to be as memory has it."""
        self._written = ""
        """The text that the last known transaction has written into the mark `written`."""
        self.doubts = 0
        """How often the database was found to have forgotten something, or may have."""

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Read by lone statements; a plan made from old data fails."""
        with self.one_at_a_time:
            try:
                with self.log.transaction(lone=True) as connection:
                    # The mark is read first: what somebody writes after it has the plan fail.
                    memory = self._memory
                    if memory is not None and monotonic() - memory.looked_at <= FRESH_SECONDS:
                        stamp = memory.stamp
                    else:
                        stamp = self._read_stamp(connection)
                    yield View(self.log, self.settings, self.rows, connection, self.memory_of(connection, stamp))
            except BaseException:
                self.forget_memory()
                raise

    @contextmanager
    def at_new_rows(self, name: str) -> Iterator[Callable[[], None]]:
        """Let one output at a time take rows of no batch, until the block calls what it gets, or ends.

        An output with a batch ahead does not wait.
        """
        with ExitStack() as alone:
            if not self.is_behind(name):
                alone.enter_context(self._new_rows)
                # Who had the lock may have sealed rows since: that batch is ahead of this output now.
                if self.is_behind(name):
                    alone.close()
            yield alone.close

    def is_behind(self, name: str) -> bool:
        """Return True if an output has a batch ahead of it, as far as memory knows."""
        with self.one_at_a_time:
            memory = self._memory
            row = None if memory is None else memory.outputs.get(name)
            return memory is not None and row is not None and row.position < max(memory.batches, default=0)

    def look(self, catalog: Catalog | None) -> None:
        """Goes on with tables as they look now."""
        with self.one_at_a_time:
            self.rows = UnsealedRows(self.log, self.settings, catalog)
            self._memory = None  # it may have rows that were read as the tables were

    def forget_memory(self) -> None:
        """Read the tables again in the next turn."""
        with self.one_at_a_time:
            self._memory = None

    def doubt(self) -> None:
        """Forget all memory; each output asks its target again."""
        with self.one_at_a_time:
            self.doubts += 1
            self._memory = None
            self._clock_went_back = True  # its times may be those of another server
            self.faults.begun.clear()

    def _read_stamp(self, connection: Connection) -> Stamp:
        marks = self.log.rows(connection, self.log.query("journal_stamp"))
        self._stamped = monotonic()
        return self._stamp(*marks[0]) if marks else self._stamp(NEVER_HELD, None)

    def _stamp(self, holding: str, written: str | None) -> Stamp:
        """Return the stamp memory depends on.

        It differs after a hold, after the database has lost its last transactions in a crash or
        failover, and after somebody else may have had the lock.
        """
        # Who has not the lock does not know what its holder writes, and need not.
        if self._lock is not None and self._written not in ("", written):
            self.doubt()
        self._written = written or ""
        return Stamp(holding, self.doubts, "" if self._lock is None else self._lock.token)

    def memory_of(self, connection: Connection, stamp: Stamp) -> Memory:
        """Return the contents of the tables; read again where somebody else has written since."""
        memory = self._memory
        if memory is None or memory.stamp != stamp:
            memory = self._memory = read_memory(connection, self.log, stamp, seen=True)
        if self._checks_numbers and monotonic() >= memory.next_processed:
            processed = self.log.rows(connection, self.log.query("newest_processed"))
            memory.last_processed = max([0, *(int(number) for (number,) in processed)])
            memory.next_processed = monotonic() + CLOCK_SECONDS
        return memory

    # --- the clock --------------------------------------------------------------------------------

    def moment(self) -> dt.datetime:
        """Read the database's clock, in UTC."""
        with self.log.transaction(lone=True) as connection:
            return self.log.now(connection)

    def now(self) -> int:
        """Return the database's time in milliseconds since 1970; between two looks this machine counts."""
        if monotonic() >= self._next_look:
            ahead = self.moment().replace(tzinfo=dt.UTC).timestamp() - monotonic()
            if ahead < self._ahead - LATE_SECONDS:
                self._clock_went_back = True
            self._ahead = ahead
            self._next_look = monotonic() + CLOCK_SECONDS
        now = round((monotonic() + self._ahead) * 1000)
        # A slow look makes it no earlier: what was to go at once would wait.
        if not 0 < self._now - now < LATE_SECONDS * 1000:
            self._now = now
        return self._now

    def delay(self, attempts: int) -> int:
        """Return milliseconds until a row is retried after so many attempts."""
        # By chance, so that not all come at once.
        return int(self.settings.backoff.delay(attempts, secrets.SystemRandom().random()) * 1000)

    # --- outputs, and what they may take ----------------------------------------------------------

    def output(self, name: str) -> JournalRow:
        """Return the place of an output."""
        with self.reading() as view:
            return view.memory.output(name)

    @property
    def places(self) -> Mapping[str, JournalRow]:
        """Return the places of outputs as far as memory knows."""
        memory = self._memory
        return {} if memory is None else memory.outputs

    @property
    def embedded(self) -> bool:
        """Return True if the log's database has one writer at a time."""
        return self.log.dialect.embedded

    @property
    def anything_waits(self) -> bool:
        """Return True if rows wait, are held or are on their way, as far as memory knows."""
        memory = self._memory
        waits = memory is not None and (memory.any_parked or memory.any_held or memory.batches or memory.taken)
        return bool(waits)

    def anything(self, connection: Connection) -> bool:
        """Return True if untaken rows wait, or rows were held or released since."""
        with self.one_at_a_time:
            # Read before the mark, for who finds a doubt there forgets it.
            memory, is_due = self._memory, monotonic() - self._stamped >= STAMP_SECONDS
            if memory is None or (is_due and self._read_stamp(connection) != memory.stamp):
                return True
            # Rows of a conversion that is not over: nobody else may take them.
            if memory.reserved_above is not None:
                return False
            if not self.rows.anything(View(self.log, self.settings, self.rows, connection, memory)):
                return False
            memory.looked_at = monotonic()
            return True
