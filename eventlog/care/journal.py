"""What an operator does with rows and outputs of the journal: holds rows and lets them go, has them
wait again, gives up what an output lacks.

Law: each transaction changes the mark `holding` first. So it waits for a publisher that writes, and
what that one knows of the tables is old from then on: a plan that it has in mind fails, and it
reads them again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import EVERY_ROW, Outcome, Reason, Status
from eventlog.publisher.journal import PIECE_ROWS, Journal
from eventlog.publisher.journal_view import View
from eventlog.publisher.memory import read_memory
from eventlog.publisher.plans import Done
from eventlog.publisher.tables import EVER, LAST_NUMBER, JournalRow, Parked, read_ranges, runs_of
from eventlog.publisher.writing import JournalTransaction
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges, Run, note_change
from eventlog.sql.log import Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

NOBODY: Final = "-"
"""Stands for an output where rows of any are meant."""


def hold(connection: Connection, log: Log, runs: Sequence[Run], note: str) -> tuple[int, set[str]]:
    """Hold waiting rows not yet planned.

    Returns how many are held, and the outputs already getting one of them.
    """
    note_change(connection, log)  # first: whoever plans rows meanwhile is waited for
    held = 0
    for first, last in runs:
        bounds = {"first": first, "last": last}
        connection.execute(log.query("hold_make"), bounds | {"note": note})
        held += int(connection.execute(log.query("hold_count"), bounds).scalar_one())
    meant = RowRanges(runs)
    late = {
        str(output)
        for output, plan, _, records in log.rows(connection, log.query("planned_records"))
        if read_ranges(records, f"records of plan {plan}") & meant
    }
    if any(JournalRow.read(row).is_conversion for row in log.rows(connection, log.query("outputs_read"))):
        memory = read_memory(connection, log)
        converting = [row.name for row in memory.outputs.values() if row.is_conversion]
        late.update(name for name in converting if memory.lacking(name) & meant)
    return held, late


def release(connection: Connection, log: Log, runs: Sequence[Run]) -> int:
    """Release held rows; return how many. Rows waiting behind them follow by themselves."""
    note_change(connection, log)
    released = 0
    for first, last in runs:
        bounds = {"first": first, "last": last}
        released += int(connection.execute(log.query("hold_drop"), bounds).rowcount)
        connection.execute(log.query("parked_released"), bounds)
    return released


def pieces(log: Log, query: str, run: Run, values: Mapping[str, Any] | None = None) -> Iterator[Run]:
    """Cut a run into parts of at most PIECE_ROWS of a query's rows, in their order."""
    first, last = run
    while first <= last:
        bounds = {"first": first, "last": last, "limit": PIECE_ROWS, **(values or {})}
        with log.transaction() as connection:
            numbers = [int(number) for (number,) in log.rows(connection, log.query(query), bounds)]
        if len(numbers) < PIECE_ROWS:
            yield first, last
            return
        yield first, numbers[-1]
        first = numbers[-1] + 1


class CareTransaction(JournalTransaction, frozen=True):
    """A transaction of somebody who does not know the tables."""

    def objects(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """Find rows still waiting. They block all rows behind them until a publisher has taken them."""
        return dict.fromkeys(super().objects(numbers), EVERY_ROW)

    def take_out(self, numbers: Collection[int]) -> None:
        """Takes rows out of everything, holds as well: they are gone, or wait again as new ones.

        Of objects whose first row has left so, the publisher lets the next one go when it sweeps.
        """
        rows = RowRanges.of(numbers)
        if not rows:
            return
        memory, ids = self.memory, id_list([*rows])
        self.execute("hold_drop", runs_of(self.numbers("held_among", ids=ids)))
        known = rows & memory.taken
        if memory.any_parked:
            known |= self.numbers("parked_elsewhere", output=NOBODY, ids=ids)
        if memory.any_answers:
            known = rows  # few are ever said of, and those that are belong to rows of the journal
        if known:
            self.leave(known)
        self.drop_passed()


class CaredJournal(Journal):
    """The journal for somebody who has not the lock of the log, and changes it between two transactions of a publisher."""

    def __init__(self, log: Log, settings: LogSettings | None = None) -> None:
        super().__init__(log, None, settings or LogSettings())

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Read the tables as they are now, whatever was read before."""
        with self.log.transaction() as connection:
            yield View(self.log, self.settings, self.rows, connection, read_memory(connection, self.log))

    @contextmanager
    def transaction(self, *, soon: bool = False) -> Iterator[CareTransaction]:
        """Open a transaction; read the tables in it, for a publisher may have written since the last one."""
        with self.one_at_a_time, self.log.transaction() as connection:
            self.log.make_durable(connection)
            yield self.join_transaction(connection)

    def join_transaction(self, connection: Connection) -> CareTransaction:
        """Join the caller's transaction, as its first step; no publisher writes these tables
        meanwhile.
        """
        note_change(connection, self.log)
        return CareTransaction(self.log, self.settings, self.rows, connection, read_memory(connection, self.log))

    # --- rows -------------------------------------------------------------------------------------

    def requeue(self, run: Run, choice: Mapping[str, Any]) -> int:
        """Requeue the processed rows of a run as if never read; return how many.

        Their records go; a status somebody else gave them is noticed by a publisher later.
        """
        bounds = {"first": run[0], "last": run[1], **choice}
        with self.transaction() as journal:
            journal.take_out([*journal.numbers("requeue_numbers", **bounds, limit=PIECE_ROWS)])
            count = int(journal.connection.execute(self.log.query("requeue_run"), bounds).rowcount)
            journal.execute("forget_run", [bounds])
            return count

    # --- outputs ----------------------------------------------------------------------------------

    def find_kept_for(self, name: str) -> RowRanges | None:
        """Find rows an output lacks and may still give up; None for an unknown output."""
        with self.reading() as view:
            row = view.memory.outputs.get(name)
            if row is None:
                return None
            ahead = [batch.records for batch in view.memory.ahead(row).values()]
            alone = [document.records for document in view.list_planned(name) if document.body is not None]
            return RowRanges.union([*ahead, *alone, view.numbers("parked_of_output", output=name)])

    def give_up(self, name: str, numbers: RowRanges | None, note: str, why: Reason = Reason.SKIPPED) -> int:
        """Give up rows an output lacks, or all of them; return how many.

        Once no other output lacks them, skipped rows end with a warning, and rows of a FORGOTTEN
        output if no other got them. A batch is passed as a whole: its other rows are parked, so
        that a few rows far back take as many transactions as there are batches before them.
        Documents perhaps on their way are skipped only if a receiver would get them again
        unchanged, and only whole.
        """
        with self.reading() as view:
            documents = view.list_planned(name)
        if why is Reason.SKIPPED:
            documents = [sent for sent in documents if sent.body is not None]
        meant = [sent for sent in documents if numbers is None or not sent.records - numbers]
        records = RowRanges.union([sent.records for sent in meant])
        end = partial(warn_of_given_up, why=why, note=note)
        if meant:
            self.done(name, Done(planned=meant, outcomes=end(records)))
        skipped = len(records)
        # Without this end a publisher could seal as fast as batches are passed here.
        there = self.find_kept_for(name) or RowRanges()
        while (passed := self._give_up_batch(name, numbers, end, there)) is not None:
            skipped += passed
        for run in ((EVER, LAST_NUMBER),) if numbers is None else numbers.parts:
            last = run[1]
            while rows := self._give_up_parked(name, (run[0], last), end):
                skipped += len(rows)
                last = min(rows) - 1
        return skipped

    def free_conversion(self, name: str) -> int:
        """Gives the rows of a conversion back: they wait for whoever publishes next. How many."""
        with self.transaction() as journal:
            rows = len(journal.memory.lacking(name))
            journal.free(journal.memory.outputs[name])
            return rows

    def is_alone(self, name: str) -> bool:
        """Return True if the log has no other output."""
        with self.reading() as view:
            return view.memory.outputs.keys() <= {name}

    def forget(self, name: str, note: str) -> None:
        """End the place of an output, with the rows it lacks.

        The rows of the last one wait for whoever publishes next.
        """
        with self.transaction() as journal:
            memory = journal.memory
            row = memory.output(name)
            lacking_rows = memory.lacking(name) | journal.numbers("parked_of_output", output=name)
            # Others may have got rows while this one still had them ahead.
            over = RowRanges.union([lacking_rows, *[batch.records for batch in memory.batches.values()]])
            memory.planned.pop(name, None)
            for query in ("planned_forget", "parked_forget", "answer_forget", "association_forget"):
                journal.execute(query, [{"output": name}])
            if len(memory.outputs) > 1:
                # It counts among the outputs until its rows are settled.
                memory.outputs[name] = replace(row, position=memory.last_batch)
                journal.finish_rows(name, over, warn_of_given_up(lacking_rows, Reason.FORGOTTEN, note))
                journal.execute("answer_forget", [{"output": name}])
            journal.execute("output_forget", [{"name": name}])
            del memory.outputs[name]
            journal.drop_passed()

    def _give_up_batch(self, name: str, numbers: RowRanges | None, end: End, there: RowRanges) -> int | None:
        """Passes the next batch, if rows of it or of one behind it are given up; else None.

        Only batches with rows that were `there` are.
        """
        with self.transaction() as journal:
            row = journal.memory.outputs[name]
            ahead = journal.memory.ahead(row)
            asked = there if numbers is None else there & numbers
            if not any(batch.records.meets(asked) for batch in ahead.values()):
                return None
            first = min(ahead)
            records = ahead[first].records
            over = records if numbers is None else records & numbers
            journal.park_new(name, records - over)
            journal.move(replace(row, position=first))
            journal.finish_rows(name, over, end(over))
            journal.drop_passed()
            return len(over)

    def _give_up_parked(self, name: str, run: Run, end: End) -> list[int]:
        """Give up the last parked rows of a run; the first go last, because others wait for them."""
        with self.transaction() as journal:
            rows = journal.ask("parked_last", output=name, first=run[0], last=run[1], limit=PIECE_ROWS)
            parked = [Parked.read(name, row) for row in rows]
            if not parked:
                return []
            records = sorted(parked_row.record for parked_row in parked)
            journal.unpark(parked)
            journal.lead(name, [parked_row.object for parked_row in parked if parked_row.leads])
            journal.finish_rows(name, RowRanges.of(records), end(records))
            return records


End = Callable[[Iterable[int]], Mapping[int, Outcome]]
"""Says how rows end that are given up."""


def warn_of_given_up(records: Iterable[int], why: Reason, note: str) -> dict[int, Outcome]:
    """Make warnings for rows given up for an output."""
    return {row: Outcome(position=(row,), status=Status.WARNING, reason=why, note=note) for row in records}
