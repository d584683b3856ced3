"""A conversion that marks what it converts, as an output of the journal for the time that it works.

    kept       rows that it does not take: others have them, wait for them, or hold them
    reserved   its rows are batches that it has ahead: nobody else takes them, nor any new row
    passed     every other output counts as having them, but one that is paused, or was and has not
               caught up: it gets them
    marked     batch by batch they get their letters; those that a paused output lacks stay N

Law: rows are reserved before anything that was made of them goes out. So who gives the same order
after a crash, at any point, finds what is still to be marked, and no publisher has published it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.journal import CaredJournal
from eventlog.core.errors import SourceError, UsageError
from eventlog.core.model import Outcome
from eventlog.publisher.flow import lacking
from eventlog.publisher.journal import Journal
from eventlog.publisher.memory import Memory, Sealed, read_memory
from eventlog.publisher.plans import HoldsChangedError
from eventlog.publisher.row_outcomes import worst_of
from eventlog.publisher.tables import CONVERSION_PLAN, JournalRow
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import CONVERTED, Marks, Stretches, as_text
from eventlog.sql.log import ALL, id_list
from eventlog.sql.names import NAME_CHARACTERS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog
    from eventlog.publisher.reader import JournalReader
    from eventlog.sources.log.lock import LogLock
    from eventlog.sql.log import Log

WHOLE: Final = "whole"
"""Stands in the column `has` of a conversion once all its rows are reserved.

`plans` is the number of its last batch.
"""

RESERVED_BATCHES: Final = 100
"""So many are reserved in one transaction: another publisher's standby waits for its end."""


class Kept(Struct, frozen=True, kw_only=True):
    """Rows that a conversion does not take, as of the time when the mark `holding` was the `stamp`.

    `taken` are ahead of an output, or may be on their way to it. `waiting` are those behind which
    nothing of the same object may go: parked ones, and others that an output lacks which is not
    paused. `held` are those that somebody holds.
    """

    stamp: str
    taken: Stretches = Stretches()
    waiting: Stretches = Stretches()
    held: Stretches = Stretches()


def conversion_name(target: str) -> str:
    """Name the conversion into a folder, or to an address, for the journal."""
    name = f"convert {target}"
    if len(name.encode()) <= NAME_CHARACTERS:
        return name
    digest = blake2b(name.encode(), digest_size=8).hexdigest()
    # Cut by bytes, so that half a character may stand first, which is left out.
    ending = target[-100:].encode()[-150:].decode(errors="ignore")
    return f"convert …{ending} ({digest})"


def read_kept(journal: JournalReader) -> Kept:
    """Read the rows a conversion must leave out now."""
    with journal.reading() as view:
        return _read_kept(view.memory, view.ask)


def _read_kept(memory: Memory, ask: Callable[..., Iterable[Sequence[Any]]]) -> Kept:
    waiting = [part for planned in memory.planned.values() for part in planned.parts]
    for row in memory.outputs.values():
        if not _gets_all(memory, row):
            waiting += lacking(memory, row.name).parts
    waits = Stretches(waiting)
    if memory.any_parked:
        waits |= Stretches.of(int(number) for (number,) in ask("parked_numbers"))
    held = Stretches()
    if memory.any_held:
        everything = {"first": -(2**63), "last": 2**63 - 1, "limit": ALL}
        held = Stretches.of(int(number) for (number,) in ask("hold_numbers", **everything))
    return Kept(stamp=memory.stamp, taken=memory.taken, waiting=waits, held=held)


def _gets_all(memory: Memory, row: JournalRow) -> bool:
    """Return True if an output gets converted rows as well: it is paused, or has such rows ahead."""
    if row.paused is not None:
        return True
    # It was paused, and has not caught up yet.
    return any(row.position < number for number in memory.batches if number in memory.converted)


def conversions(connection: Connection, log: Log) -> dict[str, int]:
    """Count the rows of each unfinished conversion."""
    memory = read_memory(connection, log, "", seen=False)
    rows = [row for row in memory.outputs.values() if row.is_conversion]
    return {row.name: len(lacking(memory, row.name)) for row in rows}


class FreeingJournal(Journal):
    """The journal for whoever gives the rows of a conversion back."""

    def _free(self, connection: Connection, memory: Memory, row: JournalRow) -> None:
        """Forget a conversion; its unmarked rows wait again."""
        unmarked = [number for number in memory.batches if row.position < number <= row.plans]
        for number in unmarked:
            parts = memory.batches.pop(number).records.parts
            runs = [{"first": first, "last": last} for first, last in parts]
            # Somebody may have given them up for another output: now they are new.
            if memory.any_parked:
                self._tell(connection, "parked_drop_run", runs)
            if memory.any_said:
                self._tell(connection, "said_drop", runs)
            self._tell(connection, "batch_drop", [{"id": number}])
        for other in list(memory.outputs.values()):
            if row.position < other.position <= row.plans:
                self._move(connection, memory, replace(other, position=row.position))
        self._remove(connection, memory, row)

    def _remove(self, connection: Connection, memory: Memory, row: JournalRow) -> None:
        self._drop_passed(connection, memory)
        self._tell(connection, "output_forget", [{"name": row.name}])
        del memory.outputs[row.name]


class FreedConversions(CaredJournal, FreeingJournal):
    """The journal for an operator who gives up a conversion that was interrupted."""

    def free(self, name: str) -> int:
        """Gives the rows of a conversion back: they wait for whoever publishes next. How many."""
        with self.transaction() as (connection, memory):
            rows = len(lacking(memory, name))
            self._free(connection, memory, memory.outputs[name])
            return rows


class ConversionJournal(FreeingJournal):
    """The journal of a log, as a conversion writes it that has the log's lock."""

    def __init__(self, log: Log, lock: LogLock, name: str, order: str, catalog: Catalog | None = None) -> None:
        super().__init__(log, lock, LogSettings(), catalog)
        self.name = name
        self._plan = f"{CONVERSION_PLAN}{order}"

    # --- before anything goes out -----------------------------------------------------------------

    def refuse_other(self) -> None:
        """Refuses to begin while another conversion is not over."""
        with self.reading() as view:
            outputs = view.memory.outputs.values()
            others = [row.name for row in outputs if row.is_conversion and row.name != self.name]
        # Nobody knows what would overtake its rows.
        if others:
            problem = "A conversion of this log was interrupted, and its rows are not marked"
            way_back = f"give its rows back: `eventlog outputs forget {others[0]!r}`."
            raise UsageError(
                f"{problem}: {others[0]}.",
                hint=f"Give its command once more; or {way_back}",
            )

    @property
    def is_reserved(self) -> bool:
        """Return True if the rows of this very order are reserved."""
        with self.reading() as view:
            row = view.memory.outputs.get(self.name)
            return row is not None and row.plan == self._plan and row.has == WHOLE

    def give_back(self) -> None:
        """Release the rows reserved by a conversion into this folder: it has shown no output."""
        with self.transaction() as (connection, memory):
            row = memory.outputs.get(self.name)
            if row is not None and row.is_conversion:
                self._free(connection, memory, row)

    def park_lagging(self) -> None:
        """Park the rows lagging outputs lack, so that they can be passed."""
        # Batch by batch: a transaction that parked a million rows would outlast the lock.
        moved = True
        while moved:
            with self.transaction() as (connection, memory):
                moved = self._park_some(connection, memory)

    def _park_some(self, connection: Connection, memory: Memory) -> bool:
        for row in list(memory.outputs.values()):
            ahead = [number for number in sorted(memory.batches) if number > row.position]
            if ahead and not _gets_all(memory, row) and not row.is_conversion:
                self._park_new(connection, memory, row.name, memory.batches[ahead[0]].records)
                self._move(connection, memory, replace(row, position=ahead[0]))
                self._drop_passed(connection, memory)
                return True
        return False

    def reserve(self, batches: Sequence[Sealed], kept: Kept) -> None:
        """Reserve these rows for the conversion, durably, all or none.

        HoldsChangedError if one has been held since, or is behind a held one.
        """
        try:
            for start in range(0, len(batches), RESERVED_BATCHES):
                self._reserve_some(batches, start, kept)
        except HoldsChangedError:
            self.give_back()
            raise

    def _reserve_some(self, batches: Sequence[Sealed], start: int, kept: Kept) -> None:
        end = start + RESERVED_BATCHES
        some = batches[start:end]
        with self.transaction() as (connection, memory):
            # Somebody may hold rows all the time: it matters whether they are these.
            if memory.stamp != kept.stamp:
                for batch in some:
                    self._confirm_free(connection, memory, batch.records, kept)
            self._reserve(connection, memory, some, whole=end >= len(batches))

    def _confirm_free(self, connection: Connection, memory: Memory, records: Stretches, kept: Kept) -> None:
        now = _read_kept(memory, partial(self.ask, connection))
        since = (now.taken | now.waiting | now.held) - (kept.taken | kept.waiting | kept.held)
        if since and records:
            # Those behind what was held before are none of these: they were left out.
            span = {"first": records.parts[0][0], "last": records.parts[-1][1]}
            since |= self.numbers(connection, "behind_held", **span)
        since |= records - self.numbers(connection, "still_waiting", ids=id_list([*records]))
        if since.meets(records):
            raise HoldsChangedError("Rows were held or taken at the same time.")

    def _reserve(
        self,
        connection: Connection,
        memory: Memory,
        batches: Sequence[Sealed],
        *,
        whole: bool,
    ) -> None:
        others = [row for row in memory.outputs.values() if row.name != self.name]
        others = [row for row in others if not _gets_all(memory, row)]
        last = memory.last_batch
        own = memory.outputs.get(self.name)
        if own is None:
            own = JournalRow(name=self.name, position=last, plan=self._plan)
            # There may be the row of a former conversion of that name, which is over.
            self._tell(connection, "output_forget", [{"name": self.name}])
            self._tell(connection, "output_make", [own.to_columns()])
            if any(row.position < max(memory.batches, default=0) for row in others):
                raise HoldsChangedError("An output was resumed at the same time.")
        for batch in batches:
            last += 1
            values = {"id": last, "records": as_text(batch.records.parts), "weight": batch.weight}
            self._tell(connection, "batch_make", [values])
            memory.batches[last] = batch
        for row in others:
            self._move(connection, memory, replace(row, position=last))
        self._move(connection, memory, replace(own, plans=last, has=WHOLE if whole else ""))

    # --- when everything is there -----------------------------------------------------------------

    def list_reserved(self) -> Mapping[int, Stretches]:
        """Return the batches still to be marked, in order."""
        with self.reading() as view:
            memory, row = view.memory, view.memory.outputs.get(self.name)
            if row is None or row.plan != self._plan:
                return {}
            ahead = [number for number in sorted(memory.batches) if number > row.position]
            return {number: memory.batches[number].records for number in ahead}

    def mark(self, number: int, known: Stretches, others: Mapping[int, Outcome]) -> int:
        """Gives the rows of a batch their letters; how many.

        `others` did not simply end as published, of those that the conversion knows. What a paused
        output lacks stays N, and its outcome is kept.
        """
        with self.transaction() as (connection, memory):
            own = memory.outputs.get(self.name)
            if own is None:
                raise SourceError(
                    f"Somebody has given back rows of {self.name} while they were being marked.",
                    hint="Those that are not marked yet are published again.",
                    may_pass=False,
                )
            records = Stretches()
            if number in memory.batches:
                records = memory.batches[number].records & known
            self._move(connection, memory, replace(own, position=number))
            final = self._over(connection, memory, number, records)
            lacked = records - final
            if lacked:
                earlier = [batch for batch in memory.converted if batch in memory.batches]
                memory.converted = Stretches.of([number, *earlier])
                Marks(self.log).set(connection, CONVERTED, memory.converted.text())
            kept = {row: outcome for row, outcome in others.items() if row in lacked}
            # As if those had said it for which the rows are over: their letter is the worst of that.
            outputs = [row for row in memory.outputs.values() if row.name != self.name]
            passed = [row.name for row in outputs if row.position >= number]
            for name in passed or [self.name]:
                self._keep_said(connection, memory, name, kept)
            ended = {row: outcome for row, outcome in others.items() if row in final}
            self._give_letters(connection, memory, final, ended)
            self._drop_passed(connection, memory)
            # With its last letters: an output that is left would lack what comes next.
            if number == own.plans:
                self._remove(connection, memory, own)
            return len(final)

    def finish(self) -> tuple[list[str], list[str]]:
        """End the conversion's place in the journal; return the outputs still to get its rows, and
        the others.
        """
        with self.transaction() as (connection, memory):
            row = memory.outputs.get(self.name)
            if row is not None:
                self._remove(connection, memory, row)
            converted = [number for number in memory.batches if number in memory.converted]
            last = max(converted, default=None)
            kept = [output.name for output in memory.outputs.values() if last is not None and output.position < last]
            return kept, sorted(memory.outputs.keys() - set(kept))

    def _over(self, connection: Connection, memory: Memory, number: int, records: Stretches) -> Stretches:
        """Find the rows of a batch no other output lacks."""
        others = [row for row in memory.outputs.values() if row.name != self.name]
        if any(row.position < number for row in others):
            return Stretches()
        for planned in memory.planned.values():
            records -= planned
        if memory.any_parked and records:
            ids = id_list([*records])
            records -= self.numbers(connection, "parked_elsewhere", output=self.name, ids=ids)
        return records

    def _give_letters(
        self, connection: Connection, memory: Memory, final: Stretches, others: Mapping[int, Outcome]
    ) -> None:
        if not final:
            return
        answers = {number: [outcome] for number, outcome in others.items()}
        # An output to which these rows were given up.
        if memory.any_said:
            self._add_said(connection, memory, final, answers)
        ended: dict[int, Outcome] = {}
        for number, several in answers.items():
            # What the conversion has published was not left out, whatever other outputs said.
            outputs = len(several) if number in others else 0
            worst = worst_of(number, several, outputs)
            if worst is not None:
                ended[number] = worst
        self._write_letters(connection, memory, final, ended)
