"""Tables that cannot be read back now, for all outputs of a publisher: why, and when they are tried again.

When it is time, the first row of such a table that waits for an output tries it again; the others
wait until it was read, so that an attempt costs the same however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import TABLE_FAULTS, Outcome, Unreadable
from eventlog.core.rules.lifetimes import ROW_BACK

if TYPE_CHECKING:
    from eventlog.publisher.journal import Journal
    from eventlog.publisher.selection import Take

REST_MILLISECONDS: Final = 3_600_000
"""The rows of a table go by themselves so much later, should nobody have let them go."""

FAULTS: Final = frozenset(reason.value for reason in TABLE_FAULTS)
"""The reasons, as the journal has them."""


class TableFault(Struct, frozen=True, kw_only=True):
    """Why a table cannot be read, and when it is tried again."""

    why: Unreadable
    due: int
    attempts: int

    @property
    def rest_due(self) -> int:
        """Return when the rows of the table go, if none of them has tried it before and let the others go."""
        return self.due + REST_MILLISECONDS


class TableFaults:
    """Remembers the faults of tables, by the names that rows give them. Threads may share it."""

    def __init__(self, delay: Callable[[int], int]) -> None:
        self._delay = delay
        self._faults: dict[str, TableFault] = {}
        self._waiting: dict[str, set[str]] = {}
        """The tables of which rows wait, by outputs."""
        self.begun = set[str]()
        """The outputs that have begun to try tables; all begin again after a doubt: nobody knows what waits for them."""
        self._one_at_a_time = Lock()

    def list_untried(self, now: int) -> Mapping[str, TableFault]:
        """Return the tables not yet to be tried."""
        if not self._faults:
            return self._faults
        with self._one_at_a_time:
            return {table: fault for table, fault in self._faults.items() if fault.due > now}

    def find_next_try(self, output: str) -> int | None:
        """Return the earliest time to try a table with rows waiting for an output."""
        times = [self._faults[table].due for table in self._waiting.get(output, ()) if table in self._faults]
        return min(times, default=None)

    def to_try(self, output: str, now: int) -> list[str]:
        """Return the tables to be tried among those with rows waiting for an output."""
        if not self._waiting:
            return []
        return sorted(self._waiting.get(output, set()) - self.list_untried(now).keys())

    def add(self, table: str, outcome: Outcome, now: int) -> tuple[TableFault, bool]:
        """Enter an unreadable table; return the fault, and True if it is new."""
        with self._one_at_a_time:
            former = self._faults.get(table)
            # Another output has just found the same.
            if former is not None and former.due > now:
                return former, False
            attempts = 1 if former is None else former.attempts + 1
            due = now + max(1, self._delay(attempts))  # the next take must know that it is not tried
            why = Unreadable(note=outcome.note or "", reason=outcome.reason)
            self._faults[table] = fault = TableFault(why=why, due=due, attempts=attempts)
            return fault, former is None or former.why.reason is not outcome.reason

    def bound_delays(self, now: int, latest: int) -> None:
        """Try tables now whose time is later than any delay allows."""
        with self._one_at_a_time:
            for table, fault in self._faults.items():
                if fault.due > latest:
                    self._faults[table] = replace(fault, due=now)

    def wait(self, output: str, tables: Collection[str]) -> None:
        """Remember tables with rows waiting for an output."""
        with self._one_at_a_time:
            self._waiting.setdefault(output, set()).update(tables)

    def end(self, output: str, tables: Collection[str]) -> None:
        """Forget the faults of tables without rows waiting for the output."""
        with self._one_at_a_time:
            self._waiting.get(output, set()).difference_update(tables)
            for table in tables:
                self._faults.pop(table, None)

    def find_ended(self, output: str, taken: Take, faulty: Collection[str]) -> Sequence[str]:
        """Find readable tables among those with rows waiting for an output; `faulty` were not read."""
        waiting = self._waiting.get(output)
        if not waiting:
            return ()
        tried = {row.record for row in taken.unparked if row.reason in FAULTS}
        read = {event.table for event in taken.events if event.kind in ROW_BACK or event.position[0] in tried}
        return sorted(table for table in waiting if table in read and table not in faulty)


def try_tables(journal: Journal, name: str, now: int) -> None:
    """Free one row of each unreadable table due to be tried.

    At first all rows of such tables are freed: only the one who parked them knows their time.
    """
    faults = journal.faults
    if name not in faults.begun:
        faults.begun.add(name)
        with journal.transaction(soon=True) as all_tables:
            if all_tables.memory.any_parked:
                all_tables.execute("parked_readable", [{"output": name}])
    for table in faults.to_try(name, now):
        with journal.transaction(soon=True) as one_table:
            first = one_table.ask("parked_first_unread", output=name, table=table)[0][0]
            if first is not None:
                one_table.execute("parked_try_first", [{"output": name, "record_id": first}])
        if first is None:  # somebody holds them, or has taken them away
            faults.end(name, [table])
