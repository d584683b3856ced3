"""Changes for tests of messages: one table of the reference, and what happens to its rows."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import avro.io
import avro.schema
import fastavro
import msgspec

from eventlog.core.counting import count_written
from eventlog.core.model import Change, Edit, Op, Refusal, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import Message, MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat, WrittenMessage

Count = Callable[[Iterable[WrittenMessage]], Iterable[WrittenMessage]]

ORDERS = Table(
    schema="shop",
    name="orders",
    columns=(
        Column(name="order_id", type="bigint", key=1, nullable=False),
        Column(name="customer", type="varchar(40)", nullable=False),
        Column(name="amount", type="numeric(10,2)"),
        Column(name="placed_on", type="date"),
        Column(name="note", type="varchar(200)"),
    ),
)
CATALOG = Catalog([ORDERS])
COMMITTED = dt.datetime(2024, 5, 6, 7, 8, 9, 120_000)
HAPPENED = dt.datetime(2024, 5, 6, 7, 8, 8, 950_000)


def orders(*extra: Column) -> Catalog:
    """Return the table with more columns at its end."""
    return Catalog([Table(schema="shop", name="orders", columns=(*ORDERS.columns, *extra))])


def inserted(number: int, **values: Any) -> Change:
    """Make a change inserting an order."""
    return change(number, Op.ADD, tuple([Edit(column=name, new=value) for name, value in values.items()]))


def updated(number: int, **values: tuple[Any, Any]) -> Change:
    """Make a change of an order's columns, each from the first to the second value."""
    edits = tuple([Edit(column=name, old=old, new=new) for name, (old, new) in values.items()])
    return change(number, Op.MODIFY, edits)


def change(number: int, op: Op, edits: tuple[Edit, ...] = (), **facts: Any) -> Change:
    """Make a whole image of an order's change."""
    known: dict[str, Any] = {
        "row": RowId("shop", "orders", f"order_id={number}"),
        "positions": ((number,),),
        "time": HAPPENED,
        "whole": True,
        "transaction": Transaction(id=30064772072, time=COMMITTED),
        "stream": f"log:{number}",
    }
    return Change(op=op, edits=edits, **{**known, **facts})


class CountedMessages(MessageFormat, frozen=True, kw_only=True):
    """Messages whose changes are counted before they are bound, as a publisher does it."""

    count: Count = lambda written: count_written([*written], {}, ())[0]

    def bind(
        self, written: Iterable[WrittenMessage], after: str = "", whole: bool = False
    ) -> Iterator[MessagesDocument]:
        return super().bind(self.count(written), after, whole)


def encoded(
    changes: Iterable[Change], catalog: Catalog = CATALOG, after: str = "", **settings: Any
) -> list[MessagesDocument | Refusal]:
    """Encode the changes."""
    form = CountedMessages(settings=MessageSettings(**settings), body=False, count=each_alone)
    made = encode(form, changes, catalog, after)
    return [one for one in made if isinstance(one, MessagesDocument | Refusal)]


def each_alone(written: Iterable[WrittenMessage]) -> list[WrittenMessage]:
    """Count written messages as if each change were a transaction."""
    return [one.counted(1, True) for one in written]


def documents(
    changes: Iterable[Change], catalog: Catalog = CATALOG, after: str = "", **settings: Any
) -> list[MessagesDocument]:
    """Encode changes to documents, none refused."""
    found = encoded(changes, catalog, after, **settings)
    return [one for one in found if isinstance(one, MessagesDocument)]


def messages(changes: Iterable[Change], catalog: Catalog = CATALOG, **settings: Any) -> list[Message]:
    """Encode changes to messages, none refused."""
    return [message for document in documents(changes, catalog, **settings) for message in document.messages]


def refusals(changes: Iterable[Change], catalog: Catalog = CATALOG, **settings: Any) -> list[str]:
    """Return the refusals' notes."""
    return [one.note for one in encoded(changes, catalog, **settings) if isinstance(one, Refusal)]


def read_by_both(schema: str, content: bytes) -> dict[str, Any]:
    """Read by fastavro and by Avro's own library; check that both agree, to the last byte."""
    parsed = fastavro.parse_schema(msgspec.json.decode(schema))
    first: Any = fastavro.schemaless_reader(io.BytesIO(content), parsed, None)
    stream = io.BytesIO(content)
    second: Any = avro.io.DatumReader(avro.schema.parse(schema)).read(avro.io.BinaryDecoder(stream))
    assert first == second
    assert stream.tell() == len(content)
    found: dict[str, Any] = first
    return found
