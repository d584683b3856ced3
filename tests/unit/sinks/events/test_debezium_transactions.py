"""Transactions as Debezium tells them: the block of each event, BEGIN and END, their counts."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.counting import TransactionCounts, count_written, counts_after
from eventlog.core.model import Change, Edit, Op, Refusal, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.messages.document import Message, MessagesDocument
from eventlog.sinks.events.write import EventFormat
from tests.support.connect import read, told_rightly
from tests.support.events import event_format
from tests.support.shares import met, shares
from tests.unit.sinks.events.test_debezium_avro import alike

GOLDEN = Path(__file__).parents[3] / "golden" / "events" / "debezium-transactions.jsonl"
TOPIC = "srv.transaction"
TABLES = ("item", "pair", "log")
COLUMNS = (Column(name="id", type="integer", key=1), Column(name="v", type="text"))
OURS = Catalog([Table(name=name, schema="s", columns=COLUMNS) for name in TABLES])
COMMITTED = dt.datetime(2026, 2, 3, 4, 5, 6)


def change(number: int, table: str, transaction: int | None, end: int | None = None) -> Change:
    """A change of a row of a table in a transaction, if in one."""
    of = None if transaction is None else Transaction(id=transaction, time=COMMITTED, end=end)
    edits = (Edit(column="v", new=f"v{number}"),)
    row = RowId("s", table, f"id={number}")
    return Change(row=row, op=Op.ADD, edits=edits, positions=((number,),), transaction=of)


def form(batch: int = 500, **settings: Any) -> EventFormat:
    how = {"server": "srv", "topic": "srv.{table}", "transaction_topic": TOPIC}
    return event_format("debezium", topics=True, batch=batch, **how | settings)


def bound(
    made: EventFormat,
    changes: Sequence[Change],
    told: TransactionCounts | None = None,
    going_on: Sequence[int] = (),
) -> list[MessagesDocument]:
    """The documents of changes that are counted."""
    written = [one for one in made.writer(OURS)(changes) if not isinstance(one, Refusal)]
    numbered, _ = count_written(written, told or {}, going_on)
    return [one for one in made.bind(numbered) if isinstance(one, MessagesDocument)]


def messages(documents: Sequence[MessagesDocument]) -> list[Message]:
    return [message for document in documents for message in document.messages]


MIXED = [
    change(1, "item", 7),
    change(2, "pair", 7),
    change(3, "item", 8, end=300),
    change(4, "item", 7),
    change(5, "log", None),
    change(6, "pair", 8, end=300),
]


def test_transactions_are_told_as_they_were_read_and_agreed_on() -> None:
    """`EVENTLOG_GOLDEN=write` writes the file anew, to be read before it is committed."""
    lines = []
    for one in messages(bound(form(), MIXED)):
        said = read(one)
        value = {"transaction": said["transaction"]} if "transaction" in said else said
        lines.append({"topic": one.topic, "key": json.loads(one.key or b""), "value": value})
    told = "".join(f"{json.dumps(line)}\n" for line in lines)
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        GOLDEN.write_text(told)
    assert told == GOLDEN.read_text()


def test_a_transaction_whose_tables_are_not_known_has_no_end() -> None:
    """An output that counted without tables, as in another format, and goes on with this one."""
    told = messages(bound(form(), [change(9, "item", 7)], told={7: 3}))
    assert [one.topic for one in told] == ["srv.item"]
    block = {"id": "7", "total_order": 4, "data_collection_order": 1}
    assert read(told[0])["transaction"] == block


HISTORIES = st.lists(
    st.tuples(st.sampled_from(TABLES), st.sampled_from([1, 2, 3, None])),
    min_size=1,
    max_size=30,
)


@st.composite
def batches(draw: st.DrawFn) -> list[list[Change]]:
    """Changes of several transactions and tables, in some batches."""
    rows = draw(HISTORIES)
    changes = [change(number, *row) for number, row in enumerate(rows, 1)]
    places = draw(st.lists(st.integers(0, len(rows)), max_size=3))
    ends = sorted({0, len(rows), *places})
    return [changes[begin:end] for begin, end in pairwise(ends)]


def going_on(batches: Sequence[Sequence[Change]], number: int) -> list[int]:
    """The transactions of which more comes behind a batch."""
    later = [one for batch in batches[number + 1 :] for one in batch]
    return [one.transaction.mark for one in later if one.transaction is not None]


@shares(several=0.2, cut=0.2)
@given(batches(), st.integers(1, 5), st.sampled_from(["json", "avro"]))
def test_each_transaction_is_counted_whatever_cuts_it(
    history: list[list[Change]],
    batch: int,
    encoding: str,
) -> None:
    """Numbers from 1 on for each transaction and table, from a BEGIN to an END with the counts.

    A document that is counted by itself, from its cut transactions, has the same messages.
    """
    made, told, sent, cut = form(batch, encoding=encoding), dict[int, Any](), list[Message](), 0
    for number, changes in enumerate(history):
        later = going_on(history, number)
        for document in bound(made, changes, told, later):
            covered = {place for places in document.covers.values() for place in places}
            mine = [one for one in changes if one.positions[0] in covered]
            before = {part.id: part.before for part in document.cut}
            unended = [part.id for part in document.cut if not part.ends]
            again = bound(form(500, encoding=encoding), mine, before, unended)
            assert messages(again) == list(document.messages)
            sent += document.messages
            cut += len(document.cut)
            told = counts_after(told, document.cut)
    assert told == {}
    several = told_rightly(sent, TOPIC)
    met(several=several > 1, cut=cut)


def test_a_table_whose_topic_is_that_of_transactions_is_refused() -> None:
    [refusal] = form(topic="srv.{table}", transaction_topic="srv.item").writer(OURS)(MIXED[:1])
    assert isinstance(refusal, Refusal)
    assert "its topic would be srv.item, which is that of transactions" in refusal.note


def test_schemas_describe_what_is_said_of_transactions() -> None:
    """In JSON and in Avro, where a reader that is not ours finds the same."""
    in_json = messages(bound(form(schemas=True), MIXED))
    assert alike(in_json, messages(bound(form(encoding="avro"), MIXED))) > len(MIXED)
