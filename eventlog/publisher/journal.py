"""The journal of a log: which rows were sealed, how far each output is, and what waits for what.

For each output a row is at any time in exactly one place: ahead of its position, parked, planned, or over. It gets its
letter when it is over for every output. The position moves when rows are planned, not when they are delivered: what
was planned and is not at the target is parked, and nothing else.

One publisher writes the journal, the holder of the log's lock. Each transaction locks the mark `holding` first and the
lock's own mark after it, so that who has lost the lock writes nothing. What memory knows of the tables is dropped
after any exception, and when somebody else has written: then the mark `holding` has another text.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError, EventlogError, SourceError
from eventlog.core.model import SEVERITY, Event, Outcome, Outcomes, Reason, Status
from eventlog.publisher.tables import (
    FAR,
    JournalRow,
    Parked,
    Planned,
    read_planned,
    written_planned,
)
from eventlog.sources.log.left_out import NEVER_HELD, LeftOut
from eventlog.sources.log.reading import LogSettings, Request, WaitingRows
from eventlog.sources.log.seen import SLOTS, fewer, gap_parameters
from eventlog.sources.log.source import note_of, settle
from eventlog.sources.marks import HOLDING, Marks, Stretches
from eventlog.sql.log import ALL, Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.core.schema import Catalog
    from eventlog.sources.log.lock import LogLock

MOST_STRETCHES: Final = 1_000
"""So many stretches of taken numbers are known exactly; of more, neighbouring ones count as one."""

CLOCK_SECONDS: Final = 10.0
"""Seconds between two looks at the database's clock."""

SWEPT_BATCHES: Final = 10
"""Of so many batches it is looked at once whether their rows still wait."""

PIECE_ROWS: Final = 10_000
"""So many rows are parked, swept or settled in one transaction at most."""


class HoldsChanged(EventlogError):
    """Somebody held, released or gave up rows since they were read: they are read again."""


class Replaced(SourceError):
    """Somebody else has changed what only the holder of the lock may change."""


class Sealed(Struct, frozen=True):
    """A batch: its rows, and what their values have together, in bytes."""

    records: Stretches
    weight: int


class Plan(Struct, frozen=True, kw_only=True):
    """Where the rows of a take go: into documents, to those that wait, or over, because nothing is told of them.

    `passed` are batches of which the output has nothing ahead any more; `unparked` are rows that waited until now;
    `gone` are rows that wait no longer, since somebody else has taken them away or given them a letter.
    """

    stamp: str
    passed: Sequence[int] = ()
    unparked: Sequence[Parked] = ()
    documents: Sequence[Planned] = ()
    parked: Sequence[Parked] = ()
    said: Mapping[int, Outcome] = {}
    over: Collection[int] = ()
    gone: Stretches = Stretches()


class Done(Struct, frozen=True, kw_only=True):
    """What became of planned documents: their rows are over, but for those that come `again`."""

    documents: Sequence[Planned]
    said: Mapping[int, Outcome] = {}
    again: Sequence[Parked] = ()
    has: str | None = None
    told: Mapping[int, int] = {}


class _Memory(Struct, kw_only=True):
    """What the tables hold, as far as it is needed in each turn."""

    stamp: str
    batches: dict[int, Sealed]
    outputs: dict[str, JournalRow]
    planned: dict[str, Stretches]
    parked: Stretches
    """Rows that wait for any output; where they are too many, also what lies between near ones."""
    exact: bool
    """Whether all of `parked` waits."""
    any_said: bool
    any_held: bool

    @property
    def taken(self) -> Stretches:
        """Rows that were sealed and have no letter yet."""
        parts = [part for batch in self.batches.values() for part in batch.records.parts]
        for planned in self.planned.values():
            parts.extend(planned.parts)
        return Stretches([*parts, *self.parked.parts])

    @property
    def last_batch(self) -> int:
        """One number above this one no batch and no position has ever had."""
        return max([0, *self.batches, *(output.position for output in self.outputs.values())])


class Journal:
    """The journal of one log, as the holder of its lock writes it. Several threads may use it at the same time."""

    def __init__(self, log: Log, lock: LogLock, settings: LogSettings, catalog: Catalog | None = None) -> None:
        self.log = log
        self.settings = settings
        self._lock = lock
        self._marks = Marks(log)
        self._rows = WaitingRows(log, catalog, settings, LeftOut(log, catalog))
        self._memory: _Memory | None = None
        self._fresh: dict[int, Sequence[Event]] = {}
        """The events of batches that were sealed just now: who takes such a batch need not read it again."""
        self._one_at_a_time = RLock()
        self._current: Connection | None = None
        self._stamped: Connection | None = None
        self._swept = 0
        self._ahead = self._next_look = float("-inf")

    # --- transactions ------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[tuple[Connection, _Memory]]:
        """A transaction of the holder of the lock, or the one that this thread is in already.

        After any exception nothing that memory knew counts.
        """
        with self._one_at_a_time:
            if self._current is not None:
                yield self._current, self._known(self._current)
                return
            try:
                with self.log.transaction() as connection:
                    self._marks.lock(connection, HOLDING)
                    self._lock.assure(connection)
                    self._current = connection
                    yield connection, self._known(connection)
            except BaseException:  # perhaps it was committed, perhaps not
                self.forget_memory()
                raise
            finally:
                self._current = self._stamped = None

    def forget_memory(self) -> None:
        """Has the next turn read the tables again."""
        with self._one_at_a_time:
            self._memory = None
            self._fresh = {}

    def _known(self, connection: Connection) -> _Memory:
        """What the tables hold; read again where somebody else has written since."""
        if self._memory is not None and self._stamped is connection:
            return self._memory  # nobody else writes while this transaction has the mark locked
        stamp, self._stamped = self._marks.get(connection, HOLDING) or NEVER_HELD, connection
        if self._memory is not None and self._memory.stamp == stamp:
            return self._memory
        self._fresh = {}
        parked, exact = self._read_parked(connection)
        self._memory = _Memory(
            stamp=stamp,
            batches={
                int(number): Sealed(_stretches(records), int(weight))
                for number, records, weight in self._ask(connection, "batches_read")
            },
            outputs={row.name: row for row in map(JournalRow.read, self._ask(connection, "outputs_read"))},
            planned={},
            parked=parked,
            exact=exact,
            any_said=self._ask(connection, "said_any")[0][0] is not None,
            any_held=self._ask(connection, "hold_any")[0][0] is not None,
        )
        for output, _, _, records in self._ask(connection, "planned_records"):
            before = self._memory.planned.get(str(output), Stretches())
            self._memory.planned[str(output)] = before | _stretches(records)
        return self._memory

    def _read_parked(self, connection: Connection) -> tuple[Stretches, bool]:
        """The rows that wait for any output, and whether these are exactly they."""
        [(count, first, last)] = self._ask(connection, "parked_count")
        if not count:
            return Stretches(), True
        if int(count) <= MOST_STRETCHES:
            numbers = self._ask(connection, "parked_numbers")
            return Stretches.of(int(number) for (number,) in numbers), True
        width = max(1, (int(last) - int(first)) // MOST_STRETCHES)
        found = self._ask(connection, "parked_stretches", width=width)
        return Stretches((int(begin), int(end)) for begin, end in found), False

    def _ask(self, connection: Connection, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.log.rows(connection, self.log.query(query), values)

    def _tell(self, connection: Connection, query: str, values: Sequence[Mapping[str, Any]]) -> None:
        """Runs a statement once for each of these; nothing where there are none."""
        if values:
            # One is sent as one: a driver may prepare more than it has to for several.
            connection.execute(self.log.query(query), values[0] if len(values) == 1 else list(values))

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

    # --- outputs -----------------------------------------------------------------------------------------------------

    def output(self, name: str) -> JournalRow:
        """How far an output is."""
        with self.transaction() as (_, memory):
            return _known_output(memory, name)

    def serve(self, names: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Sees to it that each output is known; those with a former name go on under the new one.

        A new output lacks what the foremost one lacks: what is ahead of that one, parked or planned.
        """
        with self.transaction() as (connection, memory):
            for name, former_names in names:
                if name in memory.outputs:
                    continue
                former = next((one for one in former_names if one in memory.outputs), None)
                if former is None:
                    self._add(connection, memory, name)
                else:
                    self._rename(connection, memory, former, name)

    def _add(self, connection: Connection, memory: _Memory, name: str) -> None:
        foremost = max(memory.outputs.values(), key=lambda one: one.position, default=None)
        position = memory.last_batch if foremost is None else foremost.position
        self._tell(connection, "output_make", [{"name": name, "position": position}])
        memory.outputs[name] = JournalRow(name=name, position=position)
        if foremost is None:
            return
        self._tell(connection, "parked_copy", [{"name": name, "former": foremost.name}])
        planned = self._planned(connection, foremost.name)
        waiting = [
            Parked(output=name, record=record, object=one.object_of(record), reason="new", due=0)
            for one in planned
            for record in one.records
        ]
        self._park(connection, memory, waiting)

    def _rename(self, connection: Connection, memory: _Memory, former: str, name: str) -> None:
        for query in ("output_rename", "planned_rename", "parked_rename", "said_rename"):
            self._tell(connection, query, [{"name": name, "former": former}])
        row = memory.outputs.pop(former)
        memory.outputs[name] = msgspec.structs.replace(row, name=name)
        if former in memory.planned:
            memory.planned[name] = memory.planned.pop(former)

    def pause(self, name: str, why: str | None) -> None:
        """Lets nothing go to an output, for this reason; None lets it go on."""
        with self.transaction() as (connection, memory):
            row = _known_output(memory, name)
            self._tell(connection, "output_pause", [{"name": name, "paused": why}])
            memory.outputs[name] = msgspec.structs.replace(row, paused=why)

    def warn(self, name: str, warning: str | None) -> None:
        """Keeps what was found about a target that somebody should know."""
        with self.transaction() as (connection, memory):
            row = _known_output(memory, name)
            self._tell(connection, "output_warn", [{"name": name, "warning": warning}])
            memory.outputs[name] = msgspec.structs.replace(row, warning=warning)

    def forget(self, name: str) -> None:
        """Gives up an output, and what waits for it."""
        with self.transaction() as (connection, memory):
            _known_output(memory, name)
            waited = [int(number) for (number,) in self._ask(connection, "parked_numbers")]
            waited += [*memory.planned.pop(name, ())]
            waited += [number for batch in memory.batches.values() for number in batch.records]
            for query in ("planned_forget", "parked_forget", "said_forget"):
                self._tell(connection, query, [{"output": name}])
            self._tell(connection, "output_forget", [{"name": name}])
            del memory.outputs[name]
            memory.parked, memory.exact = self._read_parked(connection)
            if memory.outputs:
                self._settle(connection, memory, name, sorted(set(waited)), {})
            self._drop_passed(connection, memory)

    # --- sealing -----------------------------------------------------------------------------------------------------

    def seal(self, limit: int) -> bool:
        """Makes the next waiting rows a batch; whether there were any.

        Rows above all that is taken are asked for first, then those between: a transaction that commits meanwhile may
        have its later rows missed, and never its earlier ones.
        """
        with self.transaction() as (connection, memory):
            taken = memory.taken
            share = self.settings.share
            if self.settings.handle_future_events or not taken:
                known = taken if self.settings.handle_future_events else Stretches()
                found = self._rows.next(connection, Request(limit=limit, room=share, known=known))
            else:
                beyond = {"beyond": taken.parts[-1][1]}
                request = Request(limit=limit, room=share, among="among_beyond", bounds=beyond)
                found = self._rows.next(connection, request)
                late = self._late(connection, taken, limit)
                if late:
                    request = Request(
                        limit=ALL, room=share, among="among_noted", bounds={"ids": id_list(late)}
                    )
                    between = self._rows.next(connection, request)
                    full = len(late) >= limit or found.weight + between.weight > share
                    found = between if full else _together(between, found)
            if not found.events:
                return False
            events = found.rows
            sealed = Sealed(Stretches.of(event.position[0] for event in events), found.weight)
            number = memory.last_batch + 1
            values = {"id": number, "records": _text(sealed.records), "weight": sealed.weight}
            self._tell(connection, "batch_make", [values])
            memory.batches[number] = sealed
            self._fresh[number] = events
            return True

    def _late(self, connection: Connection, taken: Stretches, limit: int) -> list[int]:
        """Numbers of waiting rows that lie below or between those that are taken.

        All gaps are asked for each time. An earlier row may be in one whose transaction has just committed a later
        row of the same object above all of them.
        """
        parts = taken.parts
        gaps = [(-(2**62), parts[0][0] - 1)]
        gaps += [(before[1] + 1, after[0] - 1) for before, after in pairwise(parts)]
        asked = fewer(gaps, SLOTS if self.log.dialect.constant_ranges else MOST_STRETCHES)
        query = self.log.query("late_numbers", **{"except": "except_none"}, unread="unread_none")
        late: list[int] = []
        while asked and len(late) < limit:
            values = {"limit": PIECE_ROWS, **gap_parameters(self.log, asked)}
            page = [int(number) for (number,) in self.log.rows(connection, query, values)]
            late += [number for number in page if number not in taken]
            if len(page) < PIECE_ROWS:
                break
            asked = [(max(first, page[-1] + 1), last) for first, last in asked if last > page[-1]]
        return late[:limit]

    # --- what an output may take -------------------------------------------------------------------------------------

    def next_batches(self, name: str, limit: int, room: int) -> dict[int, Sealed]:
        """The batches that an output has ahead of it: the first one, and more while all have so many rows and bytes."""
        with self.transaction() as (_, memory):
            position = _known_output(memory, name).position
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

    def due(self, name: str, now: int, limit: int) -> list[Parked]:
        """Rows that waited and whose objects' turn it is, in their order."""
        with self.transaction() as (connection, memory):
            if not memory.parked:
                return []
            leaders = self._ask(connection, "parked_due", output=name, now=now, limit=limit)
            if not leaders:
                return []
            objects = list(dict.fromkeys(str(one) for one, _ in leaders))
            values = {"output": name, "objects": msgspec.json.encode(objects).decode(), "limit": limit}
            return [
                Parked(
                    output=name,
                    record=int(record),
                    object=str(one),
                    reason=str(reason),
                    attempts=int(attempts),
                    due=None if due is None else int(due),
                )
                for record, one, reason, attempts, due in self._ask(connection, "parked_rows", **values)
            ]

    def waiting_objects(self, name: str, objects: Iterable[str]) -> set[str]:
        """Those of these objects of which rows wait for an output."""
        asked = sorted(set(objects))
        with self.transaction() as (connection, memory):
            if not memory.parked or not asked:
                return set()
            values = {"output": name, "objects": msgspec.json.encode(asked).decode()}
            return {str(one) for (one,) in self._ask(connection, "parked_objects", **values)}

    def held(self, numbers: Sequence[int]) -> set[int]:
        """Those of these rows that somebody holds."""
        with self.transaction() as (connection, memory):
            if not memory.any_held or not numbers:
                return set()
            return {int(one) for (one,) in self._ask(connection, "held_among", ids=id_list(numbers))}

    def events(self, batches: Collection[int], numbers: Sequence[int]) -> Sequence[Event]:
        """The events of these rows, as far as they still wait; those of batches that were sealed just now are at hand."""
        with self.transaction() as (connection, _):
            at_hand = [event for batch in batches for event in self._fresh.get(batch, ())]
            known = {event.position[0] for event in at_hand}
            asked = [number for number in numbers if number not in known]
            if not asked:
                return at_hand
            request = Request(limit=ALL, room=ALL, among="among_noted", bounds={"ids": id_list(asked)})
            return [*at_hand, *self._rows.next(connection, request).rows]

    def going_on(self, events: Sequence[Event]) -> frozenset[int] | None:
        """The transactions of these events that have rows behind them; None where nobody can say that."""
        with self.transaction() as (connection, _):
            return self._rows.going_on(connection, events, (), more=True)

    def planned(self, name: str) -> list[Planned]:
        """The documents of an output that may be on their way, in their order."""
        with self.transaction() as (connection, memory):
            if name not in memory.planned:
                return []
            documents = self._planned(connection, name)
            if not documents:
                del memory.planned[name]
            return documents

    def stamp(self) -> str:
        """What changes each time that somebody holds or releases rows, or changes an output."""
        with self.transaction() as (_, memory):
            return memory.stamp

    def retried_until(self, name: str) -> int:
        """When the last row may be offered again that a receiver did not take; 0 where none waits for that."""
        with self.transaction() as (connection, memory):
            if not memory.parked:
                return 0
            return int(self._ask(connection, "parked_retried", output=name)[0][0] or 0)

    def soonest(self, name: str) -> int | None:
        """When the next row may go that waits; None where none has a time."""
        with self.transaction() as (connection, memory):
            if not memory.parked:
                return None
            found = self._ask(connection, "parked_soonest", output=name)[0][0]
            return None if found is None or int(found) >= FAR else int(found)

    # --- what changes ------------------------------------------------------------------------------------------------

    def plan(self, name: str, plan: Plan) -> Mapping[Status, int]:
        """Makes durable where rows go, before anything goes out; how many rows got which letter.

        HoldsChanged where somebody held or released rows since they were read.
        """
        with self.transaction() as (connection, memory):
            if memory.stamp != plan.stamp:
                raise HoldsChanged("Rows were held or released meanwhile; they are read again.")
            row = _known_output(memory, name)
            self._unpark(connection, memory, plan.unparked)
            self._tell(connection, "planned_make", [written_planned(name, one) for one in plan.documents])
            planned = Stretches([part for one in plan.documents for part in one.records.parts])
            memory.planned[name] = memory.planned.get(name, Stretches()) | planned
            self._park(connection, memory, plan.parked)
            self._leave(connection, memory, plan.gone)
            row = msgspec.structs.replace(
                row,
                position=max([row.position, *plan.passed]),
                plans=row.plans + bool(plan.documents),
            )
            self._tell(connection, "output_move", [row.written("name", "position", "plans")])
            memory.outputs[name] = row
            self._lead(connection, name, [one.object for one in plan.unparked])
            letters = self._settle(connection, memory, name, sorted(plan.over), plan.said)
            self._drop_passed(connection, memory)
        return letters

    def done(self, name: str, done: Done) -> Mapping[Status, int]:
        """Planned documents are over, but for rows that come again: those are parked. How many got which letter."""
        with self.transaction() as (connection, memory):
            row = _known_output(memory, name)
            places = [{"output": name, "plan": one.plan, "place": one.place} for one in done.documents]
            self._tell(connection, "planned_drop", places)
            records = Stretches([part for one in done.documents for part in one.records.parts])
            memory.planned[name] = memory.planned.get(name, Stretches()) - records
            self._park(connection, memory, done.again)
            row = msgspec.structs.replace(row, has=done.has or row.has, told=dict(done.told))
            self._tell(connection, "output_has", [row.written("name", "has", "told")])
            memory.outputs[name] = row
            over = [*(records - Stretches.of(one.record for one in done.again))]
            return self._settle(connection, memory, name, over, done.said)

    def later(self, name: str, documents: Sequence[Planned], due: int) -> None:
        """Nobody could read what was answered: these documents go again as they are, under their plan and id."""
        with self.transaction() as (connection, _):
            values = [
                {"output": name, "plan": one.plan, "place": one.place, "due": due, "attempts": one.attempts + 1}
                for one in documents
            ]
            self._tell(connection, "planned_later", values)

    def sweep(self) -> bool:
        """Forgets rows that somebody has taken away or settled; whether there were any.

        Of objects whose first row has gone so, the next one may go.
        """
        with self.transaction() as (connection, memory):
            gone = self._gone_from_batches(connection, memory)
            leaders: list[dict[str, Any]] = []
            if memory.parked:
                found = self._ask(connection, "parked_gone", limit=PIECE_ROWS)
                gone |= Stretches.of(int(number) for (number,) in found)
            self._leave(connection, memory, gone)
            if memory.parked:
                leaders = [
                    {"output": str(output), "record_id": int(record), "due": 0}
                    for output, _, record in self._ask(connection, "parked_leaderless")
                ]
                self._tell(connection, "parked_due_at", leaders)
                memory.parked, memory.exact = self._read_parked(connection)
            if memory.any_held:
                connection.execute(self.log.query("hold_gone"))
                memory.any_held = self._ask(connection, "hold_any")[0][0] is not None
            self._drop_passed(connection, memory)
            return bool(gone) or bool(leaders)

    def _gone_from_batches(self, connection: Connection, memory: _Memory) -> Stretches:
        """Rows of planned documents, and of some batches, that wait no longer; of the others another time."""
        gone = Stretches()
        numbers = sorted(memory.batches)
        some = [number for number in numbers if number > self._swept][:SWEPT_BATCHES] or numbers[:SWEPT_BATCHES]
        for number in some:
            records = memory.batches[number].records
            found = self._ask(connection, "still_waiting", ids=id_list([*records]))
            gone |= records - Stretches.of(int(one) for (one,) in found)
        self._swept = max(some, default=0)
        planned = Stretches(part for records in memory.planned.values() for part in records.parts)
        if planned:
            found = self._ask(connection, "still_waiting", ids=id_list([*planned]))
            gone |= planned - Stretches.of(int(one) for (one,) in found)
        return gone

    def _planned(self, connection: Connection, name: str) -> list[Planned]:
        return [read_planned(row) for row in self._ask(connection, "planned_read", output=name)]

    def _park(self, connection: Connection, memory: _Memory, waiting: Sequence[Parked]) -> None:
        self._tell(connection, "parked_make", [one.written() for one in waiting])
        if waiting:
            memory.parked |= Stretches.of(one.record for one in waiting)
            if len(memory.parked.parts) > 2 * MOST_STRETCHES:
                memory.parked, memory.exact = self._read_parked(connection)

    def _unpark(self, connection: Connection, memory: _Memory, waited: Sequence[Parked]) -> None:
        values = [{"output": one.output, "record_id": one.record} for one in waited]
        self._tell(connection, "parked_drop", values)
        if waited and memory.exact:
            if len(memory.outputs) > 1:  # another one may have the same rows waiting
                memory.parked, memory.exact = self._read_parked(connection)
            else:
                memory.parked -= Stretches.of(one.record for one in waited)

    def _lead(self, connection: Connection, name: str, objects: Iterable[str]) -> None:
        """Lets the first row go of each object of which rows wait behind one that waits no longer."""
        asked = sorted(set(objects))
        if not asked:
            return
        values = {"output": name, "objects": msgspec.json.encode(asked).decode(), "limit": ALL}
        first: dict[str, int] = {}
        led: set[str] = set()
        for record, one, _, _, due in self._ask(connection, "parked_rows", **values):
            first.setdefault(str(one), int(record))
            if due is not None:
                led.add(str(one))
        leaders = [
            {"output": name, "record_id": record, "due": 0}
            for one, record in first.items()
            if one not in led
        ]
        self._tell(connection, "parked_due_at", leaders)

    def _leave(self, connection: Connection, memory: _Memory, gone: Stretches) -> None:
        """Takes rows out of everything: their numbers may come again, and would be new rows then."""
        if not gone:
            return
        runs = [{"first": first, "last": last} for first, last in gone.parts]
        self._tell(connection, "parked_drop_run", runs)
        self._tell(connection, "said_drop", runs)
        for number, batch in list(memory.batches.items()):
            left = batch.records - gone
            if left != batch.records:
                self._tell(connection, "batch_less", [{"id": number, "records": _text(left)}])
                memory.batches[number] = Sealed(left, batch.weight)
        memory.parked = memory.parked - gone if memory.exact else memory.parked
        if any(records & gone for records in memory.planned.values()):
            for output, plan, place, text in self._ask(connection, "planned_records"):
                records = _stretches(text)
                if records & gone:
                    values = {"output": output, "plan": plan, "place": place, "records": _text(records - gone)}
                    self._tell(connection, "planned_less", [values])
                    memory.planned[str(output)] -= gone

    def _drop_passed(self, connection: Connection, memory: _Memory) -> None:
        """Drops batches that no output has ahead any more."""
        first = min((output.position for output in memory.outputs.values()), default=0)
        passed = [
            number
            for number, batch in memory.batches.items()
            if number <= first or not batch.records
        ]
        self._tell(connection, "batch_drop", [{"id": number} for number in passed])
        for number in passed:
            del memory.batches[number]
            self._fresh.pop(number, None)

    # --- letters -----------------------------------------------------------------------------------------------------

    def _settle(
        self,
        connection: Connection,
        memory: _Memory,
        name: str,
        over: Sequence[int],
        said: Mapping[int, Outcome],
    ) -> Mapping[Status, int]:
        """Gives rows that are over for every output their letter: the worst that was said. Of the others it keeps what
        this output has said.
        """
        if not over:
            return {}
        final = self._over_for_all(connection, memory, name, over)
        kept = [
            {
                "record_id": number,
                "output": name,
                "status": outcome.status.value,
                "reason": outcome.reason.value,
                "note": note_of(outcome),
            }
            for number, outcome in said.items()
            if number not in final and (outcome.reason is not Reason.PUBLISHED or outcome.note)
        ]
        self._tell(connection, "said_make", kept)
        memory.any_said = memory.any_said or bool(kept)
        numbers = [number for number in over if number in final]
        if not numbers:
            return {}
        answers = {number: [outcome] for number, outcome in said.items() if number in final}
        if memory.any_said:
            self._add_said(connection, memory, numbers, answers)
        others = {
            (number,): ended
            for number, several in answers.items()
            if (ended := worst_of(number, several, len(memory.outputs))) is not None
        }
        outcomes = Outcomes([(number,) for number in numbers], others)
        settle(connection, self.log, outcomes, self.settings, {}, waited=False)
        letters = Counter(outcome.status for outcome in others.values())
        letters[Status.SUCCESS] += len(numbers) - len(others)
        return +letters

    def _over_for_all(
        self, connection: Connection, memory: _Memory, name: str, over: Sequence[int]
    ) -> set[int]:
        """Those of these rows that no output has ahead, parked or planned."""
        final = Stretches.of(over)
        for other, row in memory.outputs.items():
            final -= memory.planned.get(other, Stretches())
            for number, batch in memory.batches.items():
                if number > row.position:
                    final -= batch.records
        if memory.parked & final:
            values = {"output": name if name in memory.outputs else "", "ids": id_list([*final])}
            found = self._ask(connection, "parked_elsewhere", **values)
            final -= Stretches.of(int(number) for (number,) in found)
        return {*final}

    def _add_said(
        self,
        connection: Connection,
        memory: _Memory,
        numbers: Sequence[int],
        answers: dict[int, list[Outcome]],
    ) -> None:
        """Adds what other outputs have said of these rows, and forgets it."""
        for first, last in Stretches.of(numbers).parts:
            found = self._ask(connection, "said_read", first=first, last=last)
            for number, _, status, reason, note in found:
                outcome = Outcome(
                    position=(int(number),), status=Status(status), reason=Reason(reason), note=note
                )
                answers.setdefault(int(number), []).append(outcome)
            if found:
                self._tell(connection, "said_drop", [{"first": first, "last": last}])
        memory.any_said = self._ask(connection, "said_any")[0][0] is not None


def worst_of(number: int, several: Sequence[Outcome], outputs: int) -> Outcome | None:
    """What a row ends with; None where it was simply published. Left out by policies it is only where all say so."""
    filtered = [one for one in several if one.reason is Reason.FILTERED]
    counted = several if len(filtered) == outputs else [one for one in several if one not in filtered]
    if not counted:
        return None
    worst = max(counted, key=lambda one: SEVERITY[one.status])
    return msgspec.structs.replace(worst, position=(number,))


def _known_output(memory: _Memory, name: str) -> JournalRow:
    if name not in memory.outputs:
        said = f"Somebody has forgotten the output {name} while this publisher writes to it."
        hint = "Take it out of the configuration, or begin again: it gets what comes from then on."
        raise Replaced(said, hint=hint, may_pass=False)
    return memory.outputs[name]


def _together(*batches: Any) -> Any:
    events = sorted((event for batch in batches for event in batch.events), key=lambda one: one.position)
    return msgspec.structs.replace(
        batches[0], events=events, weight=sum(batch.weight for batch in batches)
    )


def _text(records: Stretches) -> str:
    return msgspec.json.encode(records.parts).decode()


def _stretches(text: str) -> Stretches:
    try:
        return Stretches(msgspec.json.decode(text, type=list[tuple[int, int]]))
    except msgspec.DecodeError as error:
        hint = "It stands in the journal's tables beside the log; `eventlog check` says where."
        raise DataError(f"A list of rows in the journal cannot be read: {error}.", hint=hint) from error
