"""What the journal says: how far outputs are, what they may take, and what waits for them.

Lone statements read it. What is read so is acted on by a plan only, which fails where somebody held or released rows
meanwhile.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.errors import SourceError
from eventlog.core.model import Event
from eventlog.publisher.memory import Memory, Sealed, read_memory
from eventlog.publisher.tables import NEVER, JournalRow, OnTheWay, Parked, encoded
from eventlog.publisher.unsealed import UnsealedRows
from eventlog.sources.log.left_out import NEVER_HELD
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import HOLDING, Marks
from eventlog.sql.log import ALL, Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog

CLOCK_SECONDS: Final = 10.0
"""Seconds between two looks at the database's clock."""


class ReplacedError(SourceError):
    """Somebody else has changed what only the holder of the lock may change."""


class JournalReader:
    """Reads the journal of one log. Several threads may use it at the same time."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None = None) -> None:
        self.log = log
        self.settings = settings
        self.rows = UnsealedRows(log, settings, catalog)
        self.one_at_a_time = RLock()
        self._marks = Marks(log)
        self._memory: Memory | None = None
        self._current: Connection | None = None
        self._ahead = self._next_look = float("-inf")

    @contextmanager
    def reading(self) -> Iterator[tuple[Connection, Memory]]:
        """Lone statements, or those of the reading that this thread is in already. Nothing that is read so is acted on
        but by a plan, which fails where somebody held or released rows meanwhile.
        """
        with self.one_at_a_time:
            if self._current is not None and self._memory is not None:
                yield self._current, self._memory
                return
            try:
                with self.log.transaction(lone=True) as connection:
                    # The mark is read first: what somebody writes after it has the plan fail.
                    stamp = self._marks.get(connection, HOLDING) or NEVER_HELD
                    memory = self.known(connection, stamp)
                    self._current = connection
                    yield connection, memory
            except BaseException:
                self.forget_memory()
                raise
            finally:
                self._current = None

    def forget_memory(self) -> None:
        """Has the next turn read the tables again."""
        with self.one_at_a_time:
            self._memory = None

    def known(self, connection: Connection, stamp: str) -> Memory:
        """What the tables hold; read again where somebody else has written since."""
        if self._memory is None or self._memory.stamp != stamp:
            self._memory = read_memory(connection, self.log, stamp)
        return self._memory

    def ask(self, connection: Connection, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.log.rows(connection, self.log.query(query), values)

    # --- the clock ---------------------------------------------------------------------------------------------------

    def moment(self) -> dt.datetime:
        """The database's clock, in UTC."""
        with self.log.transaction(lone=True) as connection:
            return self.log.now(connection)

    def now(self) -> int:
        """The database's clock in milliseconds since 1970; between two looks at it this machine counts on."""
        if monotonic() >= self._next_look:
            told = self.moment().replace(tzinfo=dt.UTC).timestamp()
            self._ahead, self._next_look = told - monotonic(), monotonic() + CLOCK_SECONDS
        return int((monotonic() + self._ahead) * 1000)

    # --- outputs, and what they may take ---------------------------------------------------------------------------

    def output(self, name: str) -> JournalRow:
        """How far an output is."""
        with self.reading() as (_, memory):
            return known_output(memory, name)

    def next_batches(self, name: str, limit: int, room: int) -> dict[int, Sealed]:
        """The batches that an output has ahead of it: the first one, and more while all have so many rows and bytes."""
        with self.reading() as (_, memory):
            position = known_output(memory, name).position
            found: dict[int, Sealed] = {}
            rows = weight = 0
            for number in sorted(memory.batches):
                if number <= position:
                    continue
                batch = memory.batches[number]
                rows, weight = rows + len(batch.records), weight + batch.weight
                if found and (rows > limit or weight > room):
                    break
                found[number] = batch
            return found

    def new_rows(self, limit: int) -> Sealed | None:
        """The next waiting rows that no batch has; they are sealed by the plan that takes them. None where none wait."""
        with self.reading() as (connection, memory):
            return self.rows.next(connection, memory, limit)

    def due(self, name: str, now: int, limit: int) -> list[Parked]:
        """Rows that waited and whose objects' turn it is, in their order."""
        with self.reading() as (connection, memory):
            if not memory.any_parked:
                return []
            leaders = self.ask(connection, "parked_due", output=name, now=now, limit=limit)
            return self.parked_of(connection, name, (str(one) for one, _ in leaders), limit)

    def parked_of(self, connection: Connection, name: str, objects: Iterable[str], limit: int = ALL) -> list[Parked]:
        """The rows that wait of some objects, in their order."""
        asked = sorted(set(objects))
        if not asked:
            return []
        values = {"output": name, "objects": encoded(asked), "limit": limit}
        return [
            Parked(
                output=name,
                record=int(record),
                object=str(one),
                reason=str(reason),
                attempts=int(attempts),
                due=None if due is None else int(due),
            )
            for record, one, reason, attempts, due in self.ask(connection, "parked_rows", **values)
        ]

    def waiting_objects(self, name: str, objects: Iterable[str]) -> set[str]:
        """Those of these objects of which rows wait for an output."""
        asked = sorted(set(objects))
        with self.reading() as (connection, memory):
            if not memory.any_parked or not asked:
                return set()
            values = {"output": name, "objects": encoded(asked)}
            return {str(one) for (one,) in self.ask(connection, "parked_objects", **values)}

    def held(self, numbers: Collection[int]) -> set[int]:
        """Those of these rows that somebody holds."""
        with self.reading() as (connection, memory):
            if not memory.any_held or not numbers:
                return set()
            return {int(one) for (one,) in self.ask(connection, "held_among", ids=id_list([*numbers]))}

    def events(self, batches: Iterable[Sealed], numbers: Iterable[int]) -> Sequence[Event]:
        """The events of these batches and rows, as far as they still wait; some batches have theirs at hand."""
        at_hand: list[Event] = []
        asked = list(numbers)
        for batch in batches:
            if batch.events is None:
                asked.extend(batch.records)
            else:
                at_hand.extend(batch.events)
        if not asked:
            return at_hand
        with self.reading() as (connection, _):
            return [*at_hand, *self.rows.events(connection, sorted(set(asked)))]

    def objects(self, numbers: Sequence[int]) -> Mapping[int, str]:
        """The objects that these rows speak of, as far as they still wait."""
        with self.reading() as (connection, _):
            return self.rows.objects(connection, sorted(set(numbers)))

    def going_on(self, events: Sequence[Event]) -> frozenset[int] | None:
        """The transactions of these events that have rows behind them; None where nobody can say that."""
        with self.reading() as (connection, _):
            return self.rows.going_on(connection, events)

    def planned(self, name: str) -> list[OnTheWay]:
        """The documents of an output that may be on their way, in their order."""
        with self.reading() as (connection, memory):
            if name not in memory.planned:
                return []
            documents = [OnTheWay.read(row) for row in self.ask(connection, "planned_read", output=name)]
            if not documents:
                del memory.planned[name]
            return documents

    def stamp(self) -> str:
        """What changes each time that somebody holds or releases rows, or changes an output."""
        with self.reading() as (_, memory):
            return memory.stamp

    def retried_until(self, name: str) -> int:
        """When the last row may be offered again that a receiver did not take; 0 where none waits for that."""
        with self.reading() as (connection, memory):
            if not memory.any_parked:
                return 0
            return int(self.ask(connection, "parked_retried", output=name)[0][0] or 0)

    def soonest(self, name: str) -> int | None:
        """When the next row may go that waits; None where none has a time."""
        with self.reading() as (connection, memory):
            if not memory.any_parked:
                return None
            found = self.ask(connection, "parked_soonest", output=name)[0][0]
            return None if found is None or int(found) >= NEVER else int(found)


def known_output(memory: Memory, name: str) -> JournalRow:
    if name not in memory.outputs:
        said = f"Somebody has forgotten the output {name} while this publisher writes to it."
        hint = "Take it out of the configuration, or begin again: it gets what comes from then on."
        raise ReplacedError(said, hint=hint, may_pass=False)
    return memory.outputs[name]
