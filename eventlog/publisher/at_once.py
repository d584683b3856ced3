"""Enters in the journal by one statement what is plain: a change that comes alone nearly always is.

There the way to the database and back is most of its delay. Law: such a statement does all that the transaction
of `Journal` does, or nothing: then that one is begun, and says why.

One statement is enough. It is a transaction. It locks `holding`, then the lease, as all do, and compares both, `written`
and the history of the tables: if one is not as memory knows it, nothing is written. It writes a new `written`, and any
error of it is a doubt. A plan waits for the disk in it, an end does not. After a doubt no end is entered by it.
"""

from __future__ import annotations

import secrets
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import Status
from eventlog.publisher.memory import Memory
from eventlog.publisher.plans import Done, FinishedRows, HoldsChangedError, TablesChangedError, TakePlan, add_recent
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.tables import JournalRow
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges
from eventlog.sql.dialect import offers
from eventlog.sql.log import Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog

MOST_ROWS: Final = 64
"""More rows of a plan are marked by the ends of their runs, which takes statements of its own."""


class JournalAtOnce(JournalReader):
    """The journal of one log, as far as one statement can write it, where the database has such statements."""

    _enters_at_once = False
    """Whether there are such statements; who has not the lock enters nothing by them."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None = None) -> None:
        super().__init__(log, settings, catalog)
        self._enters_at_once = offers(log.dialect, "plan_at_once")

    def _plan_at_once(self, name: str, plan: TakePlan) -> bool:
        """Enter a plan by one statement; return True if it was entered."""
        with self.one_at_a_time:
            memory = self._memory
            if not self._enters_at_once or memory is None or plan.sealed is None:
                return False
            if (plain := plan_plainly(memory, name, plan)) is None:
                return False
            row, values = plain
            if not self._enter_at_once("plan_at_once", values):
                return False
            memory.outputs[name] = row
            memory.planned[name] = plan.planned[0].records
            memory.proven.seal(plan.sealed.records)
        return True

    def _finish_at_once(self, name: str, done: Done) -> FinishedRows | None:
        """Enter the end of a plan by one statement; None where it was not entered."""
        with self.one_at_a_time:
            memory = self._memory
            # After a doubt the transaction refuses it: the target is asked first.
            if not self._enters_at_once or memory is None or done.doubts not in (None, self.doubts):
                return None
            if (plain := finish_plainly(memory, name, done, self.settings)) is None:
                return None
            rows, values = plain
            if not self._enter_at_once("done_at_once", values):
                return None
            del memory.planned[name]
            if memory.last_processed is not None:
                memory.last_processed = max(memory.last_processed, rows.parts[-1][1])
        return FinishedRows({Status.SUCCESS: len(rows)}, rows)

    def _enter_at_once(self, query: str, values: dict[str, Any]) -> bool:
        """Run a statement as a whole transaction; return True if it changed anything."""
        memory, lock, written = self._memory, self._lock, secrets.token_hex(8)
        if memory is None or lock is None or not lock.taken or not self._written:
            return False
        # What `transaction` compares after it has locked the marks is a condition of the statement.
        marks: dict[str, Any] = {
            "holding": memory.stamp.removesuffix(f" {self.doubts}"),
            "former": self._written,
            "written": written,
            "token": lock.token,
            "lease": lock.lease,
        }
        try:
            with self.log.transaction(lone=True) as connection:
                asked = self.log.query(query, until="lock_until", durable="durable")
                is_done = bool(self.log.rows(connection, asked, values | marks))
        except BaseException:
            self.doubt()  # perhaps it was committed, and the answer was lost
            raise
        if is_done:
            self._written, self._stamped = written, monotonic()
        return is_done

    def _refuse_doubts(self, doubts: int | None) -> None:
        """Raise HoldsChangedError if the log may have been restored since a target was asked."""
        if doubts not in (None, self.doubts):
            raise HoldsChangedError("The log may have been restored: the target is asked first.")

    def _refuse_alterations(self, connection: Connection, history: int | None) -> None:
        """Raise TablesChangedError if tables were altered since a plan was decided and nobody has
        checked yet.
        """
        if history is not None and history != int(self.ask(connection, "history_stamp")[0][0]):
            raise TablesChangedError("Tables were altered at the same time; they are looked at again.")


def plan_plainly(memory: Memory, name: str, plan: TakePlan) -> tuple[JournalRow, dict[str, Any]] | None:
    """Return the output's row after a plan, and the statement's values; None if it needs a
    transaction.

    A plan is plain if nothing waits and nobody else publishes: its new rows are all in one row.
    """
    if plan.sealed is None or len(plan.planned) != 1 or memory.stamp != plan.stamp:
        return None
    if plan.passed or plan.unparked or plan.parked or plan.readable or plan.over or plan.outcomes or plan.gone:
        return None
    if memory.outputs.keys() != {name} or memory.any_parked or memory.batches or memory.planned:
        return None
    [sent], row = plan.planned, memory.outputs[name]
    recent = add_recent(row.recent, row.plan, plan.plan, sent.records) if plan.is_asked else row.recent
    moved = replace(row, position=memory.last_batch + 1, recent=recent)
    moved = replace(moved, plans=row.plans + 1, plan=plan.plan, target_plan=row.plan or row.target_plan)
    values = moved.to_columns()
    del values["name"]
    return moved, {**values, **sent.to_columns(name), "history": plan.history}


def finish_plainly(
    memory: Memory, name: str, done: Done, settings: LogSettings
) -> tuple[RowRanges, dict[str, Any]] | None:
    """Return the finished rows and the statement's values; None if that needs a transaction.

    It is plain if all were published and no other output has an answer for them.
    """
    if not done.asked or len(done.planned) != 1 or done.outcomes or done.again or done.gone or done.associations:
        return None
    if done.transactions is not None or done.target_plan is not None or settings.delete_from_log:
        return None
    if memory.outputs.keys() != {name} or memory.any_answers or memory.batches:
        return None
    [sent] = done.planned
    records = sent.records
    if len(records) > MOST_ROWS or memory.planned.get(name) != records or records.parts[0][0] <= memory.last_noted:
        return None
    return records, {"output": name, "plan": sent.plan, "place": sent.place, "ids": id_list([*records])}
