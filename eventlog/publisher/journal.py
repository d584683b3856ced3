"""The journal of a log: which rows were sealed, how far each output is, and what waits for what.

For each output a row is at any time in exactly one place: ahead of its position, parked, planned,
or over. It gets its status when it is over for every output. The position moves when rows are
planned, not when they are delivered: only what was planned and is not at the target is parked.

One publisher writes the journal, the holder of the log's lock. Each transaction locks the mark
`holding` first and the lock's own mark after it, so that who has lost the lock writes nothing. What
memory knows is dropped after any exception, and when somebody else has changed the mark `holding`.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import Outcome, Status
from eventlog.publisher.at_once import finish_plainly, plan_plainly
from eventlog.publisher.plans import (
    PROCESSED_STATUSES,
    Done,
    FinishedRows,
    PlanName,
    TakeAgainError,
    TakePlan,
    give_plan,
)
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.statuses import answer_of
from eventlog.publisher.table_faults import REST_MILLISECONDS
from eventlog.publisher.tables import EVER, OnTheWay, runs_of
from eventlog.publisher.writing import JournalTransaction
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import NO_ROWS, RowRanges, as_text
from eventlog.sql.dialect import offers
from eventlog.sql.log import Log, id_list
from eventlog.sql.log_indexes import may_number_twice

if TYPE_CHECKING:
    from eventlog.core.associations import Association
    from eventlog.core.schema import Catalog
    from eventlog.sources.log.lock import LogLock

SWEPT_BATCHES: Final = 10
"""Of so many batches it is looked at once whether their rows still wait."""

PIECE_ROWS: Final = 10_000
"""So many rows are swept in one transaction at most."""

PIECE_NUMBERS: Final = 100_000
"""So many numbers are searched at once for rows that somebody has set back."""


class Journal(JournalReader):
    """The journal of one log, as the holder of its lock writes it. Without a lock nothing is entered at once."""

    def __init__(self, log: Log, lock: LogLock | None, settings: LogSettings, catalog: Catalog | None = None) -> None:
        super().__init__(log, settings, catalog)
        self._lock = lock
        self._swept = self._looked = 0
        self._clock_went_back = True  # nobody knows what it was when this log was published last
        self._enters_at_once = offers(log.dialect, "plan_at_once")
        """Whether there are statements that enter a plan, and its end, at once."""

    @contextmanager
    def transaction(self, *, soon: bool = False) -> Iterator[JournalTransaction]:
        """Open a transaction of the holder of the lock; `soon` lets it return before it is on disk."""
        assert self._lock is not None
        with self.one_at_a_time:
            written, is_committing = secrets.token_hex(8), False
            try:
                with self.log.transaction() as connection:
                    stamp = self._stamp(*self._lock.enter(connection, soon=soon, written=written))
                    memory = self.memory_of(connection, stamp)
                    yield JournalTransaction(self.log, self.settings, self.rows, connection, memory)
                    self._written, is_committing = written, True
            except BaseException:
                # Perhaps it was committed, and the answer was lost: only the tables know.
                self.forget_memory()
                if is_committing:
                    self.doubt()
                raise

    def _enter_at_once(self, query: str, values: dict[str, Any]) -> bool:
        """Run a statement as a whole transaction; return True if it changed anything."""
        memory, lock, written = self._memory, self._lock, secrets.token_hex(8)
        if memory is None or lock is None or not lock.taken or not self._written:
            return False
        # What `transaction` compares after it has locked the marks is a condition of the statement.
        marks: dict[str, Any] = {
            "holding": memory.stamp.holding,
            "former": self._written,
            "written": written,
            "token": memory.stamp.token,
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

    # --- outputs ----------------------------------------------------------------------------------

    def serve(self, names: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Makes each output known; those with a former name go on under the new one."""
        # Outside of a transaction: with a second connection in the pool the two would take turns,
        # and all that the server keeps for a session be read twice.
        self._checks_numbers = may_number_twice(self.log.engine, self.log.names)
        with self.transaction() as journal:
            journal.free_unplanned()
            for name, former_names in names:
                outputs = journal.memory.outputs
                if name not in outputs:
                    former = next((known for known in former_names if known in outputs), None)
                    if former is None:
                        journal.add_output(name)
                    else:
                        journal.rename_output(name, former)

    def pause(self, name: str, why: str | None) -> None:
        """Lets nothing go to an output, for this reason; None lets it go on."""
        with self.transaction() as journal:
            row = journal.memory.output(name)
            journal.execute("output_pause", [{"name": name, "paused": why}])
            journal.memory.outputs[name] = replace(row, paused=why)

    def warn(self, name: str, warning: str | None) -> None:
        """Keep a warning about a target."""
        with self.transaction() as journal:
            journal.move(replace(journal.memory.output(name), warning=warning))

    def now(self) -> int:
        """Return the database's clock; if it went back, bound all waits by the longest delay."""
        now = super().now()
        if self._clock_went_back:
            latest = now + int(self.settings.backoff.longest * 1000)
            bound = {"now": now, "latest": latest}
            with self.transaction(soon=True) as journal:
                if journal.memory.any_parked:
                    rested = {**bound, "rested": latest + REST_MILLISECONDS}
                    journal.execute("parked_no_later", [{**rested, "output": name} for name in journal.memory.outputs])
                if journal.memory.planned:
                    journal.execute("planned_no_later", [bound])
                journal.memory.retried.clear()
            self.faults.bound_delays(now, latest)
            self._clock_went_back = False
        return now

    # --- plans ------------------------------------------------------------------------------------

    def plan(self, name: str, plan: TakePlan) -> FinishedRows:
        """Make a plan durable before anything is sent; return the rows with their final status."""
        if self._enters_at_once and self._plan_at_once(name, plan):
            return FinishedRows()
        taken, sealed = plan.taken, plan.taken.sealed
        # What goes out must be on disk: a target whose plan no journal knows would get rows twice.
        with self.transaction(soon=not plan.planned) as journal:
            memory = journal.memory
            is_sealed = sealed is not None and sealed.records.meets(memory.taken)
            if memory.stamp != taken.stamp or is_sealed:
                raise TakeAgainError("Rows were held or sealed at the same time: read again.")
            if plan.history is not None and plan.history != int(journal.ask("history_stamp")[0][0]):
                raise TakeAgainError("Tables were altered at the same time.", stale=frozenset())
            if not memory.batches.keys() >= set(taken.batches):
                raise TakeAgainError("A batch was joined at the same time; it is read again.")
            row = memory.output(name)
            position = max([row.position, *taken.batches])
            if sealed is not None:
                position = journal.seal(name, sealed)
                memory.looked = None  # it may have these rows, and they have a plan now
                memory.proven.seal(sealed.records)
            if taken.unparked:
                journal.unpark(taken.unparked)
            if plan.planned:
                columns, sent_rows = [], []
                for sent in plan.planned:
                    columns.append(sent.to_columns(name))
                    sent_rows.append(sent.records)
                journal.execute("planned_make", columns)
                rows = RowRanges.union(sent_rows)
                memory.planned[name] = rows | memory.planned[name] if name in memory.planned else rows
                row = give_plan(row, plan.plan, rows if plan.is_asked else None)
            if taken.parked or plan.again:
                journal.park([*taken.parked, *plan.again])
            for table in plan.readable:
                journal.execute("parked_read_again", [{"output": name, "table": table}])
            if taken.gone:
                journal.leave(taken.gone)
            if plan.planned or position != row.position:
                journal.move(replace(row, position=position))
            # After rows were parked, which may be the first of these objects now.
            if taken.unparked:
                journal.lead(name, [waited.object for waited in taken.unparked])
            finished = (
                journal.finish_rows(name, RowRanges.of(plan.over), plan.outcomes) if plan.over else FinishedRows()
            )
            journal.drop_passed()
            if sealed is not None and memory.any_parked:
                journal.see(sealed.records)
        if plan.readable:
            self.faults.end(name, plan.readable)
        return finished

    def _plan_at_once(self, name: str, plan: TakePlan) -> bool:
        """Enter a plan by one statement; return True if it was entered."""
        with self.one_at_a_time:
            memory = self._memory
            if memory is None:
                return False
            if (plain := plan_plainly(memory, name, plan)) is None:
                return False
            row, values = plain
            if not self._enter_at_once("plan_at_once", values):
                return False
            memory.outputs[name] = row
            memory.planned[name] = plan.planned[0].records
            memory.looked = None  # it may have these rows, and they have a plan now
            memory.proven.seal(plan.taken.records)
        return True

    def done(self, name: str, done: Done) -> FinishedRows:
        """Acknowledge planned documents; park rows to be retried."""
        if self._enters_at_once and (finished := self._finish_at_once(name, done)) is not None:
            return finished
        # Should this not be on disk when a machine fails, a target that can be asked repeats it.
        with self.transaction(soon=done.asked) as journal:
            self._refuse_doubts(done.doubts)
            memory = journal.memory
            row = memory.output(name)
            keys, sent_rows = [], []
            for sent in done.planned:
                keys.append({"output": name, "plan": sent.plan, "place": sent.place})
                sent_rows.append(sent.records)
            journal.execute("planned_drop", keys)
            if done.associations:
                journal.write_associations(name, done.associations)
            planned = memory.planned.pop(name, NO_ROWS)
            # Somebody else may have taken rows out of a document since it was read.
            records = RowRanges.union(sent_rows) & planned
            # A receiver's documents of which all rows are gone are in the table still.
            if not done.asked:
                memory.planned[name] = planned - records
            over = records
            if done.again:
                again = [parked for parked in done.again if parked.record in records]
                journal.park(again)
                over -= RowRanges.of([parked.record for parked in again])
            if done.gone:
                # An answer names rows too that left since, and may wait again by now as new ones.
                journal.leave(done.gone & records)
                over -= done.gone
            counts = row.transactions if done.transactions is None else done.transactions
            if done.target_plan is not None:
                row = replace(row, plan=done.target_plan, target_plan=done.target_plan)
            if done.target_plan is not None or counts != row.transactions:
                journal.move(replace(row, transactions=counts))
            return journal.finish_rows(name, over, done.outcomes)

    def _finish_at_once(self, name: str, done: Done) -> FinishedRows | None:
        """Enter the end of a plan by one statement; None where it was not entered."""
        with self.one_at_a_time:
            memory = self._memory
            # After a doubt the transaction refuses it: the target is asked first.
            if memory is None or done.doubts not in (None, self.doubts):
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

    def _refuse_doubts(self, doubts: int | None) -> None:
        """Raise TakeAgainError if the log may have been restored since a target was asked."""
        if doubts not in (None, self.doubts):
            raise TakeAgainError("The log may have been restored: the target is asked first.")

    def later(self, name: str, documents: Sequence[OnTheWay], due: int) -> None:
        """Repeat documents with an unreadable answer later, as they are, with plan and id."""
        values: list[dict[str, Any]] = []
        for sent in documents:
            again = {"due": due, "attempts": sent.attempts + 1}
            values.append({"output": name, "plan": sent.plan, "place": sent.place, **again})
        with self.transaction() as journal:
            journal.execute("planned_later", values)

    def answer_late(
        self, name: str, answers: Mapping[int, Outcome], associations: Mapping[str, Association], doubts: int
    ) -> FinishedRows:
        """Give rows that were delivered the status of an answer that came later; a worse one stays."""
        statuses: Counter[Status] = Counter()
        ended = RowRanges()
        with self.transaction() as journal:
            self._refuse_doubts(doubts)
            journal.write_associations(name, associations)
            for status, former in ((Status.ERROR, "SWSSS"), (Status.WARNING, "SSSSS")):
                rows = RowRanges.of([number for number, answer in answers.items() if answer.status is status])
                if not rows:
                    continue
                taken_back = {f"status_{number}": letter for number, letter in enumerate(former, 1)}
                if changed := self._requeue(journal, rows, PROCESSED_STATUSES | taken_back):
                    worse = {number: answers[number] for number in changed}
                    apart = {}
                    if len(journal.memory.outputs) > 1:
                        apart = {number: as_text({name: answer_of(worse[number])}) for number in changed}
                    journal.write_statuses(changed, worse, apart)
                    statuses[status] += len(worse)
                    ended |= changed
        return FinishedRows(statuses, ended)

    def _requeue(self, journal: JournalTransaction, rows: RowRanges, choice: Mapping[str, Any]) -> RowRanges:
        """Let rows wait again that have one of the chosen statuses; return them."""
        ids = id_list([*rows])
        waiting = journal.numbers("still_waiting", ids=ids)
        for query in ("requeue_run", "forget_run"):
            journal.execute(query, [{**run, **choice} for run in runs_of(rows)])
        return journal.numbers("still_waiting", ids=ids) - waiting

    # --- what was restored ------------------------------------------------------------------------

    def adopt(self, name: str, plan: str, named: PlanName, warning: str, doubts: int) -> bool:
        """Take over a plan the log has lost; return True if rows of its output wait because of
        that.
        """
        with self.transaction() as journal:
            self._refuse_doubts(doubts)
            row = journal.memory.output(name)
            restored = max(named.highest, EVER if row.restored is None else row.restored)
            is_logged = row.plans > 0 or journal.ask("count_between", first=EVER, last=restored)[0][0] > 0
            row = replace(row, plans=max(row.plans, named.number), plan=plan, target_plan=plan, recent="")
            if is_logged:
                row = replace(row, restored=restored, warning=warning)
            journal.move(row)
            return is_logged

    def send_again(self, name: str, rows: RowRanges, doubts: int, *, target_plan: str, recent: str) -> RowRanges:
        """Requeue rows for an output whose target has lost them; return those not yet waiting."""
        with self.transaction() as journal:
            self._refuse_doubts(doubts)
            memory, ids = journal.memory, id_list([*rows])
            row = memory.output(name)
            waiting = journal.numbers("still_waiting", ids=ids)
            # Those that others lack. What nobody has is new, and what this one has ahead comes to it.
            lacking = memory.lacking(name) | journal.numbers("parked_of_output", output=name)
            known = memory.taken | journal.numbers("parked_among", ids=ids)
            lost = (waiting & known) - lacking
            journal.execute("answer_again", [{"output": name, **run} for run in runs_of(rows)])
            journal.execute("answer_before", runs_of(rows))
            memory.any_answers = True
            lost |= self._requeue(journal, rows, PROCESSED_STATUSES)
            journal.park_new(name, lost)
            plan = row.plan if name in memory.planned else target_plan
            journal.move(replace(row, plan=plan, target_plan=target_plan, recent=recent))
            return lost

    # --- what others did --------------------------------------------------------------------------

    def sweep(self) -> bool:
        """Forget rows somebody has deleted or finished; return True if there were any."""
        with self.transaction(soon=True) as journal:
            memory = journal.memory
            gone = self._find_gone(journal)
            leaders: list[dict[str, Any]] = []
            if memory.any_parked:
                gone |= journal.numbers("parked_gone", limit=PIECE_ROWS)
            if gone:
                journal.leave(gone)
            if memory.any_parked and memory.leader_gone:
                for output, _, record in journal.ask("parked_leaderless"):
                    leaders.append({"output": str(output), "record_id": int(record)})
                journal.execute("parked_lead", leaders)
                memory.leader_gone = False
            if memory.any_parked:
                memory.any_parked = journal.ask("parked_any")[0][0] is not None
            if not memory.any_parked:
                # It is for the time in which rows wait: without any, all gaps are searched.
                memory.seen = RowRanges()
            elif memory.seen:
                # Of rows that nobody looks for somebody may have set some back: a piece each time.
                begin, end = memory.seen.parts[0][0], memory.seen.parts[-1][1]
                first = self._looked + 1 if begin <= self._looked < end else begin
                self._looked = min(end, first + PIECE_NUMBERS)
                memory.seen -= RowRanges.of(self.rows.find_untaken(journal, [(first, self._looked)], PIECE_ROWS))
            if memory.any_held:
                journal.execute("hold_gone")
                memory.any_held = journal.ask("hold_any")[0][0] is not None
            journal.drop_passed()
            return bool(gone or leaders)

    def _find_gone(self, journal: JournalTransaction) -> RowRanges:
        """Find rows of planned documents, and of some batches, no longer waiting."""
        batches = journal.memory.batches
        # A far output may have thousands of batches ahead: the others have their turn another time.
        unswept = [number for number in batches if number > self._swept] or [*batches]
        some = unswept[:SWEPT_BATCHES]
        self._swept = max(some, default=0)
        gone = RowRanges()
        for records in [*(batches[number].records for number in some), *journal.memory.planned.values()]:
            if records:
                gone |= records - journal.numbers("still_waiting", ids=id_list([*records]))
        return gone
