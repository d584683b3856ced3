"""The journal of a log: which rows were sealed, how far each output is, and what waits for what.

For each output a row is at any time in exactly one place: ahead of its position, parked, planned,
or over. It gets its status when it is over for every output. The position moves when rows are
planned, not when they are delivered: only what was planned and is not at the target is parked.

One publisher writes the journal, the holder of the log's lock. Each transaction locks the mark
`holding` first and the lock's own mark after it, so that who has lost the lock writes nothing. What
memory knows is dropped after any exception, and when somebody else has changed the mark `holding`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import Outcome, Status
from eventlog.publisher.memory import Memory, see
from eventlog.publisher.plans import (
    PROCESSED_STATUSES,
    Done,
    FinishedRows,
    HoldsChangedError,
    PlanName,
    TakePlan,
    add_recent,
)
from eventlog.publisher.statuses import answer_of
from eventlog.publisher.table_faults import REST_MILLISECONDS
from eventlog.publisher.tables import EVER, JournalRow, OnTheWay, Parked
from eventlog.publisher.writing import JournalWriter
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges, as_text
from eventlog.sql.log import Log, id_list
from eventlog.sql.log_indexes import may_number_twice

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.associations import Association
    from eventlog.core.schema import Catalog
    from eventlog.sources.log.lock import LogLock

SWEPT_BATCHES: Final = 10
"""Of so many batches it is looked at once whether their rows still wait."""

PIECE_ROWS: Final = 10_000
"""So many rows are swept in one transaction at most."""

PIECE_NUMBERS: Final = 100_000
"""So many numbers are searched at once for rows that somebody has set back."""


class Journal(JournalWriter):
    """The journal of one log, as the holder of its lock writes it."""

    def __init__(self, log: Log, lock: LogLock, settings: LogSettings, catalog: Catalog | None = None) -> None:
        super().__init__(log, lock, settings, catalog)
        self._swept = self._looked = 0
        self._clock_went_back = True  # nobody knows what it was when this log was published last

    # --- outputs ----------------------------------------------------------------------------------

    def serve(self, names: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Makes each output known; those with a former name go on under the new one."""
        # Outside of a transaction: with a second connection in the pool the two would take turns,
        # and all that the server keeps for a session be read twice.
        self._checks_numbers = may_number_twice(self.log.engine, self.log.names)
        with self.transaction() as (connection, memory):
            self.free_unplanned(connection, memory)
            for name, former_names in names:
                if name in memory.outputs:
                    continue
                former = next((known for known in former_names if known in memory.outputs), None)
                if former is None:
                    self._add(connection, memory, name)
                else:
                    for query in ("output", "planned", "parked", "answer", "association"):
                        self._execute(connection, f"{query}_rename", [{"name": name, "former": former}])
                    memory.outputs[name] = replace(memory.outputs.pop(former), name=name)
                    if former in memory.planned:
                        memory.planned[name] = memory.planned.pop(former)

    def _add(self, connection: Connection, memory: Memory, name: str) -> None:
        """Add an output. It lacks the rows of the foremost: those ahead of it, parked or planned."""
        foremost, row = memory.foremost, memory.new_output(name)
        self._execute(connection, "output_make", [row.to_columns()])
        memory.outputs[name] = row
        if foremost is None:
            self._drop_passed(connection, memory)  # rows of the last output that somebody forgot
            return
        self._execute(connection, "parked_copy", [{"name": name, "former": foremost.name}])
        records = sorted(memory.planned.get(foremost.name, ()))
        objects = self.name_objects(connection, records)
        waiting = [
            Parked(output=name, record=record, object=objects[record], reason="new", due=0)
            for record in records
            if record in objects
        ]
        if waiting:
            self.park(connection, memory, waiting)
        self._pass_converted(connection, memory, row)

    def _pass_converted(self, connection: Connection, memory: Memory, row: JournalRow) -> None:
        """Pass a new output over the rows of a conversion. Park the rows between them."""
        ahead = [number for number in sorted(memory.batches) if number > row.position]
        reserved = memory.reserved_above
        converted = {number for number in ahead if number in memory.converted}
        if reserved is not None:
            converted.update(number for number in ahead if number > reserved)
        if not converted:
            return
        for number in ahead:
            if number not in converted:
                self._park_new(connection, memory, row.name, memory.batches[number].records)
        self._move(connection, memory, replace(row, position=memory.last_batch))

    def free_unplanned(self, connection: Connection, memory: Memory) -> None:
        """Give back what conversions have sealed of which nothing has appeared: who has the lock now has ended them."""
        for row in list(memory.outputs.values()):
            if row.is_conversion and not row.is_planned:
                self.free(connection, memory, row)

    def free(self, connection: Connection, memory: Memory, row: JournalRow) -> None:
        """Forget a conversion. Rows that it has not marked wait as if nobody had taken them."""
        unmarked = [number for number in memory.batches if row.position < number <= row.plans]
        for number in unmarked:
            parts = memory.batches.pop(number).records.parts
            runs = [{"first": first, "last": last} for first, last in parts]
            # Somebody may have given them up for another output: now they are new.
            if memory.any_parked:
                self._execute(connection, "parked_drop_run", runs)
            if memory.any_answers:
                self._execute(connection, "answer_drop", runs)
            self._execute(connection, "batch_drop", [{"id": number}])
        for other in list(memory.outputs.values()):
            if row.position < other.position <= row.plans:
                self._move(connection, memory, replace(other, position=row.position))
        self._drop_passed(connection, memory)
        self._execute(connection, "output_forget", [{"name": row.name}])
        del memory.outputs[row.name]

    def pause(self, name: str, why: str | None) -> None:
        """Lets nothing go to an output, for this reason; None lets it go on."""
        with self.transaction() as (connection, memory):
            row = memory.output(name)
            self._execute(connection, "output_pause", [{"name": name, "paused": why}])
            memory.outputs[name] = replace(row, paused=why)

    def warn(self, name: str, warning: str | None) -> None:
        """Keep a warning about a target."""
        with self.transaction() as (connection, memory):
            self._move(connection, memory, replace(memory.output(name), warning=warning))

    def now(self) -> int:
        """Return the database's clock; if it went back, bound all waits by the longest delay."""
        now = super().now()
        if self._clock_went_back:
            latest = now + int(self.settings.backoff.longest * 1000)
            bound = {"now": now, "latest": latest}
            with self.transaction(soon=True) as (connection, memory):
                if memory.any_parked:
                    rested = {**bound, "rested": latest + REST_MILLISECONDS}
                    self._execute(
                        connection, "parked_no_later", [{**rested, "output": name} for name in memory.outputs]
                    )
                if memory.planned:
                    self._execute(connection, "planned_no_later", [bound])
                memory.retried.clear()
            self.faults.bound_delays(now, latest)
            self._clock_went_back = False
        return now

    # --- what changes -----------------------------------------------------------------------------

    def plan(self, name: str, plan: TakePlan) -> FinishedRows:
        """Make a plan durable before anything is sent; return the rows with their final status."""
        if self._plan_at_once(name, plan):
            return FinishedRows()
        # What goes out must be on disk: a target whose plan no journal knows would get rows twice.
        with self.transaction(soon=not plan.planned) as (connection, memory):
            is_sealed = plan.sealed is not None and plan.sealed.records.meets(memory.taken)
            if memory.stamp != plan.stamp or is_sealed:
                raise HoldsChangedError("Rows were held or sealed at the same time: read again.")
            self._refuse_alterations(connection, plan.history)
            if not memory.batches.keys() >= set(plan.passed):
                raise HoldsChangedError("A batch was joined at the same time; it is read again.")
            row = memory.output(name)
            position = max([row.position, *plan.passed])
            if plan.sealed is not None:
                position = self._seal(connection, memory, name, plan.sealed)
                memory.proven.seal(plan.sealed.records)
            if plan.unparked:
                self._unpark(connection, memory, plan.unparked)
            if plan.planned:
                records = [sent.records for sent in plan.planned]
                if plan.is_asked:
                    row = replace(row, recent=add_recent(row.recent, row.plan, plan.plan, RowRanges.union(records)))
                self._execute(connection, "planned_make", [sent.to_columns(name) for sent in plan.planned])
                if name in memory.planned:
                    records.append(memory.planned[name])
                memory.planned[name] = RowRanges.union(records)
                row = replace(row, plans=row.plans + 1, plan=plan.plan, target_plan=row.plan or row.target_plan)
            if plan.parked:
                self.park(connection, memory, plan.parked)
            for table in plan.readable:
                self._execute(connection, "parked_read_again", [{"output": name, "table": table}])
            if plan.gone:
                self._leave(connection, memory, plan.gone)
            if plan.planned or position != row.position:
                self._move(connection, memory, replace(row, position=position))
            # After rows were parked, which may be the first of these objects now.
            if plan.unparked:
                self._lead(connection, name, [waited.object for waited in plan.unparked])
            finished = FinishedRows()
            if plan.over:
                finished = self._finish_rows(connection, memory, name, RowRanges.of(plan.over), plan.outcomes)
            self._drop_passed(connection, memory)
            if plan.sealed is not None and memory.any_parked:
                see(connection, self.log, memory, plan.sealed.records)
        self.faults.end(name, plan.readable)
        return finished

    def done(self, name: str, done: Done) -> FinishedRows:
        """Acknowledge planned documents; park rows to be retried."""
        if (finished := self._finish_at_once(name, done)) is not None:
            return finished
        # Should this not be on disk when a machine fails, a target that can be asked repeats it.
        with self.transaction(soon=done.asked) as (connection, memory):
            self._refuse_doubts(done.doubts)
            row = memory.output(name)
            keys, read = [], []
            for sent in done.planned:
                keys.append({"output": name, "plan": sent.plan, "place": sent.place})
                read.append(sent.records)
            self._execute(connection, "planned_drop", keys)
            if done.associations:
                self._write_associations(connection, name, done.associations)
            planned = memory.planned.pop(name, RowRanges())
            # Somebody else may have taken rows out of a document since it was read.
            records = RowRanges.union(read) & planned
            # A receiver's documents of which all rows are gone are in the table still.
            if not done.asked:
                memory.planned[name] = planned - records
            again = [parked for parked in done.again if parked.record in records]
            over = records - done.gone
            if again:
                self.park(connection, memory, again)
                over -= RowRanges.of([parked.record for parked in again])
            if done.gone:
                # An answer names rows too that left since, and may wait again by now as new ones.
                self._leave(connection, memory, done.gone & records)
            counts = row.transactions if done.transactions is None else done.transactions
            if done.target_plan is not None:
                row = replace(row, plan=done.target_plan, target_plan=done.target_plan)
            if done.target_plan is not None or counts != row.transactions:
                self._move(connection, memory, replace(row, transactions=counts))
            return self._finish_rows(connection, memory, name, over, done.outcomes)

    def _write_associations(self, connection: Connection, name: str, known: Mapping[str, Association]) -> None:
        from eventlog.publisher.associated import write_associations

        for query, values in write_associations(name, known):
            self._execute(connection, query, values)

    def later(self, name: str, documents: Sequence[OnTheWay], due: int) -> None:
        """Repeat documents with an unreadable answer later, as they are, with plan and id."""
        with self.transaction() as (connection, _):
            values: list[dict[str, Any]] = []
            for sent in documents:
                again = {"due": due, "attempts": sent.attempts + 1}
                values.append({"output": name, "plan": sent.plan, "place": sent.place, **again})
            self._execute(connection, "planned_later", values)

    def answer_late(
        self, name: str, answers: Mapping[int, Outcome], associations: Mapping[str, Association], doubts: int
    ) -> FinishedRows:
        """Give rows that were delivered the status of an answer that came later; a worse one stays."""
        statuses: Counter[Status] = Counter()
        ended = RowRanges()
        with self.transaction() as (connection, memory):
            self._refuse_doubts(doubts)
            self._write_associations(connection, name, associations)
            for status, former in ((Status.ERROR, "SWSSS"), (Status.WARNING, "SSSSS")):
                rows = RowRanges.of([number for number, answer in answers.items() if answer.status is status])
                if not rows:
                    continue
                ids, runs = id_list([*rows]), [{"first": first, "last": last} for first, last in rows.parts]
                taken_back = {f"status_{number}": letter for number, letter in enumerate(former, 1)}
                waiting = self.numbers(connection, "still_waiting", ids=ids)
                for query in ("requeue_run", "forget_run"):
                    self._execute(connection, query, [{**run, **PROCESSED_STATUSES, **taken_back} for run in runs])
                if changed := self.numbers(connection, "still_waiting", ids=ids) - waiting:
                    worse = {number: answers[number] for number in changed}
                    apart = {}
                    if len(memory.outputs) > 1:
                        apart = {number: as_text({name: answer_of(worse[number])}) for number in changed}
                    self._write_statuses(connection, memory, changed, worse, apart)
                    statuses[status] += len(worse)
                    ended |= changed
        return FinishedRows(statuses, ended)

    # --- what was restored ------------------------------------------------------------------------

    def adopt(self, name: str, plan: str, named: PlanName, warning: str, doubts: int) -> bool:
        """Take over a plan the log has lost; return True if rows of its output wait because of
        that.
        """
        with self.transaction() as (connection, memory):
            self._refuse_doubts(doubts)
            row = memory.output(name)
            restored = max(named.highest, EVER if row.restored is None else row.restored)
            bound = {"first": EVER, "last": restored}
            is_logged = row.plans > 0 or self.ask(connection, "count_between", **bound)[0][0] > 0
            row = replace(row, plans=max(row.plans, named.number), plan=plan, target_plan=plan, recent="")
            if is_logged:
                row = replace(row, restored=restored, warning=warning)
            self._move(connection, memory, row)
            return is_logged

    def send_again(self, name: str, rows: RowRanges, doubts: int, *, target_plan: str, recent: str) -> RowRanges:
        """Requeue rows for an output whose target has lost them; return those not yet waiting."""
        with self.transaction() as (connection, memory):
            self._refuse_doubts(doubts)
            row, runs = memory.output(name), [{"first": first, "last": last} for first, last in rows.parts]
            ids = id_list([*rows])
            waiting = self.numbers(connection, "still_waiting", ids=ids)
            # Those that others lack. What nobody has is new, and what this one has ahead comes to it.
            ahead = [batch.records for number, batch in memory.batches.items() if number > row.position]
            lacking = RowRanges.union([*ahead, memory.planned.get(name, RowRanges())])
            lacking |= self.numbers(connection, "parked_of_output", output=name)
            known = memory.taken | self.numbers(connection, "parked_among", ids=ids)
            lost = (waiting & known) - lacking
            self._execute(connection, "answer_again", [{"output": name, **run} for run in runs])
            self._execute(connection, "answer_before", runs)
            memory.any_answers = True
            for query in ("requeue_run", "forget_run"):
                self._execute(connection, query, [{**run, **PROCESSED_STATUSES} for run in runs])
            lost |= self.numbers(connection, "still_waiting", ids=ids) - waiting
            self._park_new(connection, memory, name, lost)
            plan = row.plan if name in memory.planned else target_plan
            self._move(connection, memory, replace(row, plan=plan, target_plan=target_plan, recent=recent))
            return lost

    def sweep(self) -> bool:
        """Forget rows somebody has deleted or finished; return True if there were any."""
        with self.transaction(soon=True) as (connection, memory):
            gone = self._find_gone(connection, memory)
            leaders: list[dict[str, Any]] = []
            if memory.any_parked:
                gone |= self.numbers(connection, "parked_gone", limit=PIECE_ROWS)
            if gone:
                self._leave(connection, memory, gone)
            if memory.any_parked and memory.leader_gone:
                leaders = [
                    {"output": str(output), "record_id": int(record)}
                    for output, _, record in self.ask(connection, "parked_leaderless")
                ]
                self._execute(connection, "parked_lead", leaders)
                memory.leader_gone = False
            if memory.any_parked:
                memory.any_parked = self.ask(connection, "parked_any")[0][0] is not None
            if not memory.any_parked:
                # It is for the time in which rows wait: without any, all gaps are searched.
                memory.seen = RowRanges()
            elif memory.seen:
                # Of rows that nobody looks for somebody may have set some back: a piece each time.
                begin, end = memory.seen.parts[0][0], memory.seen.parts[-1][1]
                first = self._looked + 1 if begin <= self._looked < end else begin
                self._looked = min(end, first + PIECE_NUMBERS)
                set_back = self.rows.list_unsealed(connection, memory, (first, self._looked), PIECE_ROWS)
                memory.seen -= RowRanges.of(set_back)
            if memory.any_held:
                connection.execute(self.log.query("hold_gone"))
                memory.any_held = self.ask(connection, "hold_any")[0][0] is not None
            self._drop_passed(connection, memory)
            return bool(gone) or bool(leaders)

    def _find_gone(self, connection: Connection, memory: Memory) -> RowRanges:
        """Find rows of planned documents, and of some batches, no longer waiting."""
        numbers = sorted(memory.batches)
        # A far output may have thousands of batches ahead: the others have their turn another time.
        unswept = [number for number in numbers if number > self._swept] or numbers
        some = unswept[:SWEPT_BATCHES]
        self._swept = max(some, default=0)
        taken = [memory.batches[number].records for number in some]
        gone = RowRanges()
        for records in filter(None, [*taken, *memory.planned.values()]):
            waiting = self.numbers(connection, "still_waiting", ids=id_list([*records]))
            gone |= records - waiting
        return gone
