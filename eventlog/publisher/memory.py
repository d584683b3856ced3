"""What memory knows of the journal's tables, for each turn. The tables count: it can be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from eventlog.core.errors import SourceError
from eventlog.core.model import Event, Reason
from eventlog.publisher.proven import Proven
from eventlog.publisher.tables import EVER, JournalRow, Parked, read_ranges, whole
from eventlog.sources.marks import CONVERTED, NO_ROWS, SEEN, TRACKED, Marks, RowRanges
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_SEEN_RANGES: Final = 1_000
"""So many ranges of numbers are known in which nobody has to look; of more, the longest."""

KEPT_NUMBERS: Final = 1_000
"""So many numbers more or fewer are written down anew."""

KEPT_BATCHES: Final = 2
"""So many of the newest batches have their events at hand."""

LOOK_SECONDS: Final = 1.0
"""So long nobody asks whether rows that a look has read still wait: a receiver may be away for hours."""


class Sealed(Struct, frozen=True):
    """A batch: its rows, and the bytes of their values. Some have their events at hand."""

    records: RowRanges
    weight: int
    events: Sequence[Event] | None = None
    is_new: bool = False
    """Its events were read just now: nobody has to ask whether they still wait."""
    more: bool = True
    """Whether others may have waited behind them."""


class Stamp(NamedTuple):
    """What memory depends on: the mark `holding`, how many doubts there were, and the token of the lock of who writes."""

    holding: str = ""
    doubts: int = 0
    token: str = ""


class Memory(Struct, kw_only=True):
    """What the tables hold, as of a stamp."""

    stamp: Stamp = Stamp()
    tracked: str | None = None
    """What changes each time that tables are tracked."""
    batches: dict[int, Sealed] = {}
    """In the order of their numbers."""
    outputs: dict[str, JournalRow] = {}
    planned: dict[str, RowRanges] = {}
    """The rows that may be on their way to each output that has such documents."""
    seen: RowRanges = RowRanges()
    """Rows that somebody has taken: they wait, are on their way, or have got their status since.

    Known while rows wait. Elsewhere the log is asked, which leaves out what waits, too.
    """
    last_parked: int = EVER
    """The highest number of a row that waits, or that has waited while this was known."""
    last_noted: int = EVER
    """The highest number of a row whose outcome is in the companion table."""
    last_processed: int | None = None
    """The highest number of a row that has its status; None where no row is compared with it.

    Letters that somebody else gives by SQL are seen a moment later: see `JournalReader.memory_of`.
    """
    next_processed: float = float("-inf")
    """When that is asked again."""
    any_parked: bool = False
    any_answers: bool = False
    any_held: bool = False
    converted: RowRanges = RowRanges()
    """Batches that a conversion has done for every output but those that have them ahead."""
    leader_gone: bool = True
    """Whether there may be an object of which rows wait and none may go first."""
    retried: dict[str, int | None] = {}
    """When the last row is offered again that an output's receiver did not take, once asked."""
    seen_kept: int = 0
    """Of how many numbers it was last written down that nobody has to look for them."""
    proven: Proven = field(default_factory=Proven)
    """Numbers of which no row comes any more that is not known."""
    in_take: dict[str, dict[int, Sealed]] = {}
    """The batches that each output has read last, and may be about to plan."""
    looked: Sealed | None = None
    """All rows that waited at a look, where they were few: who publishes them need not read them again."""
    looked_at: float = float("-inf")
    """When a look found last that rows wait."""

    def take_looked(self, limit: int) -> Sealed | None:
        """Hand over the rows that a look has read, once, if they are all ready ones and fit."""
        looked, self.looked = self.looked, None
        if looked is None or self.any_parked or len(looked.events or ()) > limit:
            return None
        return replace(looked, is_new=monotonic() - self.looked_at <= LOOK_SECONDS)

    def output(self, name: str) -> JournalRow:
        """Return the place of an output."""
        if name not in self.outputs:
            message = f"Somebody has forgotten the output {name} while this publisher writes to it."
            hint = "Take it out of the configuration, or begin again: it gets what comes from then."
            raise SourceError(message, hint=hint, may_pass=False)
        return self.outputs[name]

    def ahead(self, row: JournalRow) -> dict[int, Sealed]:
        """Return the batches ahead of an output."""
        if not self.batches:  # by far the most common
            return {}
        return {number: batch for number, batch in self.batches.items() if number > row.position}

    def lacking(self, name: str) -> RowRanges:
        """Return the rows ahead of an output, or perhaps on their way to it."""
        planned = self.planned.get(name, NO_ROWS)
        if not self.batches:
            return planned
        return RowRanges.union([planned, *[batch.records for batch in self.ahead(self.outputs[name]).values()]])

    def converted_ahead(self, row: JournalRow) -> list[int]:
        """Return the batches ahead of an output whose rows a conversion has, or has done for the others."""
        reserved = self.reserved_above
        ahead = self.ahead(row)
        return [number for number in ahead if number in self.converted or (reserved is not None and number > reserved)]

    @property
    def taken(self) -> RowRanges:
        """Return the rows ahead of an output, or perhaps on their way."""
        if not (self.batches or self.planned):
            return NO_ROWS
        sealed = [batch.records for batch in self.batches.values()]
        return RowRanges.union([*sealed, *self.planned.values()])

    @property
    def reserved_above(self) -> int | None:
        """Return the number above which batches are of a conversion that is not over: nobody takes them, nor new rows."""
        conversions = filter(attrgetter("is_conversion"), self.outputs.values())
        return min(map(attrgetter("position"), conversions), default=None)

    @property
    def known(self) -> RowRanges:
        """Return numbers nobody looks for."""
        return RowRanges.union([self.taken, self.seen, self.proven.numbers])

    def find_edge(self, known: RowRanges) -> int:
        """Find a number without taken or waiting rows above it; `known` are all known ones."""
        return max(self.last_parked, known.parts[-1][1]) if known else self.last_parked

    @property
    def last_batch(self) -> int:
        """Return the last number used; the next one is new for batches and positions."""
        return max([0, *self.batches, *[output.position for output in self.outputs.values()]])

    @property
    def foremost(self) -> JournalRow | None:
        """Return the output furthest ahead; of several the first by name, whatever the order of
        reading.
        """
        others = [output for output in self.outputs.values() if not output.is_conversion]
        return min(others, key=lambda output: (-output.position, output.name), default=None)

    def new_output(self, name: str) -> JournalRow:
        """Return the place of a new output: the foremost one's."""
        foremost = self.foremost
        return JournalRow(name=name, position=self.last_batch if foremost is None else foremost.position)

    def keep_few_events(self) -> None:
        """Lets go of the events of all batches but the newest."""
        # Who is behind reads the older ones again: here they would be all that a slow output lacks.
        for number in [*self.batches][:-KEPT_BATCHES]:
            batch = self.batches[number]
            if batch.events is not None:
                self.batches[number] = Sealed(batch.records, batch.weight)

    def add_parked(self, rows: Sequence[Parked]) -> None:
        """Note rows waiting from now on."""
        self.any_parked = True
        self.seen |= RowRanges.of(row.record for row in rows)
        self.last_parked = max([self.last_parked, *(row.record for row in rows)])
        self.forget_retried(rows)

    def forget_retried(self, rows: Iterable[Parked]) -> None:
        """Forget the last retry, as these rows begin to wait, or wait no longer."""
        if any(row.reason == Reason.RETRY.value for row in rows):
            self.retried.clear()

    def see(self, records: RowRanges) -> bool:
        """Note rows not to be looked for again: they are sealed, or were parked. True where that is to be kept anew."""
        seen = self.seen | records
        # Twice as many as are left of it then, so that it is cut seldom.
        if len(seen.parts) > 2 * MOST_SEEN_RANGES:
            seen = RowRanges(nlargest(MOST_SEEN_RANGES, seen.parts, key=lambda part: part[1] - part[0]))
        self.seen = seen
        return abs(len(seen) - self.seen_kept) >= KEPT_NUMBERS


def read_memory(connection: Connection, log: Log, stamp: Stamp | None = None, *, seen: bool = False) -> Memory:
    """Read the tables; without `seen`, which needs a look at all waiting rows, nobody takes new
    rows.
    """

    def ask(query: str, **values: Any) -> list[tuple[Any, ...]]:
        return log.rows(connection, log.query(query), values)

    sealed: dict[int, Sealed] = {}
    for number, records, weight in ask("batches_read"):
        rows = read_ranges(records, f"records of batch {number}")
        sealed[int(number)] = Sealed(rows, whole(weight, f"weight of batch {number}"))
    outputs: dict[str, JournalRow] = {}
    for row in map(JournalRow.read, ask("outputs_read")):
        # A conversion whose rows are all marked, or gone, is over.
        if not row.is_conversion or any(row.position < number <= row.plans for number in sealed):
            outputs[row.name] = row
    planned: dict[str, RowRanges] = {}
    for output, plan, _, records in ask("planned_records"):
        rows = read_ranges(records, f"records of plan {plan}")
        planned[str(output)] = planned.get(str(output), RowRanges()) | rows
    numbers = RowRanges()
    last = ask("parked_newest")[0][0]
    if seen and last is not None:
        parked = ask("parked_numbers", limit=MOST_SEEN_RANGES + 1)
        numbers = RowRanges.of(int(number) for (number,) in parked)
        if len(parked) > MOST_SEEN_RANGES:
            # Those that somebody has set back since are found by the sweep, a piece each time.
            numbers = RowRanges.read(Marks(log).get(connection, SEEN) or "")
    noted = ask("outcome_last")[0][0]
    return Memory(
        stamp=stamp or Stamp(),
        tracked=Marks(log).get(connection, TRACKED),
        converted=RowRanges.read(Marks(log).get(connection, CONVERTED) or ""),
        last_noted=EVER if noted is None else int(noted),
        batches=sealed,
        outputs=outputs,
        planned=planned,
        seen=numbers,
        last_parked=EVER if last is None else int(last),
        seen_kept=len(numbers),
        any_parked=last is not None,
        any_answers=ask("answer_any")[0][0] is not None,
        any_held=ask("hold_any")[0][0] is not None,
    )
