"""Formats of events as an output has them, and a table with every type of column."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from eventlog.core.model import ABSENT, Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sinks.events.cloudevents import CloudEventsTable
from eventlog.sinks.events.debezium import DebeziumTable
from eventlog.sinks.events.jsonl import JsonLinesTable
from eventlog.sinks.events.settings import CloudEventsSettings, DebeziumSettings, JsonLinesSettings
from eventlog.sinks.events.transactions import TransactionTopic
from eventlog.sinks.events.write import EventFormat

KINDS = {
    "jsonl": (JsonLinesTable, JsonLinesSettings),
    "debezium": (DebeziumTable, DebeziumSettings),
    "cloudevents": (CloudEventsTable, CloudEventsSettings),
}

CELLS: dict[str, tuple[str, str]] = {
    "id": ("bigint", "9007199254740993"),
    "region": ("varchar(10)", "a,b"),
    "flag": ("boolean", "t"),
    "small": ("smallint", "-7"),
    "price": ("numeric(10,2)", "-1234.5"),
    "any": ("numeric", "12.3456"),
    "huge": ("bigint unsigned", "18446744073709551615"),
    "single": ("real", "1.5"),
    "day": ("date", "2026-02-03"),
    "clock": ("time", "23:59:59.25"),
    "made": ("timestamp", "2026-02-03 04:05:06.789012"),
    "short": ("timestamp(3)", "2026-02-03 04:05:06.789"),
    "seen": ("timestamp with time zone", "2026-02-03 04:05:06+02:00"),
    "photo": ("bytea", "AP8="),
    "info": ("jsonb", '{"a": 1}'),
    "tag": ("uuid", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
    "note": ("text", "Zoë “<&>”\n\U0001f600"),
}
"""The columns of a table, by name: the type, and a value as a log has it."""

SHOP = Catalog(
    [
        Table(
            name="goods",
            schema="shop",
            columns=tuple(
                [
                    Column(
                        name=name, type=kind, key=("id", "region").index(name) + 1 if name in ("id", "region") else None
                    )
                    for name, (kind, _) in CELLS.items()
                ]
            ),
        )
    ]
)
ROW = RowId("shop", "goods", 'id=9007199254740993+region="a,b"')


def event_format(
    kind: str, *, batch: int = 500, array: bool = False, topics: bool = False, **settings: Any
) -> EventFormat:
    """Make a format with these settings, for a sink of lines, arrays or messages."""
    table, kind_of_settings = KINDS[kind]
    made: Any = kind_of_settings(**settings)
    return EventFormat(
        table=partial(table, settings=made),
        batch_size=batch,
        on_value=made.on_value,
        array=array,
        topic=made.topic_template() if topics else None,
        topic_values={"server": getattr(made, "server", "")},
        transactions=TransactionTopic(made) if getattr(made, "transaction_topic", "") else None,
    )


def shop_changes() -> list[Change]:
    """Return changes of a row of every type: insert, update, full load, delete; then a truncate."""
    whole = tuple([Edit(column=name, new=text) for name, (_, text) in CELLS.items() if name not in ("id", "region")])
    part = (Edit(column="price", old="-1234.5", new=None), Edit(column="note", new="new"))
    gone = tuple([Edit(column=edit.column, old=edit.new, new=ABSENT) for edit in whole[:3]])
    transaction = Transaction(id=771, time=dt.datetime(2026, 2, 3, 4, 5, 7, 123456))
    return [
        Change(row=ROW, op=Op.ADD, edits=whole, positions=((1,),), time="2026-02-03 04:05:06", transaction=transaction),
        Change(row=ROW, op=Op.MODIFY, edits=part, positions=((2,), (3,)), time="2026-02-03 04:05:08.5"),
        Change(row=ROW, op=Op.ADD, edits=whole[:2], positions=((4,),), refresh=True),
        Change(row=ROW, op=Op.DELETE, edits=gone, positions=((5,),), time="2026-02-03 04:05:09"),
        Change(row=RowId("shop", "goods", ""), op=Op.TRUNCATE, positions=((6,),), time="2026-02-03 04:05:10"),
    ]
