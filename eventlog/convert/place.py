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
from eventlog.publisher.memory import Memory, Sealed
from eventlog.publisher.tables import CONVERSION_PLAN, PLANNED, JournalRow
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import CONVERTED, Marks, RowRanges, as_text
from eventlog.sql.names import NAME_CHARACTERS

if TYPE_CHECKING:
    from sqlalchemy import Connection

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
            return self._is_planned(view.memory.outputs.get(self.name))

    def _is_planned(self, row: JournalRow | None) -> bool:
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
        with self.transaction() as (connection, memory):
            row = memory.outputs.get(self.name)
            if row is not None and row.is_conversion:
                self.free(connection, memory, row)

    def seal(self, within: RowRanges | None = None) -> ConvertedRows:
        """Seal the free rows, or those of them `within`; the caller converts no others."""
        self.give_back()
        # Batch by batch: a transaction that parked a million rows would outlast the lock.
        moved = True
        while moved:
            with self.transaction() as (connection, memory):
                self.free_unplanned(connection, memory)
                moved = self._park_some(connection, memory)
        walk = FreeRows(self, self._catalog, marks=True, within=within)
        sealed: list[RowRanges] = []
        while walk.first is not None:
            with self.transaction() as (connection, memory):
                for _ in range(SEAL_PIECES):
                    if walk.first is not None:
                        sealed.append(self._seal_page(connection, memory, walk, is_first=not any(sealed)))
        numbers = RowRanges.union(sealed)
        self._is_empty = not numbers
        return ConvertedRows(numbers, dict(sorted(walk.left.items())))

    def _park_some(self, connection: Connection, memory: Memory) -> bool:
        """Park the next batch an unpaused output lacks, to pass it; return True if one did."""
        for row in list(memory.outputs.values()):
            ahead = [number for number in sorted(memory.batches) if number > row.position]
            if ahead and not row.is_conversion and not gets_all(memory, row):
                self._park_new(connection, memory, row.name, memory.batches[ahead[0]].records)
                self._move(connection, memory, replace(row, position=ahead[0]))
                self._drop_passed(connection, memory)
                return True
        return False

    def _seal_page(self, connection: Connection, memory: Memory, walk: FreeRows, *, is_first: bool) -> RowRanges:
        # Somebody may have resumed an output that was paused.
        while self._park_some(connection, memory):
            pass
        numbers = walk.next_page(connection, memory)
        if not numbers:
            return numbers
        last = memory.last_batch
        own = memory.outputs.get(self.name)
        if own is None:
            if not is_first:
                raise self._explain_given_back()
            own = JournalRow(name=self.name, position=last, plan=self._plan)
            # There may be the row of a former conversion of that name, which is over.
            self._execute(connection, "output_forget", [{"name": self.name}])
            self._execute(connection, "output_make", [own.to_columns()])
        others = [row for row in memory.outputs.values() if row.name != self.name and not gets_all(memory, row)]
        values = {"id": last + 1, "records": as_text(numbers.parts), "weight": len(numbers) * USUAL_BYTES}
        self._execute(connection, "batch_make", [values])
        memory.batches[last + 1] = Sealed(numbers, len(numbers) * USUAL_BYTES)
        self._move(connection, memory, replace(own, plans=last + 1))
        for row in others:
            self._move(connection, memory, replace(row, position=last + 1))
        return numbers

    def let_appear(self) -> None:
        """Note durably: the output may appear; UsageError if its rows were given back."""
        # Without rows nothing is sealed, and nothing can have been given back.
        if self._is_empty:
            return
        with self.transaction() as (connection, memory):
            row = memory.outputs.get(self.name)
            if row is None or row.plan != self._plan:
                raise self._explain_given_back()
            if not row.is_planned:
                self._move(connection, memory, replace(row, target_plan=PLANNED))

    def _explain_given_back(self) -> UsageError:
        message = f"The rows of this conversion were given back: {self.name} was forgotten."
        return UsageError(message, hint="Choose another folder; what was sent is with its receiver already.")

    # --- when everything is there -----------------------------------------------------------------

    def list_sealed(self) -> Mapping[int, RowRanges]:
        """Return the batches still to be marked, in order."""
        with self.reading() as view:
            memory, row = view.memory, view.memory.outputs.get(self.name)
            if row is None or row.plan != self._plan:
                return {}
            ahead = [number for number in sorted(memory.batches) if number > row.position]
            return {number: memory.batches[number].records for number in ahead}

    def mark(self, number: int, known: RowRanges, outcomes: Mapping[int, Outcome]) -> int:
        """Set the statuses of a batch's rows; return how many.

        `outcomes` are those other than published, among the rows `known` to the conversion. Rows a
        paused output lacks stay N, and their outcomes are kept.
        """
        with self.transaction() as (connection, memory):
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
            self._move(connection, memory, replace(own, position=number))
            others = [row for row in memory.outputs.values() if row.name != self.name]
            if any(row.position < number for row in others):
                earlier = [batch for batch in memory.converted if batch in memory.batches]
                memory.converted = RowRanges.of([number, *earlier])
                Marks(self.log).set(connection, CONVERTED, memory.converted.text())
            # As if those had said it for which the rows are over: their status is the worst of that.
            passed = [row.name for row in others if row.position >= number]
            ended = {row: outcome for row, outcome in outcomes.items() if row in records}
            finished = self._finish_rows(
                connection, memory, self.name, records, ended, speaks_for=passed or [self.name]
            )
            self._drop_passed(connection, memory)
            # With its last statuses: an output that is left would lack what comes next.
            if number == own.plans:
                self.free(connection, memory, memory.outputs[self.name])
            return len(finished.records)

    def leave(self) -> tuple[list[str], list[str]]:
        """End the place in the journal; return the outputs still waiting, and the others."""
        with self.transaction() as (connection, memory):
            row = memory.outputs.get(self.name)
            if row is not None:
                self.free(connection, memory, row)
            converted = [number for number in memory.batches if number in memory.converted]
            last = max(converted, default=None)
            kept = [output.name for output in memory.outputs.values() if last is not None and output.position < last]
            return kept, sorted(memory.outputs.keys() - set(kept))
