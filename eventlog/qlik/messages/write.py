"""The messages format: changes in, documents of messages out, numbered in one sequence.

And containers of Avro.

A container is put together here and not by fastavro, because the values are Avro already: their
changeSequence was put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import md5
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, CutTransaction, Op, Position, Refusal
from eventlog.core.schema import Catalog
from eventlog.core.seams import FormerNames, OnValue, Writer
from eventlog.core.who import who_headers
from eventlog.on_value import refuse, write_otherwise
from eventlog.qlik.change_seq import Sequencer, Stamps
from eventlog.qlik.messages.avrovalues import number, prefix_size
from eventlog.qlik.messages.document import Header, Message, MessagesDocument, lines
from eventlog.qlik.messages.render import Renderer, TableRenderer
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import MessageShape


class WrittenMessage(NamedTuple):
    """The message of a change without its changeSequence, which stands between `head` and `tail`.

    `stamp` are the 16 digits of the change's time. Without a `tail` the message is whole. With a
    `transaction` it is open: it is number `event_number` of its transaction's, and the last or not,
    where that is counted. `route` is its topic, if not that of its table.
    """

    event_id: str
    positions: tuple[Position, ...]
    stamp: str
    table: TableRenderer
    key: bytes | None
    head: bytes
    tail: bytes | None
    deleted: bool
    transaction: int | None = None
    event_number: int | None = None
    last: bool | None = None
    route: str = ""
    headers: tuple[Header, ...] = ()

    def counted(self, number: int, last: bool) -> WrittenMessage:
        # Not by `_replace`, which takes several times as long.
        return tuple.__new__(WrittenMessage, (*self[:9], number, last, *self[11:]))

    def close(self) -> tuple[bytes, bytes | None]:
        """Return the parts before and after the changeSequence, with the counters of its transaction."""
        if self.transaction is None or self.tail is None:
            return self.head, self.tail
        return self.table.close(self.head, self.tail, self.event_number, self.last)


class MessageFormat(Struct, frozen=True, kw_only=True):
    """Writes documents of messages.

    With `body` a document is text too, one line a message, for files and streams.

    Only sinks that take messages know what they got of a table before; a body has it in every
    document anew.
    """

    settings: MessageSettings = MessageSettings()
    body: bool = True
    free: bool = False
    """Topics are none of Kafka's, and may have any name."""
    headed: bool = False
    """Headers of messages say who is behind a change."""

    suffix: ClassVar[str] = ".jsonl"
    former_names: ClassVar[FormerNames] = FormerNames.OWN
    counts: ClassVar[bool] = True
    """Every message says which one of its transaction's it is."""

    @property
    def on_value(self) -> OnValue:
        """Return what becomes of a value that cannot be written."""
        return self.settings.on_value

    def writer(self, catalog: Catalog | None = None) -> Writer:
        """Writes the message of each change up to its changeSequence and after it.

        What is refused takes no number.
        """
        tables = Renderer(self.settings, catalog, free=self.free)
        stamp_of = Stamps()
        # A quarter of the time that a call of the class takes, for every change.
        new = tuple.__new__
        headed = self.headed

        def write(changes: Iterable[Change]) -> Iterator[WrittenMessage | Refusal]:
            for change in changes:
                positions = change.positions
                alone = len(positions) == 1
                if alone and len(positions[0]) == 1:
                    event_id = str(positions[0][0])
                else:
                    event_id = change.event_id
                table = None
                try:
                    table = tables.of_table(change.row)
                    pieces = table.pieces(change, event_id if alone else None)
                except ExpressionError as error:
                    if table is None:
                        refusal, pieces = refuse(change, error), None
                    else:
                        if change.created:  # also one of which no value can be written is there
                            change = replace(change, op=Op.ADD)  # noqa: PLW2901  # as it is told
                        refusal, pieces = write_otherwise(
                            change, error, table.sayer, self.settings.on_value, table.pieces
                        )
                    yield refusal
                if pieces is not None and table is not None:
                    key, head, tail = pieces
                    stamp, deleted = stamp_of(change), change.op is Op.DELETE
                    mark = None
                    if change.transaction is not None and tail is not None:
                        mark = change.transaction.mark
                    cells = (
                        event_id,
                        positions,
                        stamp,
                        table,
                        key,
                        head,
                        tail,
                        deleted,
                        mark,
                        None,
                        None,
                        change.route,
                        who_headers(change.who) if headed else (),
                    )
                    yield new(WrittenMessage, cells)

        return write

    def bind(
        self, written: Iterable[WrittenMessage], after: str = "", whole: bool = False
    ) -> Iterator[MessagesDocument]:
        """Join messages to documents in order, with their changeSequence."""
        number = Sequencer(after).step
        size, tombstones = self.settings.batch_size, self.settings.tombstones
        messages: list[Message] = []
        covers: dict[str, tuple[Position, ...]] = {}
        parts: dict[int, tuple[int, int, bool | None]] = {}
        last = ""
        for message in written:
            event_id, positions, stamp, table, key, head, tail, deleted, transaction, counter, ends, route, headers = (
                message
            )
            last = number(stamp)
            if transaction is not None:
                head, tail = message.close()
                if counter is not None:
                    # How many of the transaction's came before this document, how many with it, and
                    # whether it ends.
                    before, _, _ = parts.get(transaction, (counter - 1, 0, None))
                    parts[transaction] = (before, counter, ends)
            # A row of a full load has no changeSequence, but its document's id is one.
            value = head if tail is None else b"".join((head, last.encode(), tail))
            messages.append(table.message(key, value, positions, route, headers))
            covers[event_id] = positions
            # After the deletion itself, whose positions it shares: both are sent, or neither.
            if tombstones and deleted and key is not None:
                messages.append(replace(messages[-1], value=None, value_schema=None))
            if len(messages) >= size and not whole:
                yield self._document(last, messages, covers, parts)
                messages, covers, parts = [], {}, {}
        if messages:
            yield self._document(last, messages, covers, parts)

    def heartbeat(self) -> None:
        """Return None: there is none."""

    def _document(
        self,
        last: str,
        messages: list[Message],
        covers: dict[str, tuple[Position, ...]],
        parts: dict[int, tuple[int, int, bool | None]],
    ) -> MessagesDocument:
        body = b""
        if self.body:
            body = lines(with_metadata(messages, last))
        cut = []
        for transaction, (before, after, ends) in parts.items():
            if before or not ends:  # another document has a part of it
                cut.append(CutTransaction(transaction, before, after, bool(ends)))
        return MessagesDocument(id=last, body=body, covers=covers, messages=tuple(messages), cut=tuple(cut))


def with_metadata(messages: Iterable[Message], last: str) -> Iterator[Message]:
    """Yield the messages, each table's metadata before its first one."""
    known: set[str] = set()
    for message in messages:
        structure = message.structure
        if structure is not None and structure.schema_id not in known:
            known.add(structure.schema_id)
            # Their time is the document's, for formats have no clock.
            value = structure.message(structure.version, sequence_time(last))
            yield Message(topic=structure.topic, key=structure.key, value=value)
        yield message


def sequence_time(sequence: str) -> str:
    """Read the time in a changeSequence, as messages write times."""
    # The digits after the year stand in pairs: month, day, hour, minute, second, hundredth.
    year, rest = sequence[:4], [sequence[start : start + 2] for start in range(4, 16, 2)]
    return "{}-{}-{}T{}:{}:{}.{}0".format(year, *rest)


CONTAINER: Final = b"Obj\x01"


def container_schema(shape: MessageShape) -> str:
    """Return the schema of a table's messages in a container: envelopes where there are some."""
    if shape.settings.mode in ("envelope", "metadata"):
        return text_of(ENVELOPE)
    return shape.data_text


def container_head(schema: str) -> bytes:
    facts = {"avro.schema": schema.encode(), "avro.codec": b"null"}
    entries = b"".join([prefix_size(name.encode()) + prefix_size(value) for name, value in facts.items()])
    # A map of Avro is a block of so many entries, and a block of none ends it.
    return b"".join((CONTAINER, number(len(facts)), entries, number(0), sync_of(schema)))


def container_block(values: Sequence[bytes], schema: str) -> bytes:
    """Write a block of values; some hundred kilobytes make a good one."""
    if not values:
        return b""
    return b"".join((number(len(values)), prefix_size(b"".join(values)), sync_of(schema)))


def sync_of(schema: str) -> bytes:
    # Any 16 bytes do; those of the schema's hash make equal files of equal messages. The line break
    # at their end lets Spark's writer of text write such files.
    return md5(schema.encode(), usedforsecurity=False).digest()[:-1] + b"\n"
