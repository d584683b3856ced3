"""What transactions of the journal are made of: who enters, what they write, and how rows end."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import Outcome, Reason, Status
from eventlog.publisher.at_once import JournalAtOnce
from eventlog.publisher.memory import Memory, Sealed
from eventlog.publisher.plans import FinishedRows
from eventlog.publisher.row_outcomes import worst_of
from eventlog.publisher.selection import Parking
from eventlog.publisher.statuses import note_of, record_ends, write_apart
from eventlog.publisher.tables import JournalRow, OnTheWay, Parked, outcome_of
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges, as_text
from eventlog.sql.log import Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog
    from eventlog.sources.log.lock import LogLock

MERGED_ROWS: Final = 10_000
"""Batches are made one while they have no more rows together."""

MANY_ROWS: Final = 20
"""From so many on rows that wait alike are parked by one statement."""


class JournalWriter(JournalAtOnce):
    """Writes the tables of the journal, as the holder of its lock: each method does a part of a transaction."""

    def __init__(self, log: Log, lock: LogLock, settings: LogSettings, catalog: Catalog | None = None) -> None:
        super().__init__(log, settings, catalog)
        self._lock: LogLock = lock

    @contextmanager
    def transaction(self, *, soon: bool = False) -> Iterator[tuple[Connection, Memory]]:
        """Open a transaction of the holder of the lock; `soon` lets it return before it is on disk."""
        with self.one_at_a_time:
            written, is_committing = secrets.token_hex(8), False
            try:
                with self.log.transaction() as connection:
                    stamp = self._stamp(*self._lock.enter(connection, soon=soon, written=written))
                    yield connection, self.memory_of(connection, stamp)
                    self._written, is_committing = written, True
            except BaseException:
                # Perhaps it was committed, and the answer was lost: only the tables know.
                self.forget_memory()
                if is_committing:
                    self.doubt()
                raise

    def _execute(self, connection: Connection, query: str, values: Sequence[Mapping[str, Any]]) -> None:
        """Runs a statement once for each of these; nothing where there are none."""
        # One is sent as one: a driver may prepare more than it has to for several.
        if len(values) == 1:
            self.log.execute(connection, self.log.query(query), values[0])
        elif values:
            connection.execute(self.log.query(query), list(values))

    def _move(self, connection: Connection, memory: Memory, row: JournalRow) -> None:
        self._execute(connection, "output_move", [row.to_columns()])
        memory.outputs[row.name] = row

    # --- parts of a transaction -------------------------------------------------------------------

    def _seal(self, connection: Connection, memory: Memory, name: str, sealed: Sealed) -> int:
        """Gives new rows a number. Where nobody else has them ahead, no table has the batch."""
        number = memory.last_batch + 1
        others = [row.position for row in memory.outputs.values() if row.name != name]
        if not others:
            return number
        # The batch before becomes one with it, so that an output far behind has few large ones. Not
        # where an output stands between the two, or may be about to plan that one, nor with what a
        # conversion has done: an output that comes later would get it.
        former = max(memory.batches, default=0)
        in_take = any(former in batches for batches in memory.in_take.values())
        is_between = any(position >= former for position in others)
        if former and not (in_take or is_between or former in memory.converted):
            joined = memory.batches[former].join(sealed)
            if len(joined.records) <= MERGED_ROWS and joined.weight <= self.settings.share:
                self._execute(connection, "batch_drop", [{"id": former}])
                del memory.batches[former]
                sealed = joined
        values = {"id": number, "records": as_text(sealed.records.parts), "weight": sealed.weight}
        self._execute(connection, "batch_make", [values])
        memory.batches[number] = Sealed(sealed.records, sealed.weight, sealed.events)
        memory.keep_few_events()
        return number

    def park(self, connection: Connection, memory: Memory, waiting: Sequence[Parked]) -> None:
        """Park rows."""
        groups: dict[tuple[Any, ...], list[Parked]] = {}
        for row in waiting:
            alike = (row.output, row.object, row.reason, row.note, row.attempts, row.due)
            groups.setdefault(alike, []).append(row)
        single: list[dict[str, Any]] = []
        for (output, name, reason, note, attempts, due), rows in groups.items():
            if len(rows) < MANY_ROWS:
                single.extend(row.to_columns() for row in rows)
            else:
                ids = id_list([row.record for row in rows])
                values = {"output": output, "object": name, "reason": reason, "note": note}
                values |= {"attempts": attempts, "due": due, "ids": ids}
                self._execute(connection, "parked_make_many", [values])
        self._execute(connection, "parked_make", single)
        memory.add_parked(waiting)

    def name_objects(self, connection: Connection, rows: Sequence[int]) -> Mapping[int, str]:
        """Find the objects these rows are parked under, if still waiting."""
        return self.rows.objects(connection, rows)

    def _park_new(self, connection: Connection, memory: Memory, name: str, rows: RowRanges) -> None:
        objects = self.name_objects(connection, [*rows])
        # No batch will have them any more, so nobody would notice that they wait no longer.
        if gone := rows - RowRanges.of(objects):
            self._leave(connection, memory, gone)
        if not objects:
            return
        values = {"output": name, "objects": as_text(sorted(set(objects.values())))}
        waiting = {str(known) for (known,) in self.ask(connection, "parked_objects", **values)}
        parking = Parking(name, led=waiting)
        for record, of_object in sorted(objects.items()):
            parking.add(record, of_object, "new", 0)
        self.park(connection, memory, parking.rows)

    def _unpark(self, connection: Connection, memory: Memory, waited: Sequence[Parked]) -> None:
        ids = id_list([row.record for row in waited])
        self._execute(connection, "parked_drop_many", [{"output": waited[0].output, "ids": ids}])
        memory.forget_retried(waited)

    def _lead(self, connection: Connection, name: str, objects: Iterable[str]) -> None:
        """Free the next row of each object whose first row waits no longer."""
        asked = sorted(set(objects))
        if not asked:
            return
        first_rows = self.ask(connection, "parked_first", output=name, objects=as_text(asked))
        # One with a time goes by itself, at that time.
        leaders = [{"output": name, "record_id": int(record)} for record, due in first_rows if due is None]
        self._execute(connection, "parked_lead", leaders)

    def _leave(self, connection: Connection, memory: Memory, gone: RowRanges) -> None:
        """Remove rows from all tables: later ones with their numbers are new rows."""
        runs = [{"first": first, "last": last} for first, last in gone.parts]
        self._execute(connection, "parked_drop_run", runs)
        self._execute(connection, "answer_drop", runs)
        for number, batch in memory.batches.items():
            if batch.records.meets(gone):
                left = batch.records - gone
                less = {"id": number, "records": as_text(left.parts)}
                self._execute(connection, "batch_less", [less])
                memory.batches[number] = Sealed(left, batch.weight)
        memory.seen -= gone
        memory.proven.numbers -= gone
        memory.leader_gone = True
        memory.retried.clear()
        for output, records in memory.planned.items():
            if not records.meets(gone):
                continue
            memory.planned[output] = records - gone
            for row in self.ask(connection, "planned_read", output=output):
                documents = OnTheWay.read(row)
                if documents.records.meets(gone):
                    details = [detail.without(gone) for detail in documents.details]
                    written = replace(documents, details=details).to_columns(output)
                    columns = ("output", "plan", "place", "records", "details")
                    values = {column: written[column] for column in columns}
                    self._execute(connection, "planned_less", [values])

    def _drop_passed(self, connection: Connection, memory: Memory) -> None:
        """Drop batches no output has ahead any more, and those without rows."""
        if not (batches := memory.batches):
            return
        first = min([output.position for output in memory.outputs.values()], default=0)
        over = [number for number, batch in batches.items() if number <= first or not batch.records]
        self._execute(connection, "batch_drop", [{"id": number} for number in over])
        for number in over:
            del memory.batches[number]

    # --- statuses ----------------------------------------------------------------------------------

    def _finish_rows(
        self,
        connection: Connection,
        memory: Memory,
        name: str,
        over: RowRanges,
        outcomes: Mapping[int, Outcome],
        *,
        speaks_for: Sequence[str] = (),
    ) -> FinishedRows:
        """Give finished rows their status, and keep outcomes of the others.

        A conversion speaks for outputs that do not get its rows.
        """
        if not over:
            return FinishedRows()
        # They are over for all but for those that an output has ahead, planned or parked.
        final = over
        for other, row in memory.outputs.items():
            if planned := memory.planned.get(other):
                final -= planned
            for number, batch in memory.batches.items():
                if number > row.position:
                    final -= batch.records
        if memory.any_parked and memory.outputs.keys() - {name}:
            but = name if name in memory.outputs else "-"
            ids = id_list([*final])
            final -= self.numbers(connection, "parked_elsewhere", output=but, ids=ids)
        answers: dict[int, dict[str, Outcome]] = {}
        if outcomes:
            if others := over - final:
                kept = {number: outcome for number, outcome in outcomes.items() if number in others}
                for output in speaks_for or (name,):
                    self._keep_answers(connection, memory, output, kept)
            answers = {number: {name: outcome} for number, outcome in outcomes.items() if number in final}
        if not final:
            return FinishedRows()
        if memory.any_answers:
            self._add_answers(connection, memory, final, answers)
        ended: dict[int, Outcome] = {}
        for number, answered in answers.items():
            # What a conversion has published was not left out, whatever other outputs said.
            outputs = len(answered) * (number in outcomes) if speaks_for else len(memory.outputs)
            worst = worst_of(number, [*answered.values()], outputs)
            if worst is not None:
                ended[number] = worst
        apart = {} if speaks_for or len(memory.outputs) == 1 else write_apart(memory.outputs, answers, ended)
        self._write_statuses(connection, memory, final, ended, apart)
        statuses = Counter(map(attrgetter("status"), ended.values()))
        statuses[Status.SUCCESS] += len(final) - len(ended)
        return FinishedRows(+statuses, final)

    def _write_statuses(
        self,
        connection: Connection,
        memory: Memory,
        rows: RowRanges,
        ended: Mapping[int, Outcome],
        answers: Mapping[int, str],
    ) -> None:
        """Write how rows ended; those not in `ended` were published. `answers` are of outputs that ended them
        differently.
        """
        # Somebody may have set rows back by SQL, and left the record of how they ended before.
        if rows.parts[0][0] <= memory.last_noted:
            runs = [{"first": first, "last": last} for first, last in rows.parts]
            self._execute(connection, "outcome_drop", runs)
        record_ends(connection, self.log, rows, ended, self.settings, answers)
        memory.last_noted = max([memory.last_noted, *ended])
        if memory.last_processed is not None:
            memory.last_processed = max(memory.last_processed, rows.parts[-1][1])

    def _keep_answers(self, connection: Connection, memory: Memory, name: str, outcomes: Mapping[int, Outcome]) -> None:
        kept: list[dict[str, Any]] = []
        for number, outcome in outcomes.items():
            if outcome.reason is not Reason.PUBLISHED or outcome.note:
                row = {"record_id": number, "output": name, "note": note_of(outcome)}
                kept.append(row | {"status": outcome.status.value, "reason": outcome.reason.value})
        self._execute(connection, "answer_make", kept)
        memory.any_answers = memory.any_answers or bool(kept)

    def _add_answers(
        self, connection: Connection, memory: Memory, final: RowRanges, answers: dict[int, dict[str, Outcome]]
    ) -> None:
        """Add other outputs' answers for these rows, and forget them."""
        for first, last in final.parts:
            answered = self.ask(connection, "answer_read", first=first, last=last)
            for number, output, status, reason, note in answered:
                outcome = outcome_of(int(number), status, reason, note)
                answers.setdefault(int(number), {})[str(output)] = outcome
            if answered:
                self._execute(connection, "answer_drop", [{"first": first, "last": last}])
        memory.any_answers = self.ask(connection, "answer_any")[0][0] is not None
