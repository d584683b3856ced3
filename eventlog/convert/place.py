"""The place of a conversion that marks among the outputs of a journal: its rows are sealed, planned, and done.

    sealed    before a value is read: nobody else takes these rows, nor new ones, and every other output counts
              as having them, but one that is paused, or was and has not caught up: it gets them
    planned   before anything appears, or goes to a receiver: from then on nobody gives them back unasked
    done      batch by batch they get their statuses; those that a paused output lacks stay N

docs/decisions/0063-a-conversion-that-marks-is-an-output.md is the law.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from eventlog.convert.free_rows import FreeRows, gets_all
from eventlog.convert.taken import ConvertedRows
from eventlog.core.errors import SourceError, UsageError
from eventlog.core.model import Outcome
from eventlog.publisher.journal import Journal
from eventlog.publisher.memory import Sealed
from eventlog.publisher.tables import CONVERSION_PLAN, PLANNED, JournalRow
from eventlog.publisher.writing import JournalTransaction
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import CONVERTED, Marks, RowRanges
from eventlog.sql.names import NAME_CHARACTERS

if TYPE_CHECKING:
    from eventlog.core.schema import Catalog
    from eventlog.sources.log.lock import LogLock
    from eventlog.sql.log import Log

SEAL_PIECES: Final = 20
"""So many batches are sealed in one transaction: another publisher's standby waits for its end."""

USUAL_BYTES: Final = 500
"""What a row is taken to have where nobody has read it."""


def name_conversion(target: str) -> str:
    """Name the conversion into a folder, or to an address, for the journal."""
    name = f"convert {target}"
    if len(name.encode()) <= NAME_CHARACTERS:
        return name
    digest = blake2b(name.encode(), digest_size=8).hexdigest()
    # Cut by bytes, so that half a character may stand first, which is left out.
    ending = target[-100:].encode()[-150:].decode(errors="ignore")
    return f"convert …{ending} ({digest})"


class ConversionPlace(Journal):
    """The journal of a log, as a conversion writes it that has the log's lock."""

    def __init__(self, log: Log, lock: LogLock, name: str, order: str, catalog: Catalog | None = None) -> None:
        super().__init__(log, lock, LogSettings(), catalog)
        self.name = name
        self._plan = f"{CONVERSION_PLAN}{order}"
        self._catalog = catalog
        self._is_empty = False

    @property
    def is_planned(self) -> bool:
        """Return True if something of this very order may have appeared."""
        with self.reading() as view:
            row = view.memory.outputs.get(self.name)
            return row is not None and row.plan == self._plan and row.is_planned

    # --- before anything goes out -----------------------------------------------------------------

    def refuse_other(self) -> None:
        """Refuse to begin while another conversion is unfinished and may have output."""
        with self.reading() as view:
            others = [row.name for row in view.memory.outputs.values() if row.is_planned and row.name != self.name]
        # Nobody knows what would overtake its rows.
        if others:
            problem = "A conversion of this log was interrupted, and its rows are not marked"
            way_back = f"give its rows back: `eventlog outputs forget {others[0]!r}`."
            raise UsageError(
                f"{problem}: {others[0]}.",
                hint=f"Give its command once more; or {way_back}",
            )

    def give_back(self) -> None:
        """Give back the rows sealed for this folder: no output of them has appeared."""
        with self.transaction() as journal:
            row = journal.memory.outputs.get(self.name)
            if row is not None and row.is_conversion:
                journal.free(row)

    def seal(self, within: RowRanges | None = None) -> ConvertedRows:
        """Seal the free rows, or those of them `within`; the caller converts no others."""
        self.give_back()
        # Batch by batch: a transaction that parked a million rows would outlast the lock.
        moved = True
        while moved:
            with self.transaction() as journal:
                journal.free_unplanned()
                moved = _park_some(journal)
        walk = FreeRows(self._catalog, marks=True, within=within)
        sealed: list[RowRanges] = []
        while walk.first is not None:
            with self.transaction() as journal:
                for _ in range(SEAL_PIECES):
                    if walk.first is not None:
                        sealed.append(self._seal_page(journal, walk, is_first=not any(sealed)))
        numbers = RowRanges.union(sealed)
        self._is_empty = not numbers
        return ConvertedRows(numbers, dict(sorted(walk.left.items())))

    def _seal_page(self, journal: JournalTransaction, walk: FreeRows, *, is_first: bool) -> RowRanges:
        # Somebody may have resumed an output that was paused.
        while _park_some(journal):
            pass
        numbers = walk.next_page(journal)
        if not numbers:
            return numbers
        memory = journal.memory
        last = memory.last_batch
        own = memory.outputs.get(self.name)
        if own is None:
            if not is_first:
                raise self._explain_given_back()
            own = JournalRow(name=self.name, position=last, plan=self._plan)
            # There may be the row of a former conversion of that name, which is over.
            journal.execute("output_forget", [{"name": self.name}])
            journal.execute("output_make", [own.to_columns()])
        others = [row for row in memory.outputs.values() if row.name != self.name and not gets_all(memory, row)]
        journal.make_batch(last + 1, Sealed(numbers, len(numbers) * USUAL_BYTES))
        journal.move(replace(own, plans=last + 1))
        for row in others:
            journal.move(replace(row, position=last + 1))
        return numbers

    def let_appear(self) -> None:
        """Note durably: the output may appear; UsageError if its rows were given back."""
        # Without rows nothing is sealed, and nothing can have been given back.
        if self._is_empty:
            return
        with self.transaction() as journal:
            row = journal.memory.outputs.get(self.name)
            if row is None or row.plan != self._plan:
                raise self._explain_given_back()
            if not row.is_planned:
                journal.move(replace(row, target_plan=PLANNED))

    def _explain_given_back(self) -> UsageError:
        message = f"The rows of this conversion were given back: {self.name} was forgotten."
        return UsageError(message, hint="Choose another folder; what was sent is with its receiver already.")

    # --- when everything is there -----------------------------------------------------------------

    def list_sealed(self) -> Mapping[int, RowRanges]:
        """Return the batches still to be marked, in order."""
        with self.reading() as view:
            row = view.memory.outputs.get(self.name)
            if row is None or row.plan != self._plan:
                return {}
            return {number: batch.records for number, batch in view.memory.ahead(row).items()}

    def mark(self, number: int, known: RowRanges, outcomes: Mapping[int, Outcome]) -> int:
        """Set the statuses of a batch's rows; return how many.

        `outcomes` are those other than published, among the rows `known` to the conversion. Rows a
        paused output lacks stay N, and their outcomes are kept.
        """
        with self.transaction() as journal:
            memory = journal.memory
            own = memory.outputs.get(self.name)
            if own is None:
                raise SourceError(
                    f"Somebody has given back rows of {self.name} while they were being marked.",
                    hint="Those that are not marked yet are published again.",
                    may_pass=False,
                )
            records = RowRanges()
            if number in memory.batches:
                records = memory.batches[number].records & known
            journal.move(replace(own, position=number))
            others = [row for row in memory.outputs.values() if row.name != self.name]
            if any(row.position < number for row in others):
                earlier = [batch for batch in memory.converted if batch in memory.batches]
                memory.converted = RowRanges.of([number, *earlier])
                Marks(self.log).set(journal.connection, CONVERTED, memory.converted.text())
            # As if those had said it for which the rows are over: their status is the worst of that.
            passed = [row.name for row in others if row.position >= number]
            ended = {row: outcome for row, outcome in outcomes.items() if row in records}
            finished = journal.finish_rows(self.name, records, ended, speaks_for=passed or [self.name])
            journal.drop_passed()
            # With its last statuses: an output that is left would lack what comes next.
            if number == own.plans:
                journal.free(memory.outputs[self.name])
            return len(finished.records)

    def leave(self) -> tuple[list[str], list[str]]:
        """End the place in the journal; return the outputs still waiting, and the others."""
        with self.transaction() as journal:
            memory = journal.memory
            row = memory.outputs.get(self.name)
            if row is not None:
                journal.free(row)
            converted = [number for number in memory.batches if number in memory.converted]
            last = max(converted, default=None)
            kept = [output.name for output in memory.outputs.values() if last is not None and output.position < last]
            return kept, sorted(memory.outputs.keys() - set(kept))


def _park_some(journal: JournalTransaction) -> bool:
    """Park the next batch an unpaused output lacks, to pass it; return True if one did."""
    for row in list(journal.memory.outputs.values()):
        ahead = journal.memory.ahead(row)
        if ahead and not row.is_conversion and not gets_all(journal.memory, row):
            first = min(ahead)
            journal.park_new(row.name, ahead[first].records)
            journal.move(replace(row, position=first))
            journal.drop_passed()
            return True
    return False
