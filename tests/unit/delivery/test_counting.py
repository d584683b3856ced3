"""What is counted of transactions: 1 to n and one last, whatever is refused, held, cut, requeued or repeated."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.counting import MOST_UNFINISHED_NUMBERS, counted, left_over, told_after
from eventlog.core.errors import SinkError
from eventlog.core.model import Change, CutTransaction, Document, Event, Op, Outcome, RowId, Status, Transaction
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Batch, Resolved, SinkCapabilities, SourceCapabilities
from eventlog.delivery.pipeline import MOST_LEFT_EVENTS, Output, Pipeline, Work
from eventlog.delivery.read_ahead import ReadAhead
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sources.notes import COUNTED, Decided, read_counted, split_counted
from tests.support.memory import MemorySink, OneEach, UnaskedSink
from tests.support.shares import met, shares

COLUMNS = (
    Column(name="id", type="integer", key=1),
    Column(name="a", type="integer"),
    Column(name="b", type="integer"),
)
OURS = Catalog([Table(name="t", columns=COLUMNS)])
TOLD, REFUSED, NOTHING, INVALID, DELETED = "told", "refused", "nothing", "invalid", "deleted"
SENDS = MessageFormat(settings=MessageSettings(mode="bare", on_value="refuse-object", batch_size=2))


def row(number: int, transaction: int | None, key: int, what: str = TOLD, column: str = "a") -> Event:
    kind, old, new = {
        TOLD: (2, "1", str(number)),
        REFUSED: (2, "1", "no number"),
        NOTHING: (2, None, None),
        INVALID: (9, None, None),
        DELETED: (4, None, None),
    }[what]
    return Event(
        position=(number,),
        kind=kind,
        table="t",
        key=f"id={key}",
        column=None if what == DELETED else column,
        old=old,
        new=new,
        time="2026-01-01 00:00:00",
        transaction=None if transaction is None else Transaction(id=transaction),
    )


class MemoryLog:
    """A log as LogSource reads one: what waits by its number, and behind it the transactions that go on."""

    def __init__(self, rows: Sequence[Event]) -> None:
        self.rows = {event.position[0]: event for event in rows}
        self.waiting = set(self.rows)
        self.held: set[int] = set()
        self.notes: dict[str, str] = {}
        self.in_hand: list[int] = []
        self.left = 0

    @property
    def capabilities(self) -> SourceCapabilities:
        return SourceCapabilities(read_ahead=self.read_ahead)

    def free(self) -> list[Event]:
        held = [self.rows[number] for number in sorted(self.held & self.waiting)]
        first = {event.key: event.position for event in reversed(held)}
        free = [self.rows[number] for number in sorted(self.waiting)]
        return [event for event in free if event.position < first.get(event.key, (10**9,))]

    def read(self, limit: int) -> Batch:
        free = self.free()
        again = [event for event in free if event.position[0] in self.in_hand]
        events = again or free[: limit + self.left]
        self.in_hand = [event.position[0] for event in events]
        if not events:
            return Batch(events=())
        notes, told = split_counted(self.notes)
        cut = bool(again) or len(events) < len(free)
        going_on = self.going_on(events, events) if cut else frozenset[int]()
        return Batch(
            events=events,
            repeated=bool(again),
            notes=notes,
            counted=told,
            going_on=going_on,
        )

    def read_ahead(self, limit: int, handed_out: Sequence[Batch]) -> Batch:
        before = [event for batch in handed_out for event in batch.rows]
        known, last = {event.position for event in before}, max(event.position for event in before)
        others = [event for event in self.free() if event.position not in known]
        if any(event.position < last for event in others) or not others:
            return Batch(events=())
        events = others[:limit]
        going_on = self.going_on(events, [*before, *events]) if len(events) < len(others) else frozenset[int]()
        return Batch(events=events, going_on=going_on, more=len(events) < len(others))

    def going_on(self, events: Sequence[Event], of: Sequence[Event]) -> frozenset[int]:
        last = max(event.position[0] for event in events)
        behind = [self.rows[number].transaction for number in self.waiting if number > last]
        return frozenset(one.transaction.id for one in of if one.transaction is not None and one.transaction in behind)

    def note(self, notes: Mapping[str, str]) -> None:
        self.notes |= notes

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
        following: Batch | None = None,
    ) -> None:
        gone = {one.position[0] for one in outcomes if one.status is not Status.NEW}
        self.waiting = self.waiting - gone  # another thread may look through the former set meanwhile
        self.left = sum(one.status is Status.NEW for one in outcomes)
        self.notes = dict(notes or {})
        self.in_hand = [event.position[0] for event in following.events] if following is not None else []


class Topic(UnaskedSink):
    """Takes each plan once, and fails when it is told to: before a plan is there, or after."""

    def __init__(self) -> None:
        self.plans: dict[str, Sequence[Document]] = {}
        self.fails: str | None = None

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(resolves=True)

    def resolve(self, plan: str) -> Resolved:
        return Resolved(documents=None if plan in self.plans else frozenset())

    def last(self) -> str:
        return max([one.id for documents in self.plans.values() for one in documents], default="")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        fails, self.fails = self.fails, None
        if fails == "before":
            raise SinkError("It is away.")
        self.plans.setdefault(plan, documents)
        if fails == "after":
            raise SinkError("It went away.")
        return ()

    def told(self) -> dict[int, list[tuple[int | None, bool | None]]]:
        """What each transaction's messages say of their place; numbers of documents go on from batch to batch."""
        numbers = [one.id for documents in self.plans.values() for one in documents]
        assert numbers == sorted(set(numbers))
        found = defaultdict(list)
        for documents in self.plans.values():
            for document in documents:
                assert isinstance(document, MessagesDocument)
                for message in document.messages:
                    said = json.loads(message.value or b"")["headers"]
                    place = said["transactionEventCounter"], said["transactionLastEvent"]
                    found[int(said["transactionId"] or "0", 16)].append(place)
        return dict(found)


def pipeline(log: MemoryLog, *topics: Topic, limit: int, coalesce: bool = False) -> Pipeline:
    outputs = [Output(format=SENDS, sink=topic, name=f"{number}") for number, topic in enumerate(topics)]
    options = Options(coalesce=coalesce)
    return Pipeline(source=log, reader=None, catalog=OURS, outputs=outputs, options=options, limit=limit)


def drain(log: MemoryLog, *topics: Topic, limit: int, ahead: bool = False) -> None:
    """Publishes all that can be published, whatever fails on the way."""
    going = ReadAhead(pipeline(log, *topics, limit=limit))
    for _ in range(10 * len(log.rows) + 10):
        try:
            report = going.go_round(ahead=ahead)
        except SinkError:
            going = ReadAhead(pipeline(log, *topics, limit=limit))
            continue
        if report.stale:  # the tables are looked at again because of a row that cannot be read
            going = ReadAhead(pipeline(log, *topics, limit=limit))
        elif not (report.settled or report.again):
            return
    raise AssertionError("it never ends")


def runs(places: Sequence[tuple[int | None, bool | None]]) -> int:
    """How often a transaction was told, each time from 1 to n with one last."""
    expected, found = 1, 0
    for place, last in places:
        assert place == expected
        assert last is not None
        expected, found = (1, found + 1) if last else (expected + 1, found)
    assert expected == 1, f"no end after {places}"
    return found


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Rows of transactions that write side by side, of a few objects."""
    whats = st.sampled_from([TOLD, TOLD, TOLD, REFUSED, NOTHING, INVALID, DELETED])
    facts = draw(
        st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5), whats, st.sampled_from("ab")), min_size=1, max_size=24)
    )
    return [row(number, *fact) for number, fact in enumerate(facts, 1)]


@shares(several=0.15, cut=0.1)
@given(histories(), st.integers(1, 6), st.booleans(), st.lists(st.sampled_from([None, "before", "after"]), max_size=4))
def test_each_transaction_has_1_to_n_and_one_last(
    rows: list[Event], limit: int, ahead: bool, failures: list[str | None]
) -> None:
    log, topics = MemoryLog(rows), (Topic(), Topic())
    for topic, failure in zip(topics, failures, strict=False):
        topic.fails = failure
    drain(log, *topics, limit=limit, ahead=ahead)
    assert not log.waiting
    whole = Topic()
    drain(MemoryLog(rows), whole, limit=1000)
    told_at_once = whole.told().values()
    met(several=len(told_at_once) > 1, cut=len(rows) > limit and any(len(places) > 1 for places in told_at_once))
    for topic in topics:
        told = {one: runs(places) for one, places in topic.told().items()}
        # Where a batch ends a change ends: a part of it may be told that would be refused with the rest.
        assert told == dict.fromkeys({*whole.told(), *told}, 1)
    assert COUNTED not in log.notes


@shares(told=0.4, held=0.3)
@given(histories(), st.integers(1, 6), st.booleans(), st.data())
def test_what_is_held_or_requeued_is_told_in_a_run_of_its_own_or_ends_the_one_that_is_open(
    rows: list[Event], limit: int, ahead: bool, data: st.DataObject
) -> None:
    log, topic = MemoryLog(rows), Topic()
    numbers = st.sets(st.sampled_from(sorted(log.rows)), max_size=4)
    log.held = data.draw(numbers, label="held before")
    going = pipeline(log, topic, limit=limit)
    for _ in range(data.draw(st.integers(0, 3), label="rounds")):
        going.go_round()
    log.held |= data.draw(numbers, label="held later")
    held = bool(log.held)
    topic.fails = data.draw(st.sampled_from([None, "before", "after"]))
    drain(log, topic, limit=limit, ahead=ahead)
    log.held = set()
    log.waiting |= data.draw(numbers, label="requeued")
    drain(log, topic, limit=limit, ahead=ahead)
    met(told=topic.told(), held=held)
    for places in topic.told().values():
        assert runs(places) >= 1


def test_a_change_that_was_left_and_then_held_still_ends_its_transaction() -> None:
    """It is not told together with a later row of its object, which would have it refused."""
    rows = [row(1, 7, 1), row(2, 8, 1), row(3, 8, 2), row(4, 7, 1), row(5, 7, 1), row(6, 8, 2, REFUSED, "b")]
    log, topic = MemoryLog(rows), Topic()
    going = pipeline(log, topic, limit=2)
    for _ in range(2):
        going.go_round()
    assert (topic.told(), log.waiting) == ({7: [(1, False)], 8: [(1, False)]}, {3, 4, 5, 6})
    log.held = {3}
    drain(log, topic, limit=2)
    log.held = set()
    drain(log, topic, limit=2)
    assert topic.told() == {7: [(1, False), (2, False), (3, True)], 8: [(1, False), (2, True)]}


def test_a_batch_that_cuts_a_transaction_leaves_its_last_change() -> None:
    log, topic = MemoryLog([row(1, 7, 1), row(2, 7, 2), row(3, 7, 3, REFUSED)]), Topic()
    report = pipeline(log, topic, limit=2).go_round()
    assert (report.left, report.again, topic.told()) == (1, True, {7: [(1, False)]})
    assert log.waiting == {2, 3}
    drain(log, topic, limit=2)
    assert topic.told() == {7: [(1, False), (2, True)]}


def test_later_changes_of_its_object_wait_with_it_and_their_transactions_go_on() -> None:
    log, topic = MemoryLog([row(1, 7, 1), row(2, 8, 2), row(3, 8, 1), row(4, 9, 3), row(5, 7, 4)]), Topic()
    pipeline(log, topic, limit=4).go_round()
    assert topic.told() == {8: [(1, False)], 9: [(1, True)]}
    drain(log, topic, limit=4)
    assert topic.told() == {7: [(1, False), (2, True)], 8: [(1, False), (2, True)], 9: [(1, True)]}


def test_nothing_is_counted_where_nobody_knows_where_transactions_end() -> None:
    class Guessing(MemoryLog):
        def going_on(self, events: Sequence[Event], of: Sequence[Event]) -> Any:
            return None

    log, topic = Guessing([row(1, 7, 1), row(2, 7, 2), row(3, None, 3)]), Topic()
    drain(log, topic, limit=2)
    assert topic.told() == {7: [(None, None), (None, None)], 0: [(None, None)]}


def test_no_more_is_left_than_memory_should_hold() -> None:
    rows = [row(number, number if number > 1 else 0, 1) for number in range(1, MOST_LEFT_EVENTS + 3)]
    rows.append(row(len(rows) + 1, 0, 2))
    log, topic = MemoryLog(rows), Topic()
    assert pipeline(log, topic, limit=len(rows) - 1).go_round().left == len(rows) - 1
    assert pipeline(log, topic, limit=10).go_round().left == 0, "they came once more, with one behind them"


def change(op: Op, table: str, key: str, number: int) -> Change:
    return Change(row=RowId(None, table, key), op=op, positions=((number,),))


def test_the_emptying_of_a_table_does_not_overtake_its_rows_nor_they_it() -> None:
    class Of(tuple[int, ...]):
        __slots__ = ()
        transaction = 7

        @property
        def positions(self) -> tuple[tuple[int, ...], ...]:
            return (tuple(self),)

        def counted(self, place: int, last: bool) -> Of:
            return self

    changes = [
        change(Op.ADD, "t", "id=1", 1),
        change(Op.TRUNCATE, "u", "", 2),
        change(Op.TRUNCATE, "t", "", 3),
        change(Op.ADD, "t", "id=2", 4),
        change(Op.ADD, "u", "id=2", 5),
    ]
    assert left_over(changes, [[Of((1,))]], {7}) == [changes[0], changes[2], changes[3]]
    assert left_over(changes, [[Of((1,))]], {8}) == []


def test_so_much_is_remembered_of_unfinished_transactions() -> None:
    told = dict.fromkeys(range(MOST_UNFINISHED_NUMBERS + 5), 1)
    _, counts = counted([], told, ())
    assert list(counts) == list(range(5, MOST_UNFINISHED_NUMBERS + 5))
    cut = [CutTransaction(5, 1, 3, False), CutTransaction(6, 1, 2, True)]
    assert told_after({5: 1, 6: 1, 7: 4}, cut) == {7: 4, 5: 3}


def test_what_is_left_takes_only_its_own_room_in_the_next_batch() -> None:
    """Were it that of the whole batch, it would grow with each, and soon nothing could be read ahead any more."""
    batch = Batch(events=[row(1, 7, 1), row(2, 7, 2), row(3, 7, 3)], weight=5_000)
    for number in range(4, 10):
        last = batch.rows[-1]
        work = Work(
            batch=batch, deliveries=[], outcomes=[], decided=Decided(), changes=3, left=(str(last.position[0]),)
        )
        batch = work.followed_by(Batch(events=[row(number, 7, number)], weight=1_000))
        assert [event.position for event in batch.events] == [last.position, (number,)]
        assert batch.weight == 1_002
        assert read_counted(batch.counted).left == (str(last.position[0]),)


def test_a_transaction_that_is_repeated_goes_on_from_where_it_was() -> None:
    log, topic = MemoryLog([row(number, 1, number) for number in range(1, 7)]), Topic()
    going = pipeline(log, topic, limit=2)
    going.go_round()
    topic.fails = "before"
    with pytest.raises(SinkError):
        going.go_round()
    drain(log, topic, limit=2)
    assert runs(topic.told()[1]) == 1


def test_an_output_that_does_not_count_gets_each_change_once_beside_one_that_does() -> None:
    log, topic, sink = MemoryLog([row(number, 1, number) for number in range(1, 6)]), Topic(), MemorySink([])
    going = pipeline(log, topic, limit=2)
    going = replace(going, outputs=[*going.outputs, Output(format=OneEach(), sink=sink, name="plain")])
    while log.waiting:
        going.go_round()
    assert list(sink.taken) == ["1", "2", "3", "4", "5"]
    assert sum(sink.sizes) == 5
    assert runs(topic.told()[1]) == 1


def test_what_a_target_has_no_room_for_is_in_no_transaction() -> None:
    class Narrow(Topic):
        @property
        def capabilities(self) -> SinkCapabilities:
            no_room = lambda one: "there is no room." if one.positions == ((2,),) else None  # noqa: E731  # said once
            return SinkCapabilities(resolves=True, refuses=no_room)

    log, topic = MemoryLog([row(number, 1, number) for number in range(1, 4)]), Narrow()
    report = pipeline(log, topic, limit=10).go_round()
    assert (report.errors, report.settled) == (1, 3)
    assert topic.told() == {1: [(1, False), (2, True)]}
