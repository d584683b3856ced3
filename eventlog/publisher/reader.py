"""What the journal says: how far outputs are, what they may take, and what waits for them.

Lone statements read it. What is read so is acted on by a plan only, which fails where somebody held or released rows
meanwhile.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.errors import SourceError
from eventlog.core.model import Event, Reason
from eventlog.publisher.memory import Memory, Sealed, read_memory
from eventlog.publisher.tables import NEVER, JournalRow, OnTheWay, Parked, encoded
from eventlog.publisher.unsealed import UnsealedRows
from eventlog.publisher.whole import GoingOn
from eventlog.sources.log.reading import NEAR_ROWS, LogSettings
from eventlog.sources.marks import HOLDING, Stretches
from eventlog.sql.log import ALL, Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog
    from eventlog.publisher.take import Take

CLOCK_SECONDS: Final = 10.0
"""Seconds between two looks at the database's clock."""

LATE_SECONDS: Final = 1.0
"""A clock that is so much earlier than before was set back, and not looked at slowly."""


NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""

NEAR_NUMBERS: Final = 10_000
"""Rows of a transaction that wait are looked for so far below and above those that go: a million others may wait."""

MOST_COUNT_LOOKS: Final = 10
"""So many stretches of a batch are counted one by one; of more, its rows are asked for by their numbers."""


class ReplacedError(SourceError):
    """Somebody else has changed what only the holder of the lock may change."""


class JournalReader:
    """Reads the journal of one log. Several threads may use it at the same time."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None = None) -> None:
        self.log = log
        self.settings = settings
        self.rows = UnsealedRows(log, settings, catalog)
        self.one_at_a_time = RLock()
        self._new_rows = Lock()
        self.in_take: dict[str, dict[int, Sealed]] = {}
        """The batches that each output has read last, and may be about to plan."""
        self._memory: Memory | None = None
        self._current: Connection | None = None
        self._ahead = self._next_look = float("-inf")
        self._now = 0

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
                    found = self.ask(connection, "mark_read", name=HOLDING)
                    memory = self.memory_of(connection, str(found[0][0]) if found else NEVER_HELD)
                    self._current = connection
                    yield connection, memory
            except BaseException:
                self.forget_memory()
                raise
            finally:
                self._current = None

    @contextmanager
    def at_new_rows(self, name: str) -> Iterator[None]:
        """One output at a time takes rows that no batch has: the others wait until it has planned them, and take its
        batch then. Who has a batch ahead waits for nobody.
        """
        alone = False
        if not self.is_behind(name):
            self._new_rows.acquire()
            alone = not self.is_behind(name)
            if not alone:
                self._new_rows.release()
        try:
            yield
        finally:
            if alone:
                self._new_rows.release()

    def is_behind(self, name: str) -> bool:
        """Whether an output has a batch ahead of it, as far as memory knows."""
        with self.one_at_a_time:
            memory = self._memory
            return memory is not None and known_output(memory, name).position < max(memory.batches, default=0)

    def look(self, catalog: Catalog | None) -> None:
        """Goes on with tables as they look now."""
        with self.one_at_a_time:
            self.rows = UnsealedRows(self.log, self.settings, catalog)

    def forget_memory(self) -> None:
        """Has the next turn read the tables again."""
        with self.one_at_a_time:
            self._memory = None

    def memory_of(self, connection: Connection, stamp: str) -> Memory:
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
        now = int((monotonic() + self._ahead) * 1000)
        # A look that took longer than the former one makes it no earlier: what was to go at once would wait.
        if not 0 < self._now - now < LATE_SECONDS * 1000:
            self._now = now
        return self._now

    def delay(self, attempts: int) -> int:
        """In how many milliseconds a row is tried again that was tried so often; by chance, so that not all come at once."""
        return int(self.settings.backoff.delay(attempts, secrets.SystemRandom().random()) * 1000)

    # --- outputs, and what they may take ---------------------------------------------------------------------------

    def output(self, name: str) -> JournalRow:
        """How far an output is."""
        with self.reading() as (_, memory):
            return known_output(memory, name)

    @property
    def outputs(self) -> int:
        """How many outputs there are, as far as memory knows."""
        memory = self._memory
        return 1 if memory is None else len(memory.outputs)

    def others(self, name: str) -> list[str]:
        """The other outputs to which something goes, as far as memory knows."""
        memory = self._memory
        return [] if memory is None else [one for one, row in memory.outputs.items() if one != name and not row.paused]

    def next_batches(self, name: str, limit: int, room: int) -> dict[int, Sealed]:
        """The batches that an output has ahead of it: the first one, and more while all have so many rows and bytes."""
        with self.reading() as (_, memory):
            position = known_output(memory, name).position
            found = self.in_take[name] = dict[int, Sealed]()
            rows, weight, reserved = 0, 0, memory.reserved_above
            for number in sorted(memory.batches):
                if number <= position:
                    continue
                if reserved is not None and number > reserved:
                    break
                batch = memory.batches[number]
                rows, weight = rows + len(batch.records), weight + batch.weight
                if found and (rows > limit or weight > room):
                    break
                found[number] = batch
            return found

    def new_rows(self, limit: int) -> Sealed | None:
        """The next waiting rows that no batch has; they are sealed by the plan that takes them. None where none wait."""
        with self.reading() as (connection, memory):
            # Nothing may overtake the rows of a conversion that was interrupted, and only it knows their objects.
            return None if memory.reserved_above is not None else self.rows.next(connection, memory, limit)

    @property
    def embedded(self) -> bool:
        """Whether the log's database has one writer at a time."""
        return self.log.dialect.embedded

    @property
    def known(self) -> bool:
        """Whether memory knows the tables, so that it can be asked what is new."""
        return self._memory is not None

    @property
    def anything_waits(self) -> bool:
        """Whether rows wait, are held or are on their way, as far as memory knows."""
        with self.one_at_a_time:
            memory = self._memory
            return memory is not None and bool(memory.any_parked or memory.any_held or memory.batches or memory.taken)

    def anything(self, connection: Connection) -> bool:
        """Whether rows wait that nobody has taken, or rows were held or released since the last reading."""
        with self.one_at_a_time:
            found = self.ask(connection, "mark_read", name=HOLDING)
            if self._memory is None or not found or found[0][0] != self._memory.stamp:
                return True
            if self._memory.reserved_above is not None:
                return False
            return bool(self.rows.first_numbers(connection, self._memory, 1))

    def due(self, name: str, now: int, limit: int) -> tuple[list[Parked], Collection[str]]:
        """Rows that waited and whose objects' turn it is, in their order; and those objects of which no row is left."""
        with self.reading() as (connection, memory):
            if not memory.any_parked:
                return [], ()
            most = limit + 2 * NEAR_ROWS
            leaders = self.ask(connection, "parked_due", output=name, now=now, limit=most + 1)
            objects = {str(one) for one, _ in leaders[:most]}
            if self.settings.handle_future_events:  # times count and not numbers: the first of an object may have any
                return self.parked_of(connection, name, objects), objects
            rows = self.parked_of(connection, name, objects, most)
            if len(leaders) <= most and len(rows) <= limit:
                return rows, objects
            # Rows of objects that come later have numbers between these: so a transaction is told in its order.
            beyond = int(leaders[most][1]) if len(leaders) > most else NEVER
            is_full = len(rows) == most
            # Nobody knows whether a change among the last rows of a full list goes on behind it.
            continuing = self.rows.continuing(connection, [row.record for row in rows])
            going = _first_changes(rows, continuing, limit=limit, beyond=beyond, most=len(rows) - NEAR_ROWS * is_full)
            if is_full:
                return going, ()
            taken = {row.record for row in going}
            return going, objects - {row.object for row in rows if row.record not in taken}

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

    @property
    def any_waits(self) -> bool:
        """Whether any row waits for an output, or somebody holds one."""
        with self.reading() as (_, memory):
            return memory.any_parked or memory.any_held

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
        with self.reading() as (connection, _):
            for batch in batches:
                if batch.events is not None and (batch.is_new or self._all_wait(connection, batch.records)):
                    at_hand.extend(batch.events)
                else:
                    asked.extend(batch.records)
            return [*at_hand, *self.rows.events(connection, sorted(set(asked)))] if asked else at_hand

    def _all_wait(self, connection: Connection, records: Stretches) -> bool:
        """Whether nobody has taken one of these rows away, or settled it, since they were read."""
        if len(records.parts) > MOST_COUNT_LOOKS:
            found = self.ask(connection, "still_waiting", ids=id_list([*records]))
            return len(found) == len(records)
        counts = (self.ask(connection, "count_between", first=first, last=last) for first, last in records.parts)
        return sum(int(count) for [(count,)] in counts) == len(records)

    def objects(self, numbers: Sequence[int]) -> Mapping[int, str]:
        """The objects that these rows speak of, as far as they still wait."""
        with self.reading() as (connection, _):
            return self.rows.objects(connection, sorted(set(numbers)))

    def going_on(self, name: str, taken: Take, now: int) -> GoingOn | None:
        """The transactions of a take that go on at the output: other rows of them are ahead of it, or wait for it.

        Rows that wait in the log are not enough to know: they may wait for other outputs only.
        """
        with self.reading() as (connection, memory):
            ends = self.rows.ends_behind(connection, taken.events)
            if ends is None:
                return None
            position, known = known_output(memory, name).position, memory.taken | memory.seen
            ahead = [one.records for number, one in memory.batches.items() if number > position]
            # Rows of a transaction are taken in their order, but for those that are set aside: so where it has passed the
            # last one, no other is ahead of it.
            soon = {
                one
                for one, end in ends.items()
                if end not in taken.records and (end not in known or any(end in records for records in ahead))
            }
            waiting = list(taken.set_aside)
            if memory.any_parked:
                numbers = [event.position[0] for event in taken.events]
                transactions = {event.transaction.mark for event in taken.events if event.transaction is not None}
                values = {
                    "output": name,
                    "first": min(numbers) - NEAR_NUMBERS,
                    "last": max(numbers) + NEAR_NUMBERS,
                    "ids": id_list([one.record for one in taken.unparked]),
                    "transactions": id_list(sorted(transactions)),
                }
                waiting += [
                    (int(one), int(due or 0)) for one, due in self.ask(connection, "parked_transactions", **values)
                ]
        soon.update(one for one, due in waiting if due <= now)
        return GoingOn(every=frozenset(soon.union(one for one, _ in waiting)), soon=frozenset(soon))

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

    def history_stamp(self) -> int:
        """How many versions the history of tables has."""
        with self.reading() as (connection, _):
            return int(self.ask(connection, "history_stamp")[0][0])

    def retried_until(self, name: str) -> int:
        """When the last row may be offered again that a receiver did not take; 0 where none waits for that."""
        with self.reading() as (connection, memory):
            if not memory.any_parked:
                return 0
            if name not in memory.retried:
                memory.retried[name] = int(self.ask(connection, "parked_retried", output=name)[0][0] or 0)
            return memory.retried[name]

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


def _first_changes(
    rows: Sequence[Parked], continuing: Collection[int], *, limit: int, beyond: int, most: int
) -> list[Parked]:
    """The changes of about so many rows, and of each object none behind one that is left. The first change of an object may
    have any number, the others are below `beyond`; none begins behind the first `most` rows.

    What was left of transactions that go on takes nobody's room: alone it would come again and again.
    """
    room = limit
    known: set[str] = set()
    left: set[str] = set()
    going: list[Parked] = []
    for place, row in enumerate(rows):
        is_known = row.object in known
        may_begin = room > 0 and place < most and not (is_known and row.record >= beyond)
        if not may_begin and not (is_known and row.record in continuing):
            left.add(row.object)
        if row.object not in left:
            known.add(row.object)
            going.append(row)
            room -= row.reason != Reason.GOES_ON.value
    return going
