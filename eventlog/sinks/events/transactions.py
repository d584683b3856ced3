"""Transactions as Debezium has them: a block in each event, and messages of their ends.

A transaction of which nobody knows how much is sent has neither. A BEGIN stands before its first
event, an END behind its last, in the same document: so they come with it, and again only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.counting import UNKNOWN_TABLE
from eventlog.core.model import Change
from eventlog.qlik.messages.document import Message
from eventlog.sinks.events.connect_avro import Schema
from eventlog.sinks.events.debezium import Coder, block_schema, simple, struct, times
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.events.write import TransactionPart, WrittenEvent, schema_ref

_METADATA: Final = "io.debezium.connector.common.TransactionMetadata"
_ID: Final = simple("string", "id", optional=False)
_KEY: Final = struct([_ID], f"{_METADATA}Key", optional=False, version=1)
_COUNT: Final[Schema] = struct(
    [
        simple("string", "data_collection", optional=False),
        simple("int64", "event_count", optional=False),
    ],
    "event.collection",
    optional=True,
    version=1,
)
_VALUE: Final = struct(
    [
        simple("string", "status", optional=False),
        _ID,
        simple("int64", "event_count", optional=True),
        {"type": "array", "items": _COUNT, "optional": True, "field": "data_collections"},
        simple("int64", "ts_ms", optional=False),
    ],
    f"{_METADATA}Value",
    optional=False,
    version=1,
)


class TransactionTopic:
    """Writes the blocks of events, and the messages of `transaction_topic`."""

    def __init__(self, settings: DebeziumSettings) -> None:
        self.topic = settings.transaction_topic
        self._key, self._value = Coder(_KEY, settings), Coder(_VALUE, settings)
        # The block is a part of a value, so its schema is in that value's.
        self._block = Coder(block_schema(), replace(settings, schemas=False))

    def part(self, change: Change) -> TransactionPart | None:
        """Describe the transaction of a change; None if it has none."""
        transaction = change.transaction
        if transaction is None:
            return None
        id_, end = str(transaction.id), transaction.end
        return TransactionPart(
            mark=transaction.mark,
            # A number that is used again is told apart by its end.
            id=id_ if end is None else f"{id_}:{end}",
            time=times(change)["ts_ms"] or 0,
            table=".".join(filter(None, (change.row.schema, change.row.table))),
        )

    def messages(self, event: WrittenEvent) -> Iterator[Message]:
        """Yield the messages of a counted event."""
        part, block_at = event.part, event.event.block_at
        assert part is not None
        assert part.tables is not None
        assert block_at is not None
        total = sum(part.tables.values())
        # The first that is sent of it, whatever batch that is in.
        if total == 1:
            yield self._mark(part, "BEGIN", None, None)
        of_table = part.tables[part.table]
        block = {"id": part.id, "total_order": total, "data_collection_order": of_table}
        content, nothing = event.event.value, len(self._block.write(None))
        # The value was written with nothing in the place of the block, which takes that place now.
        begin, end = content[:block_at], content[block_at + nothing :]
        value = b"".join((begin, self._block.write(block), end))
        yield from replace(event, event=replace(event.event, value=value)).messages()
        # Without the counts of each table, from before they were kept, there would be a wrong END.
        if part.last and UNKNOWN_TABLE not in part.tables:
            yield self._mark(part, "END", total, part.tables)

    def _mark(
        self,
        part: TransactionPart,
        status: str,
        total: int | None,
        tables: Mapping[str, int] | None,
    ) -> Message:
        counts: list[dict[str, Any]] | None = None
        if tables is not None:
            ordered = sorted(tables.items())
            counts = [{"data_collection": name, "event_count": count} for name, count in ordered]
        value = {
            "status": status,
            "id": part.id,
            "event_count": total,
            "data_collections": counts,
            "ts_ms": part.time,
        }
        return Message(
            topic=self.topic,
            key=self._key.write({"id": part.id}),
            value=self._value.write(value),
            key_schema=schema_ref(f"{self.topic}-key", self._key.schema),
            value_schema=schema_ref(f"{self.topic}-value", self._value.schema),
        )
