"""What is counted of transactions: 1 to n and one last. Of logs tests/publisher says so, here are the parts of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from eventlog.core.counting import MOST_UNFINISHED_NUMBERS, count_written, counts_after, find_left_over
from eventlog.core.errors import SinkError
from eventlog.core.model import Change, CutTransaction, Document, Op, Outcome, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Resolved, SinkCapabilities
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from tests.support.memory import UnaskedSink

COLUMNS = (
    Column(name="id", type="integer", key=1),
    Column(name="a", type="integer"),
    Column(name="b", type="integer"),
)
OURS = Catalog([Table(name="t", columns=COLUMNS)])
SENDS = MessageFormat(settings=MessageSettings(mode="bare", on_value="refuse-object", batch_size=2))


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


def runs(places: Sequence[tuple[int | None, bool | None]]) -> int:
    """How often a transaction was told, each time from 1 to n with one last."""
    expected, found = 1, 0
    for place, last in places:
        assert place == expected
        assert last is not None
        expected, found = (1, found + 1) if last else (expected + 1, found)
    assert expected == 1, f"no end after {places}"
    return found


def change(op: Op, table: str, key: str, number: int) -> Change:
    return Change(row=RowId(None, table, key), op=op, positions=((number,),))


def test_the_emptying_of_a_table_does_not_overtake_its_rows_nor_they_it() -> None:
    class Of(tuple[int, ...]):
        __slots__ = ()
        transaction = 7

        @property
        def positions(self) -> tuple[tuple[int, ...], ...]:
            return (tuple(self),)

        def counted(self, number: int, last: bool) -> Of:
            return self

    changes = [
        change(Op.ADD, "t", "id=1", 1),
        change(Op.TRUNCATE, "u", "", 2),
        change(Op.TRUNCATE, "t", "", 3),
        change(Op.ADD, "t", "id=2", 4),
        change(Op.ADD, "u", "id=2", 5),
    ]
    assert find_left_over(changes, [[Of((1,))]], {7}) == [changes[0], changes[2], changes[3]]
    assert find_left_over(changes, [[Of((1,))]], {8}) == []


def test_so_much_is_remembered_of_unfinished_transactions() -> None:
    told = dict.fromkeys(range(MOST_UNFINISHED_NUMBERS + 5), 1)
    _, counts = count_written([], told, ())
    assert list(counts) == list(range(5, MOST_UNFINISHED_NUMBERS + 5))
    cut = [CutTransaction(5, 1, 3, False), CutTransaction(6, 1, 2, True)]
    assert counts_after({5: 1, 6: 1, 7: 4}, cut) == {7: 4, 5: 3}
