"""What memory knows of the journal's tables: as much as each turn needs. The tables count, and memory can be dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.model import Event
from eventlog.publisher.tables import JournalRow, decoded
from eventlog.sources.marks import Run, Stretches
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_GAPS: Final = 1_000
"""So many stretches of rows that wait are known exactly; of more, neighbouring ones count as one."""


KEPT_BATCHES: Final = 2
"""So many of the newest batches have their events at hand."""


class Sealed(Struct, frozen=True):
    """A batch: its rows, and what their values have together, in bytes. Some have their events at hand."""

    records: Stretches
    weight: int
    events: Sequence[Event] | None = None

    def joined(self, later: Sealed) -> Sealed:
        """Both as one, whose events are read again."""
        return Sealed(self.records | later.records, self.weight + later.weight)


class Memory(Struct, kw_only=True):
    """What the tables hold. `stamp` is the mark `holding` as it was when they were read."""

    stamp: str
    batches: dict[int, Sealed]
    outputs: dict[str, JournalRow]
    planned: dict[str, Stretches]
    """The rows that may be on their way to each output that has such documents."""
    seen: Stretches
    """Numbers that nobody has to look for: their rows wait for some output, or have got their letter since."""
    loose: Sequence[Run]
    """Stretches of `seen` in which other rows may be, because so many rows wait that only their ends are known."""
    any_parked: bool
    any_said: bool
    any_held: bool

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

    def add_seen(self, records: Stretches) -> None:
        """Rows wait, or have got their letter while others wait."""
        if self.any_parked:
            self.seen |= records
        elif not (self.batches or self.planned):
            self.seen = Stretches()


def read_memory(connection: Connection, log: Log, stamp: str) -> Memory:
    """Reads the tables."""
    batches = log.rows(connection, log.query("batches_read"))
    outputs = log.rows(connection, log.query("outputs_read"))
    planned: dict[str, Stretches] = {}
    for output, _, _, records in log.rows(connection, log.query("planned_records")):
        planned[str(output)] = planned.get(str(output), Stretches()) | _stretches(records)
    [(waiting, first, last)] = log.rows(connection, log.query("parked_count"))
    seen, loose = _read_seen(connection, log, int(waiting), first, last)
    return Memory(
        stamp=stamp,
        batches={int(number): Sealed(_stretches(records), int(weight)) for number, records, weight in batches},
        outputs={row.name: row for row in map(JournalRow.read, outputs)},
        planned=planned,
        seen=seen,
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


def _stretches(text: str) -> Stretches:
    return Stretches(decoded(text, list[tuple[int, int]]))
