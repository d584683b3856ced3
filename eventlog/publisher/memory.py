"""What memory knows of the journal's tables: as much as each turn needs. The tables count, and memory can be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.errors import SourceError
from eventlog.core.model import Event, Reason
from eventlog.publisher.tables import JournalRow, Parked, stretches_of, whole
from eventlog.sources.marks import CONVERTED, TRACKED, Marks, Run, Stretches
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_GAPS: Final = 1_000
"""So many stretches of rows that wait are known exactly; of more, neighbouring ones count as one."""


KEPT_BATCHES: Final = 2
"""So many of the newest batches have their events at hand."""


class ReplacedError(SourceError):
    """Somebody else has changed what only the holder of the lock may change."""


class Sealed(Struct, frozen=True):
    """A batch: its rows, and what their values have together, in bytes. Some have their events at hand."""

    records: Stretches
    weight: int
    events: Sequence[Event] | None = None
    is_new: bool = False
    """It was read just now, and has no number yet."""

    def joined(self, later: Sealed) -> Sealed:
        """Both as one, whose events are read again."""
        return Sealed(self.records | later.records, self.weight + later.weight)


class Memory(Struct, kw_only=True):
    """What the tables hold. `stamp` is the mark `holding` as it was when they were read."""

    stamp: str
    tracked: str | None
    """What changes each time that tables are tracked."""
    batches: dict[int, Sealed]
    outputs: dict[str, JournalRow]
    planned: dict[str, Stretches]
    """The rows that may be on their way to each output that has such documents."""
    seen: Stretches
    """Numbers that nobody has to look for: their rows wait for some output, or have got their letter since."""
    loose: Sequence[Run]
    """Stretches of `seen` in which other rows may be, because so many rows wait that only their ends are known."""
    last_noted: int
    """The highest number of which the companion table says how its row ended: none above it has a record."""
    any_parked: bool
    any_said: bool
    any_held: bool
    converted: Stretches = Stretches()
    """The numbers of batches that a conversion has done for every output but those that have them ahead."""
    reserved_above: int | None = None
    """The batches above this one are those of a conversion that is not over: nobody else takes them, nor new rows."""
    leader_gone: bool = True
    """Whether there may be an object of which rows wait and none may go first."""
    retried: dict[str, int] = {}
    """When the last row may be offered again that an output's receiver did not take, as far as somebody has asked."""
    in_take: dict[str, dict[int, Sealed]] = {}
    """The batches that each output has read last, and may be about to plan."""

    def output(self, name: str) -> JournalRow:
        """How far an output is."""
        if name not in self.outputs:
            said = f"Somebody has forgotten the output {name} while this publisher writes to it."
            hint = "Take it out of the configuration, or begin again: it gets what comes from then on."
            raise ReplacedError(said, hint=hint, may_pass=False)
        return self.outputs[name]

    @property
    def taken(self) -> Stretches:
        """Rows that are ahead of an output, or may be on their way."""
        parts = [part for batch in self.batches.values() for part in batch.records.parts]
        for planned in self.planned.values():
            parts.extend(planned.parts)
        return Stretches(parts)

    @property
    def last_batch(self) -> int:
        """One number above this one no batch and no position has ever had."""
        return max([0, *self.batches, *(output.position for output in self.outputs.values())])

    def keep_few_events(self) -> None:
        """Lets go of the events of all batches but the newest: who takes those is behind, and reads them again."""
        for number in sorted(self.batches)[:-KEPT_BATCHES]:
            batch = self.batches[number]
            if batch.events is not None:
                self.batches[number] = Sealed(batch.records, batch.weight)

    def forget_retried(self, rows: Iterable[Parked]) -> None:
        """These rows begin to wait, or wait no longer."""
        if any(one.reason == Reason.RETRY.value for one in rows):
            self.retried.clear()

    def add_seen(self, records: Stretches) -> None:
        """Rows wait, or have got their letter while others wait."""
        if self.any_parked:
            self.seen |= records
        elif not (self.batches or self.planned):
            self.seen = Stretches()


def read_memory(connection: Connection, log: Log, stamp: str, *, seen: bool = True) -> Memory:
    """Reads the tables. Who looks for no new rows does without `seen`, which takes a look at all that wait."""
    batches = log.rows(connection, log.query("batches_read"))
    outputs = log.rows(connection, log.query("outputs_read"))
    planned: dict[str, Stretches] = {}
    for output, plan, _, records in log.rows(connection, log.query("planned_records")):
        found = stretches_of(records, f"records of plan {plan}")
        planned[str(output)] = planned.get(str(output), Stretches()) | found
    if seen:
        [(waiting, first, last)] = log.rows(connection, log.query("parked_count"))
        numbers, loose = _read_seen(connection, log, int(waiting), first, last)
    else:
        waiting = log.rows(connection, log.query("parked_any"))[0][0] is not None
        numbers, loose = Stretches(), ()
    noted = log.rows(connection, log.query("outcome_last"))[0][0]
    numbers_there = [int(number) for number, *_ in batches]
    rows = {
        row.name: row
        for row in map(JournalRow.read, outputs)
        # One whose rows are all marked, or gone, is over.
        if not row.is_conversion or any(row.position < number <= row.plans for number in numbers_there)
    }
    return Memory(
        stamp=stamp,
        tracked=Marks(log).get(connection, TRACKED),
        converted=Stretches.read(Marks(log).get(connection, CONVERTED) or ""),
        last_noted=-(2**62) if noted is None else int(noted),
        batches={
            int(number): Sealed(
                stretches_of(records, f"records of batch {number}"), whole(weight, f"weight of batch {number}")
            )
            for number, records, weight in batches
        },
        outputs=rows,
        reserved_above=min((row.position for row in rows.values() if row.is_conversion), default=None),
        planned=planned,
        seen=numbers,
        loose=loose,
        any_parked=bool(waiting),
        any_said=log.rows(connection, log.query("said_any"))[0][0] is not None,
        any_held=log.rows(connection, log.query("hold_any"))[0][0] is not None,
    )


def _read_seen(
    connection: Connection, log: Log, waiting: int, first: Any, last: Any
) -> tuple[Stretches, Sequence[Run]]:
    """The rows that wait for any output, and the stretches of them in which there may be others."""
    if waiting <= MOST_GAPS:
        numbers = log.rows(connection, log.query("parked_numbers")) if waiting else []
        return Stretches.of(int(number) for (number,) in numbers), ()
    width = max(1, (int(last) - int(first)) // MOST_GAPS)
    found = [
        (int(begin), int(end), int(count))
        for begin, end, count in log.rows(connection, log.query("parked_stretches"), {"width": width})
    ]
    loose = [(begin, end) for begin, end, count in found if count <= end - begin]
    return Stretches((begin, end) for begin, end, _ in found), loose
