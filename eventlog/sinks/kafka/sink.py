"""The Kafka sink: documents in transactions, each there whole or not at all, and once even after a
restart.

In the transaction that carries messages stands also under which plan they went, and who writes. A
sink that opens takes over the transactional id, which ends whatever its former self left open, and
reads that mark: so it knows whether the plan that it gets first is there already. Ids are not
compared: those of XDS do not rise with time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core import tracing
from eventlog.core.errors import ConfigError, EventlogError, OccupiedError, SinkError
from eventlog.core.model import Document, Outcome
from eventlog.core.rules.meaning import refusals
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.qlik.messages.document import Header, Message, MessagesDocument
from eventlog.sinks.kafka.errors import FENCED, TOO_LARGE, error_of, in_words, louder
from eventlog.sinks.kafka.frames import Frames, too_large
from eventlog.sinks.kafka.marks import (
    KafkaMarks,
    KnownStructure,
    Refusals,
    Taken,
    TopicState,
    latest_owner,
    mark_messages,
    read_marks,
)
from eventlog.sinks.kafka.settings import KafkaSettings, producer_options
from eventlog.sinks.kafka.topics import Topics
from eventlog.sinks.ownership import Owner, make_replaced_error, take_over
from eventlog.xds.write import HEARTBEAT

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException, Producer

ROOM_SECONDS: Final = 0.1
"""Seconds to wait for room when the producer's queue is full."""

Clock = Callable[[], dt.datetime]


class Share(Struct, frozen=True, kw_only=True):
    """What one transaction carries: messages by their numbers, and the marks that hold once it is
    committed.
    """

    messages: Sequence[Message]
    marks: KafkaMarks


class KafkaSink:
    """Writes documents to Kafka; connects when it is first asked for something."""

    def __init__(
        self,
        settings: KafkaSettings,
        clock: Clock = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._options = producer_options(settings)
        self._producer: Producer | None = None
        self._topics: Topics | None = None
        self._partitions: list[int] = []
        self._marks = KafkaMarks()
        self._tenure: Tenure | None = None
        self._owner: Owner | None = None
        self._earlier: KafkaError | None = None
        self._frames = Frames(settings)

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(resolves=True, refuses=self._frames.refuses)

    def open(self, tenure: Tenure | None) -> None:
        """Takes the output over, and learns how far it is; its former writer is fenced off."""
        self._drop()
        self._tenure = tenure
        self._owner = None
        self._require_producer()

    def last(self) -> str:
        """Return the id of the last committed document."""
        return self._marks.state.last

    def resolve(self, plan: str) -> Resolved:
        """Find which documents of the plan are there, if it was the last: it may be partly
        committed.
        """
        self._require_producer()
        there, refused = self._find_begun(plan)
        resolved = Resolved(last=self._taken.plan, documents=None, answers=tuple(refusals(refused)))
        if there is not None:
            resolved = replace(resolved, documents=frozenset(there))
        return resolved

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Do nothing: a transaction's messages are invisible until it commits."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Writes them in one transaction, committed when it returns.

        Answers for messages that no broker takes.
        """
        from confluent_kafka import KafkaException

        self._require_producer()
        there, before = self._find_begun(plan)
        if there is None:
            return refusals(before)
        # Those that are there came in transactions of their own, when one of the plan was too
        # large.
        fresh = [document for document in documents if document.id not in there]
        if not fresh:
            return refusals(before)
        self._listen()
        self._earlier = None  # an earlier error must not explain what happens now
        try:
            return refusals((*before, *self._write(fresh, plan)))
        except KafkaException as failed:
            raise self._lose_connection(failed) from failed
        # Also what nobody expected leaves a transaction open, in which nothing new can begin.
        except BaseException:
            self._drop()
            raise

    def close(self) -> None:
        """Gives back the connection; what was written is committed already."""
        self._drop()

    def _require_producer(self) -> Producer:
        if self._producer is None:
            self._open()
        return self._current()

    def _current(self) -> Producer:
        assert self._producer is not None
        return self._producer

    def _open(self) -> None:
        from confluent_kafka import KafkaException

        settings = self._settings
        self._producer = self._make_producer()
        self._topics = topics = Topics(settings, self._current)
        try:
            self._partitions = topics.marks(settings.marks_topic)
            # Before who is in the right is fenced off.
            self._refuse_others(latest_owner(settings, self._partitions))
            self._producer.init_transactions(settings.timeout)
            self._marks = read_marks(settings, self._partitions)
            self._take_over()
        except KafkaException as failed:
            raise self._lose_connection(failed) from failed
        except EventlogError:
            self._drop()
            raise

    def _refuse_others(self, owner: Owner) -> Owner:
        """Return the owner from now on; raise OccupiedError or ConfigError if it is not us.

        A lost connection does not change it.
        """
        target = f"The output {self._settings.transactional_id!r} at Kafka"
        if self._owner is None:
            way_out = "Give each output a transactional_id of its own."
            return take_over(owner, self._tenure, target, way_out)
        is_later = owner.epoch > self._owner.epoch
        # The same epoch of another log, or of another output that has our transactional id.
        if is_later or (owner.epoch == self._owner.epoch and owner != self._owner):
            raise make_replaced_error(target)
        return self._owner

    def _take_over(self) -> None:
        """Says at the brokers that the output is ours, before anything else is written."""
        state = self._marks.state
        self._owner = self._refuse_others(state.owner)
        if self._owner != state.owner:
            self._current().begin_transaction()
            self._commit(replace(self._marks, state=replace(state, owner=self._owner)))

    def _make_producer(self) -> Producer:
        """Make a producer; wrong options are reported before any broker is asked."""
        from confluent_kafka import KafkaException, Producer

        try:
            return Producer({**self._options, "error_cb": self._hear})
        except KafkaException as refused:
            # The files are read here, so a wrong path shows before anything is asked of a broker.
            why = str(error_of(refused).str()).rstrip(".")
            hint = (
                "Check the files of output.ca_file, output.client_certificate and output.client_key,"
                " and output.options."
            )
            raise ConfigError(f"Kafka's client refuses its settings: {why}.", hint=hint) from None

    def _find_begun(self, plan: str) -> tuple[Collection[str] | None, Refusals]:
        """Find the plan's documents already there, and its refusals; None for all documents."""
        taken = self._taken
        if not plan or plan != taken.plan:
            return (), ()
        return taken.part, taken.refusals()

    @property
    def _taken(self) -> Taken:
        """Return the last plan."""
        # A conversion, which has no tenure, leaves the publisher's plan alone: that may have to be
        # repeated.
        if self._tenure is None:
            return self._marks.state.converted
        return self._marks.state.taken

    def _write(self, documents: Sequence[Document], plan: str) -> Refusals:
        """Sends the documents in one transaction.

        One by one where a broker takes a message only smaller.
        """
        from confluent_kafka import KafkaException

        messages = [message for document in documents for message in self._messages(document)]
        taken, refused = self._frames.frame(messages)
        state = self._find_state_after(documents, plan, _find_refused(refused), whole=True)
        share = self._share(taken, state)
        try:
            self._send(share.messages)
            self._commit(share.marks)
        except KafkaException as failed:
            if error_of(failed).name() != TOO_LARGE:
                raise
            # The error's frames would hold the producer, which must be gone before the next one.
            clear_frames(failed.__traceback__)
            self._abort()
        else:
            return _find_refused(refused)
        # A broker refused a message, and nobody else is to be held up by it. The mark says which
        # documents of the plan are there, should something break off in between.
        kept: Refusals = ()
        for number, document in enumerate(documents, 1):
            kept += self._alone(document, plan, whole=number == len(documents))
        return kept

    def _alone(self, document: Document, plan: str, *, whole: bool) -> Refusals:
        """Sends one document without the messages that are too large, and returns these; `whole`
        says that it is the last.
        """
        taken, refused = self._frames.frame(self._messages(document))
        while True:
            state = self._find_state_after([document], plan, _find_refused(refused), whole=whole)
            share = self._share(taken, state)
            number = self._first_refused(share)
            if number is None:
                return _find_refused(refused)
            self._abort()
            culprit = share.messages[number]
            # Without its metadata a table's data mean nothing.
            if not any(message is culprit for message in taken):
                table = (culprit.key or b"").decode()
                size = f"has {len(culprit.value or b'')} bytes, more than topic {culprit.topic} takes"
                hint = "Raise the broker's limit and output.max_message_bytes."
                problem = f"The metadata message of {table} {size}."
                raise SinkError(problem, hint=hint, may_pass=False)
            refused.append((culprit, too_large(culprit)))
            taken = [message for message in taken if message is not culprit]

    def _find_state_after(
        self,
        documents: Sequence[Document],
        plan: str,
        refused: Refusals,
        *,
        whole: bool,
    ) -> TopicState:
        """Return the output's state after these documents; without a plan the former one stays."""
        former = self._marks.state
        # A heartbeat has no place among the documents.
        ids = [document.id for document in documents if document.id != HEARTBEAT]
        last = max([former.last, *ids])
        if not plan:
            return replace(former, last=last)
        there, before = self._find_begun(plan)
        part: tuple[str, ...] | None = None
        if not whole:
            part = (*(there or ()), *[document.id for document in documents])
        taken = Taken(plan=plan, part=part).with_refusals((*before, *refused))
        if self._tenure is None:
            return replace(former, last=last, converted=taken)
        return replace(former, last=last, taken=taken)

    def _first_refused(self, share: Share) -> int | None:
        """Sends messages each by itself.

        The number of the first that is too large, or None and all is committed.
        """
        from confluent_kafka import KafkaException

        producer = self._require_producer()
        producer.begin_transaction()
        failed: list[KafkaError] = []
        # One at a time: only so it is known which of them the broker refused.
        for number, message in enumerate(share.messages):
            try:
                self._produce(producer, message, lambda error, _: failed.append(error))
            except KafkaException as refused:
                failed.append(error_of(refused))
            producer.flush(self._settings.timeout)
            if failed:
                if failed[0].name() != TOO_LARGE:
                    raise KafkaException(failed[0])
                return number
        self._commit(share.marks)
        return None

    def _send(self, messages: Sequence[Message]) -> None:
        """Begins a transaction and hands the messages to the producer."""
        # It sends them while it gets more; that one cannot be delivered fails the commit.
        producer = self._require_producer()
        producer.begin_transaction()
        # Bare calls where nothing is to be added: this is the one loop over all messages.
        produce, traced = producer.produce, bool(tracing.headers())
        for message in messages:
            if not message.headers and not traced:
                try:
                    produce(message.topic, message.value, message.key)
                    continue
                except BufferError:
                    pass  # there is no room, which is waited for
            self._produce(producer, message)

    def _produce(
        self,
        producer: Producer,
        message: Message,
        report: Callable[..., None] | None = None,
    ) -> None:
        options: dict[str, Any] = {}
        if report is not None:
            options["on_delivery"] = report
        headers = [*message.headers]
        if message.topic != self._settings.marks_topic:  # a mark is part of no row's way
            headers += [(name, text.encode()) for name, text in tracing.headers().items()]
        if headers:
            options["headers"] = headers
        while True:
            try:
                producer.produce(message.topic, message.value, message.key, **options)
                return
            except BufferError:
                producer.poll(ROOM_SECONDS)  # makes room as it hears of deliveries

    def _commit(self, marks: KafkaMarks) -> None:
        """Writes the marks and commits; all of it is durable when it returns."""
        producer = self._require_producer()
        known = self._marks.tables
        news = {table: mark for table, mark in marks.tables.items() if known.get(table) != mark}
        for key, value in mark_messages(self._settings, marks.state, news):
            self._produce(producer, Message(topic=self._settings.marks_topic, key=key, value=value))
        producer.commit_transaction(self._settings.timeout)
        self._marks = marks

    def _share(self, messages: Sequence[Message], state: TopicState) -> Share:
        """Add metadata before messages of a table whose metadata changed."""
        tables = dict(self._marks.tables)
        sent: list[Message] = []
        for message in messages:
            structure = message.structure
            if structure is not None:
                former = tables.get(structure.table)
                if former is None or former.schema_id != structure.schema_id:
                    version = structure.version
                    # Consumers have a number, and the next one is greater.
                    if former is not None:
                        version = max(version, former.version + 1)
                    tables[structure.table] = KnownStructure(structure.schema_id, version)
                    now = self._clock().astimezone(dt.UTC).replace(tzinfo=None)
                    value = structure.message(version, now.isoformat("T", "milliseconds"))
                    sent.append(Message(topic=structure.topic, key=structure.key, value=value))
            # What is neither only brings its structure.
            if message.key is not None or message.value is not None:
                sent.append(message)
        topics = self._topics
        assert topics is not None
        for topic in dict.fromkeys([message.topic for message in sent]):
            topics.require(topic)
        return Share(messages=sent, marks=KafkaMarks(state=state, tables=tables))

    def _messages(self, document: Document) -> Sequence[Message]:
        if isinstance(document, MessagesDocument):
            return document.messages
        topic = document.route or self._settings.topic
        if not topic:
            raise ConfigError("output.topic is missing: it takes documents that are no messages.")
        positions = tuple([position for positions in document.covers.values() for position in positions])
        headers: tuple[Header, ...] = (("id", document.id.encode()),)
        # One key, one partition: documents are right only in their order.
        key = self._settings.transactional_id.encode()
        message = Message(topic=topic, key=key, value=document.body, positions=positions, headers=headers)
        return [message]

    def _hear(self, error: KafkaError) -> None:
        """Keeps what the client reports by the way: only there stands why nobody answers."""
        self._earlier = louder(self._earlier, error)

    def _listen(self) -> None:
        """Lets the client report what it has not yet."""
        from confluent_kafka import KafkaException

        if self._producer is not None:
            try:
                self._producer.poll(0)
            except KafkaException as fatal:
                self._hear(error_of(fatal))

    def _lose_connection(self, failed: KafkaException) -> SinkError | OccupiedError:
        """Drop the connection; return the error in words."""
        self._listen()
        earlier, self._earlier = self._earlier, None
        # Whoever keeps the error keeps its frames, and a producer in one of them would live on: it
        # would go on asking for our transactional id, and take it away from its own successor once
        # the brokers are back.
        clear_frames(failed.__traceback__)
        # Only a new connection can tell what became of the transaction.
        self._drop()
        if error_of(failed).name() in FENCED and self._is_replaced():
            return make_replaced_error(f"the output {self._settings.transactional_id!r} at Kafka")
        return in_words(error_of(failed), self._settings.servers, earlier)

    def _is_replaced(self) -> bool:
        """Return True if another publisher, not the brokers' timeout, has fenced us off."""
        # Brokers also do it by themselves, after a time; then nobody has a higher epoch.
        try:
            owner = latest_owner(self._settings, self._partitions)
        except SinkError:
            return False
        return self._owner is not None and owner.epoch > self._owner.epoch

    def _abort(self) -> None:
        """Ends the transaction by taking over from ourselves."""
        # A new producer ends it, for librdkafka stumbles over the numbers of what failed.
        self._drop()
        self._require_producer()

    def _drop(self) -> None:
        producer, self._producer, self._topics = self._producer, None, None
        if producer is not None:
            # What waits is dropped: it belongs to a transaction that nobody ends any more.
            producer.purge()
            producer.flush(0)


def _find_refused(refused: Sequence[tuple[Message, str]]) -> Refusals:
    """List the events of messages not taken."""
    return tuple([(position, why) for message, why in refused for position in message.positions])
