"""Formats of events: each change is written by itself, and bound into documents of lines, of an
array, or of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Protocol

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, ExpressionError, value_shown
from eventlog.core.model import Change, CutTransaction, Document, Position, Refusal, RowId
from eventlog.core.places import NoPlace, PlaceTemplate, place, topic_name
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import FormerNames, OnValue, Writer
from eventlog.core.who import who_headers
from eventlog.on_value import refuse, write_otherwise
from eventlog.qlik.messages.document import Header, Message, MessagesDocument
from eventlog.qlik.messages.shape import SchemaRef
from eventlog.sinks.events.rows import RowEvent, TableRows
from eventlog.xds.write import document_id, rising_id


class EventBytes(Struct, frozen=True, kw_only=True):
    """One event: the key and the value of a message and its headers.

    `document` is what files and requests are given, if that is something else. With `tombstone` a
    message without a value follows. `key_schema` and `value_schema` are in a registry. `block_at`
    is where nothing is said of the transaction, in a format that may say it later.
    """

    key: bytes | None
    value: bytes
    headers: tuple[Header, ...] = ()
    document: bytes | None = None
    tombstone: bool = False
    key_schema: str | None = None
    value_schema: str | None = None
    block_at: int | None = None


class TransactionPart(Struct, frozen=True, kw_only=True):
    """What an event knows of its transaction: its `mark`, what it is called, and its time.

    Once it is counted, `tables` are how many events each table had with this one, and `last` says
    that none follows.
    """

    mark: int
    id: str
    time: int
    table: str
    tables: Mapping[str, int] | None = None
    last: bool = False


class WrittenEvent(Struct, frozen=True, kw_only=True):
    """One change as it is written, and where it goes."""

    event_id: str
    positions: tuple[Position, ...]
    event: EventBytes
    topic: str = ""
    route: str = ""
    part: TransactionPart | None = None

    @property
    def transaction(self) -> int | None:
        """Return the number of its transaction; None if not counted."""
        if self.part is None:
            return None
        return self.part.mark

    @property
    def collection(self) -> str:
        """Return the table's name for counting."""
        if self.part is None:
            return ""
        return self.part.table

    def count_by_table(self, tables: Mapping[str, int], last: bool) -> WrittenEvent:
        """Return the event with counts of each table, its own included."""
        if self.part is None:
            return self
        return replace(self, part=replace(self.part, tables=tables, last=last))

    def messages(self) -> Iterator[Message]:
        """Yield the event as a message, then its tombstone."""
        event = self.event
        message = Message(
            topic=self.topic,
            key=event.key,
            value=event.value,
            positions=self.positions,
            headers=event.headers,
            key_schema=schema_ref(f"{self.topic}-key", event.key_schema),
            value_schema=schema_ref(f"{self.topic}-value", event.value_schema),
        )
        yield message
        # A topic that is compacted forgets the key with it.
        if event.tombstone and event.key is not None:
            yield replace(message, value=None, value_schema=None)


def schema_ref(subject: str, schema: str | None) -> SchemaRef | None:
    """Refer to a schema in the registry, named as Kafka Connect's converters do."""
    if schema is None:
        return None
    return SchemaRef(subject=subject, text=schema)


class TransactionMarks(Protocol):
    """Says of events which one of their transaction's they are, and where it begins and ends."""

    @property
    def topic(self) -> str:
        """Return the topic of transaction marks."""

    def part(self, change: Change) -> TransactionPart | None:
        """Describe the transaction of a change; None if it has none."""

    def messages(self, event: WrittenEvent) -> Iterator[Message]:
        """Yield the messages of a counted event."""


class EventTable(Protocol):
    """Writes the events of one table."""

    @property
    def rows(self) -> TableRows:
        """Return the reader of the table's changes."""

    def write(self, change: Change, event: RowEvent) -> EventBytes:
        """Write the event of a change."""


class EventFormat(Struct, frozen=True, kw_only=True):
    """Writes documents of at most `batch_size` events.

    `table` makes what writes a table's; `topic` is a template where the sink takes messages, and
    `address` one where documents go to addresses of their own. With `array` a document of several
    events is an array, else they are lines. With `transactions` events are counted. Where they are `headed`,
    headers of messages say who is behind a change.
    """

    table: Callable[[Table], EventTable]
    batch_size: int
    on_value: OnValue = "omit"
    topic: PlaceTemplate | None = None
    topic_values: Mapping[str, str] = {}
    address: PlaceTemplate | None = None
    array: bool = False
    rising: bool = False
    transactions: TransactionMarks | None = None
    schema: Callable[[Table], str | None] = lambda table: table.schema
    """What a topic or an address calls the schema of a table."""
    headed: bool = False

    former_names: ClassVar[FormerNames] = FormerNames.OWN

    @property
    def counts(self) -> bool:
        """Return True if events are numbered within their transaction."""
        return self.transactions is not None

    @property
    def suffix(self) -> str:
        return ".json" if self.array else ".jsonl"

    def writer(self, catalog: Catalog | None = None) -> Writer:
        """Writes each change, or says why it cannot be written."""
        tables: dict[tuple[str | None, str], EventPlace | ExpressionError] = {}

        def table_of(row: RowId) -> EventPlace:
            known = tables.get((row.schema, row.table))
            if known is None:
                # Why there is none is kept too, and not found out anew for every change.
                known = tables[row.schema, row.table] = self._table(row, catalog)
            if isinstance(known, ExpressionError):
                raise known
            return known

        def write(changes: Iterable[Change]) -> Iterator[WrittenEvent | Refusal]:
            for change in changes:
                written: WrittenEvent | None
                placed = None
                try:
                    placed = table_of(change.row)
                    written = placed.write(change)
                except DataError as error:
                    if placed is None:
                        yield refuse(change, error)
                        continue
                    write_anew = placed.write
                    refusal, written = write_otherwise(
                        change, error, placed.table.rows.sayer, self.on_value, write_anew
                    )
                    yield refusal
                if written is not None:
                    yield written

        return write

    def bind(
        self,
        written: Iterable[WrittenEvent],
        after: str = "",
        whole: bool = False,
    ) -> Iterator[Document]:
        """Join events of one place to documents, in order; ids come from positions, as in XDS."""
        # What was one document must stay one, however many events it has: another one would be no
        # repeat.
        size = None if whole else self.batch_size
        for events in _batches(written, size):
            identity = document_id(events[-1].positions[-1])
            # Where ids must rise although events do not, because some take effect later.
            if self.rising:
                identity = after = rising_id(identity, after)
            covers = {event.event_id: event.positions for event in events}
            if self.topic is not None:
                messages = tuple([message for event in events for message in self._messages(event)])
                yield MessagesDocument(
                    id=identity,
                    body=b"",
                    covers=covers,
                    messages=messages,
                    cut=find_cut_transactions(events),
                )
            else:
                body, route = self._body(events), events[0].route
                yield Document(id=identity, body=body, covers=covers, route=route)

    def heartbeat(self) -> None:
        """Send nothing: events need no heartbeat."""

    def _messages(self, event: WrittenEvent) -> Iterator[Message]:
        if self.transactions is None or event.part is None or event.part.tables is None:
            return event.messages()
        return self.transactions.messages(event)

    def _body(self, events: Sequence[WrittenEvent]) -> bytes:
        bodies = [written.event.document or written.event.value for written in events]
        if not self.array:
            return b"".join([body + b"\n" for body in bodies])
        # Where no two can ever come together, a receiver gets the event itself.
        if self.batch_size == 1 and len(bodies) == 1:
            return bodies[0]
        return b"[%s]" % b",".join(bodies)

    def _table(self, row: RowId, catalog: Catalog | None) -> EventPlace | ExpressionError:
        table = None
        if catalog is not None:
            table = catalog.class_named(row.schema, row.table)
        if table is None:
            problem = f"the columns of {row.table} are not known"
            return ExpressionError(f"{problem}; events need a schema that describes it")
        named = {"schema": self.schema(table) or "", "table": table.name}
        try:
            topic = self._topic({**named, **self.topic_values})
            route = "" if self.address is None else place(self.address, named, "address")
            return EventPlace(self.table(table), topic, route, self.transactions, headed=self.headed)
        except NoPlace as error:
            return ExpressionError(f"{table.name} has no place to go to: {error}")
        except ExpressionError as error:
            return error

    def _topic(self, values: Mapping[str, str]) -> str:
        if self.topic is None:
            return ""
        # A table may have no schema, and then its topic has no empty part.
        name = ".".join(filter(None, self.topic.fill(values).split(".")))
        if topic_name(name) is None:
            problem = f"no topic can be called {value_shown(name)}"
            raise ExpressionError(f"{problem}: it has a-z A-Z 0-9 . _ - only")
        if self.transactions is not None and name == self.transactions.topic:
            problem = f"its topic would be {name}, which is that of transactions"
            raise ExpressionError(f"{problem}; name another one for these")
        return name


class EventPlace:
    """What writes a table's events, and where they go."""

    def __init__(
        self,
        table: EventTable,
        topic: str,
        route: str,
        transactions: TransactionMarks | None,
        *,
        headed: bool = False,
    ) -> None:
        self.table = table
        self._headed = headed
        self._transactions = transactions
        self._topic = topic
        self._route = route

    def write(self, change: Change) -> WrittenEvent | None:
        """Write the event of a change; None if it has no content."""
        row_event = self.table.rows.event_of(change)
        if row_event is None:
            return None
        try:
            event = self.table.write(change, row_event)
        except UnicodeEncodeError:
            problem = "a value, or the key, holds half a character, which UTF-8 cannot carry"
            raise ExpressionError(problem) from None
        if self._headed:
            event = replace(event, headers=(*event.headers, *who_headers(change.who)))
        part = None
        if self._transactions is not None:
            part = self._transactions.part(change)
        return WrittenEvent(
            event_id=change.event_id,
            positions=change.positions,
            event=event,
            topic=change.route or self._topic,
            route=change.route or self._route,
            part=part,
        )


def find_cut_transactions(events: Iterable[WrittenEvent]) -> tuple[CutTransaction, ...]:
    """Find transactions cut by this batch, with their counts before and after."""
    first: dict[int, Mapping[str, int]] = {}
    latest: dict[int, TransactionPart] = {}
    for event in events:
        part = event.part
        if part is None or part.tables is None:
            continue
        if part.mark not in first:
            # The counts of a part include its own event.
            without = {**part.tables, part.table: part.tables[part.table] - 1}
            first[part.mark] = {table: count for table, count in without.items() if count}
        latest[part.mark] = part
    cut = []
    for mark, before in first.items():
        part = latest[mark]
        # One that begins and ends here has no part elsewhere.
        if before or not part.last:
            cut.append(CutTransaction(mark, before, part.tables or {}, part.last))
    return tuple(cut)


def _batches(written: Iterable[WrittenEvent], size: int | None) -> Iterator[list[WrittenEvent]]:
    """Yield batches of at most so many events of one place; without a size, all of them."""
    events = iter(written)
    left: list[WrittenEvent] = []
    if size is None:
        if everything := list(events):
            yield everything
        return
    while batch := [*left, *islice(events, size - len(left))]:
        route = batch[0].route
        end = len(batch)
        for at, event in enumerate(batch):
            if event.route != route:
                end = at
                break
        left = batch[end:]
        yield batch[:end]
