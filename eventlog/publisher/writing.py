"""A transaction of the journal: what it reads, what it writes, and how rows end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import Outcome, Reason, Status
from eventlog.publisher.journal_view import View
from eventlog.publisher.memory import Sealed
from eventlog.publisher.plans import FinishedRows
from eventlog.publisher.row_outcomes import worst_of
from eventlog.publisher.selection import Parking
from eventlog.publisher.statuses import note_of, record_ends, write_apart
from eventlog.publisher.tables import JournalRow, OnTheWay, Parked, outcome_of, runs_of
from eventlog.sources.marks import SEEN, Marks, RowRanges, as_text
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from eventlog.core.associations import Association

MERGED_ROWS: Final = 10_000
"""Batches are made one while they have no more rows together."""

MANY_ROWS: Final = 20
"""From so many on rows that wait alike are parked by one statement."""


class JournalTransaction(View, frozen=True):
    """Writes the tables of the journal, and notes in memory what they hold then: each method a part of it."""

    def execute(self, query: str, values: Sequence[Mapping[str, Any]] = ({},)) -> None:
        """Run a statement once for each of these values."""
        # One is sent as one: a driver may prepare more than it has to for several.
        if len(values) == 1:
            self.log.execute(self.connection, self.log.query(query), values[0])
        elif values:
            self.connection.execute(self.log.query(query), list(values))

    # --- outputs ----------------------------------------------------------------------------------

    def move(self, row: JournalRow) -> None:
        """Enter where an output is."""
        self.execute("output_move", [row.to_columns()])
        self.memory.outputs[row.name] = row

    def add_output(self, name: str) -> JournalRow:
        """Add an output. It lacks the rows of the foremost: those ahead of it, parked or planned."""
        memory = self.memory
        foremost, row = memory.foremost, memory.new_output(name)
        self.execute("output_make", [row.to_columns()])
        memory.outputs[name] = row
        if foremost is None:
            self.drop_passed()  # rows of the last output that somebody forgot
            return row
        self.execute("parked_copy", [{"name": name, "former": foremost.name}])
        objects = self.objects(memory.planned.get(foremost.name, ()))
        waiting = sorted(objects.items())
        self.park([Parked(output=name, record=record, object=of, reason="new", due=0) for record, of in waiting])
        # It passes the rows of a conversion; those between them wait.
        if converted := memory.converted_ahead(row):
            for number, batch in memory.ahead(row).items():
                if number not in converted:
                    self.park_new(name, batch.records)
            self.move(replace(row, position=memory.last_batch))
        return memory.outputs[name]

    def rename_output(self, name: str, former: str) -> None:
        """Let an output go on under another name."""
        memory = self.memory
        for query in ("output", "planned", "parked", "answer", "association"):
            self.execute(f"{query}_rename", [{"name": name, "former": former}])
        memory.outputs[name] = replace(memory.outputs.pop(former), name=name)
        if former in memory.planned:
            memory.planned[name] = memory.planned.pop(former)

    def free_unplanned(self) -> None:
        """Give back what conversions have sealed of which nothing has appeared: who has the lock now has ended them."""
        for row in list(self.memory.outputs.values()):
            if row.is_conversion and not row.is_planned:
                self.free(row)

    def free(self, row: JournalRow) -> None:
        """Forget a conversion. Rows that it has not marked wait as if nobody had taken them."""
        memory = self.memory
        for number, batch in memory.ahead(row).items():
            if number > row.plans:
                continue
            # Somebody may have given them up for another output: now they are new.
            if memory.any_parked:
                self.execute("parked_drop_run", runs_of(batch.records))
            if memory.any_answers:
                self.execute("answer_drop", runs_of(batch.records))
            self.execute("batch_drop", [{"id": number}])
            del memory.batches[number]
        for other in list(memory.outputs.values()):
            if row.position < other.position <= row.plans:
                self.move(replace(other, position=row.position))
        self.drop_passed()
        self.execute("output_forget", [{"name": row.name}])
        del memory.outputs[row.name]

    def write_associations(self, name: str, associations: Mapping[str, Association]) -> None:
        """Enter what a receiver calls objects, and who waits for that."""
        from eventlog.publisher.associated import name_row

        rows = {of_object: {"output": name, **name_row(of_object)} for of_object in associations}
        self.execute("association_drop", [{"output": name, "object": row["object"]} for row in rows.values()])
        kept: list[Mapping[str, Any]] = []
        for of_object, known in associations.items():
            if not known.is_empty:
                awaiting = as_text(known.awaiting) if known.awaiting else None
                said = {"association": known.id, "awaiting": awaiting, "is_over": int(known.over)}
                kept.append(rows[of_object] | said)
        self.execute("association_make", kept)

    # --- batches ----------------------------------------------------------------------------------

    def seal(self, name: str, sealed: Sealed) -> int:
        """Give new rows a number; return it. Where nobody else has them ahead, no table has the batch."""
        memory = self.memory
        number = memory.last_batch + 1
        if memory.outputs.keys() == {name}:
            return number
        # The batch before becomes one with it, so that an output far behind has few large ones. Not
        # where an output stands between the two, or may be about to plan that one, nor with what a
        # conversion has done: an output that comes later would get it.
        former = max(memory.batches, default=0)
        if former and former not in memory.converted and self._may_grow(former, name):
            known = memory.batches[former]
            joined = Sealed(known.records | sealed.records, known.weight + sealed.weight)  # its events are read again
            if len(joined.records) <= MERGED_ROWS and joined.weight <= self.settings.share:
                self.execute("batch_drop", [{"id": former}])
                del memory.batches[former]
                sealed = joined
        self.make_batch(number, Sealed(sealed.records, sealed.weight, sealed.events))
        memory.keep_few_events()
        return number

    def _may_grow(self, number: int, name: str) -> bool:
        """Return True if a batch may get more rows: no other output is past it, and none may be about to plan it."""
        if any(number in batches for batches in self.memory.in_take.values()):
            return False
        return all(row.position < number for row in self.memory.outputs.values() if row.name != name)

    def make_batch(self, number: int, batch: Sealed) -> None:
        """Enter a batch that an output has ahead."""
        values = {"id": number, "records": as_text(batch.records.parts), "weight": batch.weight}
        self.execute("batch_make", [values])
        self.memory.batches[number] = batch

    def drop_passed(self) -> None:
        """Drop batches no output has ahead any more, and those without rows."""
        if not (batches := self.memory.batches):
            return
        first = min(map(attrgetter("position"), self.memory.outputs.values()), default=0)
        over: list[dict[str, int]] = []
        for number, batch in [*batches.items()]:
            if number <= first or not batch.records:
                del batches[number]
                over.append({"id": number})
        self.execute("batch_drop", over)

    def see(self, records: RowRanges) -> None:
        """Note rows not to be looked for again: they are sealed, or were parked."""
        memory = self.memory
        # Written down now and then: who begins again would look among all that wait, in each turn.
        if memory.see(records):
            Marks(self.log).set(self.connection, SEEN, memory.seen.text())
            memory.seen_kept = len(memory.seen)

    # --- rows that wait ---------------------------------------------------------------------------

    def park(self, waiting: Sequence[Parked]) -> None:
        """Park rows."""
        if not waiting:
            return
        groups: dict[tuple[Any, ...], list[Parked]] = {}
        for row in waiting:
            alike = (row.output, row.object, row.reason, row.note, row.attempts, row.due)
            groups.setdefault(alike, []).append(row)
        single: list[dict[str, Any]] = []
        for rows in groups.values():
            if len(rows) < MANY_ROWS:
                single.extend(row.to_columns() for row in rows)
            else:
                values = rows[0].to_columns() | {"ids": id_list([row.record for row in rows])}
                del values["record_id"]
                self.execute("parked_make_many", [values])
        self.execute("parked_make", single)
        self.memory.add_parked(waiting)

    def park_new(self, name: str, rows: RowRanges) -> None:
        """Park rows that an output passes, behind those of their objects that wait."""
        objects = self.objects(rows)
        # No batch will have them any more, so nobody would notice that they wait no longer.
        if gone := rows - RowRanges.of(objects):
            self.leave(gone)
        if not objects:
            return
        waiting = self.ask("parked_objects", output=name, objects=as_text(sorted(set(objects.values()))))
        parking = Parking(name, led={str(known) for (known,) in waiting})
        for record, of_object in sorted(objects.items()):
            parking.add(record, of_object, "new", 0)
        self.park(parking.rows)

    def unpark(self, waited: Sequence[Parked]) -> None:
        """Forget that rows wait for an output."""
        ids = id_list([row.record for row in waited])
        self.execute("parked_drop_many", [{"output": waited[0].output, "ids": ids}])
        self.memory.forget_retried(waited)

    def lead(self, name: str, objects: Iterable[str]) -> None:
        """Free the next row of each object whose first row waits no longer."""
        if not (asked := sorted(set(objects))):
            return
        first_rows = self.ask("parked_first", output=name, objects=as_text(asked))
        # One with a time goes by itself, at that time.
        leaders = [{"output": name, "record_id": int(record)} for record, due in first_rows if due is None]
        self.execute("parked_lead", leaders)

    def leave(self, gone: RowRanges) -> None:
        """Remove rows from all tables: later ones with their numbers are new rows."""
        memory = self.memory
        self.execute("parked_drop_run", runs_of(gone))
        self.execute("answer_drop", runs_of(gone))
        for number, batch in memory.batches.items():
            if batch.records.meets(gone):
                left = batch.records - gone
                self.execute("batch_less", [{"id": number, "records": as_text(left.parts)}])
                memory.batches[number] = Sealed(left, batch.weight)
        memory.seen -= gone
        memory.proven.numbers -= gone
        memory.leader_gone = True
        memory.retried.clear()
        for output, records in memory.planned.items():
            if not records.meets(gone):
                continue
            memory.planned[output] = records - gone
            for documents in map(OnTheWay.read, self.ask("planned_read", output=output)):
                if documents.records.meets(gone):
                    details = [detail.without(gone) for detail in documents.details]
                    written = replace(documents, details=details).to_columns(output)
                    columns = ("output", "plan", "place", "records", "details")
                    self.execute("planned_less", [{column: written[column] for column in columns}])

    # --- statuses ---------------------------------------------------------------------------------

    def finish_rows(
        self, name: str, over: RowRanges, outcomes: Mapping[int, Outcome], *, speaks_for: Sequence[str] = ()
    ) -> FinishedRows:
        """Give finished rows their status, and keep outcomes of the others.

        A conversion speaks for outputs that do not get its rows.
        """
        if not over:
            return FinishedRows()
        memory = self.memory
        # They are over for all but for those that an output has ahead, planned or parked.
        final = over
        for planned in memory.planned.values():
            final -= planned
        if memory.batches:
            first = min(map(attrgetter("position"), memory.outputs.values()))
            for number, batch in memory.batches.items():
                if number > first:
                    final -= batch.records
        if memory.any_parked and final and memory.outputs.keys() - {name}:
            but = name if name in memory.outputs else "-"
            final -= self.numbers("parked_elsewhere", output=but, ids=id_list([*final]))
        if outcomes and (others := over - final):
            kept = {number: outcome for number, outcome in outcomes.items() if number in others}
            for output in speaks_for or (name,):
                self._keep_answers(output, kept)
        if not final:
            return FinishedRows()
        answers: dict[int, dict[str, Outcome]] = {}
        if outcomes:
            answers = {number: {name: outcome} for number, outcome in outcomes.items() if number in final}
        if memory.any_answers:
            self._add_answers(final, answers)
        ended: dict[int, Outcome] = {}
        for number, answered in answers.items():
            # What a conversion has published was not left out, whatever other outputs said.
            outputs = len(answered) * (number in outcomes) if speaks_for else len(memory.outputs)
            worst = worst_of(number, [*answered.values()], outputs)
            if worst is not None:
                ended[number] = worst
        apart = {} if speaks_for or len(memory.outputs) == 1 else write_apart(memory.outputs, answers, ended)
        self.write_statuses(final, ended, apart)
        statuses = Counter(map(attrgetter("status"), ended.values()))
        statuses[Status.SUCCESS] += len(final) - len(ended)
        return FinishedRows(+statuses, final)

    def write_statuses(self, rows: RowRanges, ended: Mapping[int, Outcome], answers: Mapping[int, str]) -> None:
        """Write how rows ended; those not in `ended` were published. `answers` are of outputs that ended them
        differently.
        """
        memory = self.memory
        # Somebody may have set rows back by SQL, and left the record of how they ended before.
        if rows.parts[0][0] <= memory.last_noted:
            self.execute("outcome_drop", runs_of(rows))
        record_ends(self.connection, self.log, rows, ended, self.settings, answers)
        memory.last_noted = max([memory.last_noted, *ended])
        if memory.last_processed is not None:
            memory.last_processed = max(memory.last_processed, rows.parts[-1][1])

    def _keep_answers(self, name: str, outcomes: Mapping[int, Outcome]) -> None:
        kept: list[dict[str, Any]] = []
        for number, outcome in outcomes.items():
            if outcome.reason is not Reason.PUBLISHED or outcome.note:
                row = {"record_id": number, "output": name, "note": note_of(outcome)}
                kept.append(row | {"status": outcome.status.value, "reason": outcome.reason.value})
        self.execute("answer_make", kept)
        self.memory.any_answers = self.memory.any_answers or bool(kept)

    def _add_answers(self, final: RowRanges, answers: dict[int, dict[str, Outcome]]) -> None:
        """Add other outputs' answers for these rows, and forget them."""
        for run in runs_of(final):
            answered = self.ask("answer_read", **run)
            for number, output, status, reason, note in answered:
                outcome = outcome_of(int(number), status, reason, note)
                answers.setdefault(int(number), {})[str(output)] = outcome
            if answered:
                self.execute("answer_drop", [run])
        self.memory.any_answers = self.ask("answer_any")[0][0] is not None
