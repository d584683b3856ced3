"""What the journal has at one look: how far an output is, what it may take, and what waits for it.

Lone statements read it. Only a plan acts on what they read, and it fails where somebody has held or
released rows since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.model import EVERY_ROW, Event, Reason
from eventlog.publisher.memory import Memory, Sealed
from eventlog.publisher.tables import EVER, LAST_NUMBER, OnTheWay, Parked
from eventlog.publisher.whole_transactions import GoingOn
from eventlog.sources.log.reading import NEAR_ROWS, LogSettings
from eventlog.sources.marks import RowRanges, as_text
from eventlog.sql.log import ALL, Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.publisher.new_rows import UnsealedRows
    from eventlog.publisher.selection import Take, Unanswered

NEAR_NUMBERS: Final = 10_000
"""Rows of a transaction are looked for so far from those that go: a million others may wait."""

MOST_COUNT_LOOKS: Final = 10
"""So many ranges of a batch are counted one by one; of more, its rows are asked for by number."""


class View(Struct, frozen=True):
    """The journal of a log as one connection sees it. `rows` reads the log, `memory` the tables."""

    log: Log
    settings: LogSettings
    rows: UnsealedRows
    connection: Connection
    memory: Memory

    def ask(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Ask a query of the log's database."""
        return self.log.rows(self.connection, self.log.query(query), values)

    def numbers(self, query: str, **values: Any) -> RowRanges:
        """Ask a query for row numbers."""
        return RowRanges.of(int(number) for (number,) in self.ask(query, **values))

    # --- what may go ------------------------------------------------------------------------------

    def next_batches(self, name: str, limit: int) -> dict[int, Sealed]:
        """Return the first batch ahead of an output, and more up to so many rows, and to a batch's bytes."""
        # What is here must not be joined with a later batch before the plan of this output.
        batches = self.memory.in_take[name] = dict[int, Sealed]()
        if not self.memory.batches:  # by far the most common
            return batches
        rows, weight, room, reserved = 0, 0, self.settings.share, self.memory.reserved_above
        for number, batch in self.memory.ahead(self.memory.output(name)).items():
            if reserved is not None and number > reserved:
                break
            rows, weight = rows + len(batch.records), weight + batch.weight
            # The first one goes however large it is: else nothing would.
            if batches and (rows > limit or weight > room):
                break
            batches[number] = batch
        return batches

    def due(self, name: str, now: int, limit: int, unanswered: Unanswered) -> tuple[list[Parked], Collection[str]]:
        """Find waiting rows of objects ready to go, and the objects freed by them.

        Rows held up by unanswered documents do not count toward the limit.
        """
        if not self.memory.any_parked:
            return [], ()
        most = limit + 2 * NEAR_ROWS
        leaders = self._leaders(name, now, most + 1, unanswered)
        objects = {leader for leader, _ in leaders[:most]}
        # Times count there and not numbers: the first row of an object may have any number.
        if self.settings.handle_future_events:
            return self.list_parked_of(name, objects), objects
        rows, left = self._first_rows(name, objects, most)
        if len(leaders) <= most and len(rows) <= limit:
            return rows, objects
        beyond = LAST_NUMBER
        if len(leaders) > most:
            # Objects that come later have rows between these: transactions are published in order.
            beyond = leaders[most][1]
        may_begin = len(rows)
        is_full = len(rows) - left == most
        if is_full:
            # Nobody knows whether a change among the last rows of a full list goes on behind it.
            may_begin -= NEAR_ROWS
        continuing = self.rows.continuing(self, [row.record for row in rows])
        going = _first_changes(rows, continuing, limit=limit, beyond=beyond, most=may_begin)
        if is_full:
            return going, ()
        taken = {row.record for row in going}
        return going, objects - {row.object for row in rows if row.record not in taken}

    def _first_rows(self, name: str, objects: Collection[str], most: int) -> tuple[list[Parked], int]:
        """Find the first waiting rows of objects, and the number left over from transactions.

        Those do not count toward `most`: they go with rows of their transactions, never alone.
        """
        limit = most
        while True:
            rows = self.list_parked_of(name, objects, limit)
            left = sum(row.reason == Reason.GOES_ON.value for row in rows)
            if len(rows) < limit or limit == most + left:
                return rows, left
            limit = most + left

    def _leaders(self, name: str, now: int, limit: int, unanswered: Unanswered) -> list[tuple[str, int]]:
        """Find objects ready to go, each with the row that frees it."""
        # Where one answer stops all, most of them wait for it.
        most = ALL if unanswered.stops else limit + len(unanswered.first_rows)
        values = {"output": name, "now": now, "limit": most}
        leaders = [(str(leader), int(record)) for leader, record in self.ask("parked_due", **values)]
        return [(leader, record) for leader, record in leaders if not unanswered.holds_up(leader, record)][:limit]

    def list_parked_of(self, name: str, objects: Iterable[str], limit: int = ALL) -> list[Parked]:
        """List the waiting rows of some objects, in their order."""
        asked = sorted(set(objects))
        if not asked:
            return []
        values = {"output": name, "objects": as_text(asked), "limit": limit}
        return [Parked.read(name, row) for row in self.ask("parked_rows", **values)]

    def others_wait(self, name: str, rows: Sequence[Parked], now: int) -> bool:
        """Return True if other rows than these wait for an output, or one of these has to wait on."""
        # Where times count nobody knows what comes first before all are looked at.
        if rows and self.settings.handle_future_events:
            return True
        if any(row.waits_at(now) for row in rows):
            return True
        # No more of them are counted than have to be: a million may wait.
        limit = len(rows) + 1
        return int(self.ask("parked_some", output=name, limit=limit)[0][0]) == limit

    def waiting_objects(self, name: str, objects: Iterable[str]) -> set[str]:
        """Find those of the objects with rows waiting for an output."""
        asked = sorted(set(objects))
        if not self.memory.any_parked or not asked:
            return set()
        waiting = self.ask("parked_objects", output=name, objects=as_text(asked))
        return {str(object_name) for (object_name,) in waiting}

    def count_parked_below(self, name: str, record: int) -> int:
        """Count the rows before this one waiting for an output."""
        if not self.memory.any_parked:
            return 0
        return int(self.ask("parked_below", output=name, record_id=record)[0][0])

    def events(self, batches: Iterable[Sealed], numbers: Iterable[int]) -> Sequence[Event]:
        """Read the events of these batches and rows, as far as they still wait."""
        at_hand: list[Event] = []
        asked = list(numbers)
        for batch in batches:
            if batch.events is not None and (batch.is_new or self._all_wait(batch.records)):
                at_hand.extend(batch.events)
            else:
                asked.extend(batch.records)
        if asked:
            at_hand.extend(self.rows.events(self, sorted(set(asked))))
        return at_hand

    def _all_wait(self, records: RowRanges) -> bool:
        """Return True if nobody has taken one of these rows away, or settled it, since they were read."""
        if len(records.parts) > MOST_COUNT_LOOKS:
            return len(self.ask("still_waiting", ids=id_list([*records]))) == len(records)
        waiting = 0
        for first, last in records.parts:
            waiting += int(self.ask("count_between", first=first, last=last)[0][0])
        return waiting == len(records)

    def objects(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """Map these rows to their objects, as far as they still wait."""
        return self.rows.objects(self, sorted(set(numbers)))

    def going_on(self, name: str, taken: Take, now: int) -> GoingOn | None:
        """Find open transactions of a take: their other rows are ahead of the output, or wait for
        it.
        """
        ends = self.rows.reader.ends_behind(self.connection, taken.events)
        if ends is None:
            return None
        known = self.memory.taken
        if ends and self.memory.any_parked:
            known |= self.numbers("parked_among", ids=id_list([*ends.values()]))
        ahead = self.memory.ahead(self.memory.output(name)).values()
        # That rows wait in the log is not enough: they may wait for other outputs only. Rows of a
        # transaction are taken in their order, but for those that are set aside: so where the
        # output has passed the last one, no other is ahead of it.
        soon = set[int]()
        for transaction, end in ends.items():
            is_ahead = end not in known or any(end in batch.records for batch in ahead)
            if end not in taken.records and is_ahead:
                soon.add(transaction)
        waiting = list(taken.set_aside)
        if taken.others_wait and self.memory.any_parked:
            numbers = [event.position[0] for event in taken.events]
            marks = {event.transaction.mark for event in taken.events if event.transaction is not None}
            parked = self.ask(
                "parked_transactions",
                output=name,
                first=max(EVER, min(numbers) - NEAR_NUMBERS),
                last=min(LAST_NUMBER, max(numbers) + NEAR_NUMBERS),
                ids=id_list([row.record for row in taken.unparked]),
                transactions=id_list(sorted(marks)),
            )
            waiting += [(int(mark), None if due is None else int(due)) for mark, due in parked]
        # The rest of a transaction does not wait for a row that may go much later only.
        soon.update(mark for mark, due in waiting if due is not None and due <= now)
        every = soon.union(mark for mark, _ in waiting)
        return GoingOn(every=frozenset(every), soon=frozenset(soon))

    def list_planned(self, name: str) -> list[OnTheWay]:
        """List the documents perhaps on their way, in order.

        Those of a later plan go first: sharing an object with an earlier one, it has retried rows,
        as all others wait for that plan.
        """
        if name not in self.memory.planned:
            return []
        documents = [OnTheWay.read(row) for row in self.ask("planned_read", output=name)]
        # Memory keeps the entry while documents are there, also where all their rows have gone.
        if not documents:
            del self.memory.planned[name]
        return sorted(documents, key=attrgetter("plan"), reverse=True)

    def come_again(self, name: str) -> Mapping[str, int]:
        """Map each object with a row a receiver refused and retries to its first such row."""
        if not self.memory.any_parked:
            return {}
        first: dict[str, int] = {}
        nameless: list[int] = []
        for waiting, record in self.ask("parked_again", output=name):
            if waiting == EVERY_ROW:
                nameless.append(int(record))
            else:
                first[str(waiting)] = int(record)
        # Behind one of every object a row waits under no name of its own.
        for record, own in self.rows.objects(self, nameless).items():
            first[own] = min(record, first.get(own, record))
        return first

    def find_last_retry(self, name: str) -> int | None:
        """Return the time of the last retry; None without any."""
        if not self.memory.any_parked:
            return None
        if name not in self.memory.retried:
            due = self.ask("parked_retried", output=name)[0][0]
            self.memory.retried[name] = None if due is None else int(due)
        return self.memory.retried[name]

    def soonest(self, name: str) -> int | None:
        """Return when the next waiting row may go; None where none has a time."""
        if not self.memory.any_parked:
            return None
        due = self.ask("parked_soonest", output=name)[0][0]
        return None if due is None else int(due)


def _first_changes(
    rows: Sequence[Parked], continuing: Collection[int], *, limit: int, beyond: int, most: int
) -> list[Parked]:
    """Choose the changes of about so many rows; of an object none behind one left out.

    The first change of an object may have any number, the others are below `beyond`; none begins
    behind the first `most` rows.
    """
    room = limit
    known: set[str] = set()
    left: set[str] = set()
    going: list[Parked] = []
    for index, row in enumerate(rows):
        is_known = row.object in known
        may_begin = room > 0 and index < most and not (is_known and row.record >= beyond)
        if not may_begin and not (is_known and row.record in continuing):
            left.add(row.object)
        if row.object not in left:
            known.add(row.object)
            going.append(row)
            # What was left of transactions takes nobody's room: alone it would come again and again.
            room -= row.reason != Reason.GOES_ON.value
    return going
