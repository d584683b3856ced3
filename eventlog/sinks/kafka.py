"""The Kafka sink: documents in transactions, each there whole or not at all, and once even after a restart.

In the transaction that carries messages stands also which document was the last. A sink that opens takes over the
transactional id, which ends whatever its former self left open, and reads that mark: so it knows what is there already.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.errors import ConfigError, SinkError
from eventlog.model import Document, Outcome
from eventlog.qlik.messages.document import Header, Message, MessagesDocument
from eventlog.sinks.kafka_errors import TOO_LARGE, error_of, in_words, louder
from eventlog.sinks.kafka_frames import Frames, outcomes, too_large
from eventlog.sinks.kafka_marks import Marks, Told, mark_messages, read_marks
from eventlog.sinks.kafka_settings import KafkaSettings, producer_options
from eventlog.sinks.kafka_topics import Topics
from eventlog.xds.write import HEARTBEAT

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException, Producer

BREATH: Final = 0.1
"""Seconds to wait for room when the producer's queue is full."""

Clock = Callable[[], dt.datetime]


class Share(Struct, frozen=True, kw_only=True):
    """What one transaction carries: messages by their numbers, and the marks that hold once it is committed."""

    messages: Sequence[Message]
    marks: Marks


class KafkaSink:
    """Writes documents to Kafka; connects when it is first asked for something."""

    def __init__(self, settings: KafkaSettings, clock: Clock = lambda: dt.datetime.now(dt.UTC)) -> None:
        self._settings = settings
        self._clock = clock
        self._options = producer_options(settings)
        self._producer: Producer | None = None
        self._topics: Topics | None = None
        self._marks = Marks()
        self._said: KafkaError | None = None
        self._frames = Frames(settings)

    def last(self) -> str:
        """The id of the last document whose transaction was committed."""
        self._opened()
        return self._marks.last

    def write(self, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Writes them in one transaction, committed when it returns; answers for messages that no broker takes."""
        from confluent_kafka import KafkaException

        self._opened()
        fresh = self._fresh(documents)
        if not fresh:
            return ()
        self._listen()
        self._said = None  # what was said before is over: it must not explain what happens now
        try:
            return self._written(fresh)
        except KafkaException as failed:
            raise self._lost(failed) from failed
        except SinkError:
            self._drop()
            raise

    def close(self) -> None:
        """Gives back the connection; what was written is committed already."""
        self._drop()

    def _opened(self) -> Producer:
        if self._producer is None:
            self._open()
        return self._current()

    def _current(self) -> Producer:
        assert self._producer is not None
        return self._producer

    def _open(self) -> None:
        from confluent_kafka import KafkaException

        settings = self._settings
        self._producer = self._made()
        self._topics = topics = Topics(settings, self._current)
        try:
            self._producer.init_transactions(settings.timeout)
            topics.require_marks(settings.marks_topic)
            self._marks = read_marks(settings, topics.partitions(settings.marks_topic))
        except KafkaException as failed:
            raise self._lost(failed) from failed
        except SinkError:
            self._drop()
            raise

    def _made(self) -> Producer:
        """A producer; what its options do not allow is known before anybody is asked."""
        from confluent_kafka import KafkaException, Producer

        try:
            return Producer({**self._options, "error_cb": self._hear})
        except KafkaException as refused:
            said = str(error_of(refused).str()).rstrip(".")
            hint = "Check the files of output.ca_file, output.client_certificate and output.client_key, and output.options."
            raise ConfigError(f"Kafka's client refuses its settings: {said}.", hint=hint) from None

    def _fresh(self, documents: Sequence[Document]) -> list[Document]:
        """The documents that are not there yet, each once; ids grow from one to the next, but for heartbeats."""
        found: list[Document] = []
        last = self._marks.last
        for document in documents:
            if document.id > last or document.id == HEARTBEAT:
                found.append(document)
                last = max(last, document.id)
        return found

    def _written(self, documents: Sequence[Document]) -> Sequence[Outcome]:
        from confluent_kafka import KafkaException

        messages = [message for document in documents for message in self._messages(document)]
        taken, refused = self._frames.framed(messages)
        share = self._share(taken, documents)
        try:
            self._send(share.messages)
            self._commit(share.marks)
        except KafkaException as failed:
            if error_of(failed).name() != TOO_LARGE:
                raise
            clear_frames(failed.__traceback__)
            self._abort()
            return self._one_by_one(documents)
        return outcomes(refused)

    def _one_by_one(self, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Documents in transactions of their own where a broker refused a message: nobody else is held up by it."""
        if len(documents) > 1:
            return [outcome for document in documents for outcome in self._written([document])]
        taken, refused = self._frames.framed(self._messages(documents[0]))
        while True:
            share = self._share(taken, documents)
            number = self._first_refused(share)
            if number is None:
                return outcomes(refused)
            self._abort()
            culprit = share.messages[number]
            if not any(message is culprit for message in taken):  # without its metadata a table's data mean nothing
                raise _untold(culprit)
            refused.append((culprit, too_large(culprit)))
            taken = [message for message in taken if message is not culprit]

    def _first_refused(self, share: Share) -> int | None:
        """Sends messages each by itself; the number of the first that is too large, or None and all is committed."""
        from confluent_kafka import KafkaException

        producer = self._opened()
        producer.begin_transaction()
        failed: list[KafkaError] = []
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
        """Begins a transaction and hands the messages to the producer, which sends them while it gets more."""
        producer = self._opened()
        producer.begin_transaction()
        produce = producer.produce
        for message in messages:
            if message.headers:
                self._produce(producer, message)
                continue
            while True:
                try:
                    produce(message.topic, message.value, message.key)
                    break
                except BufferError:
                    producer.poll(BREATH)

    def _produce(self, producer: Producer, message: Message, report: Callable[..., None] | None = None) -> None:
        options: dict[str, Any] = {} if report is None else {"on_delivery": report}
        if message.headers:
            options["headers"] = list(message.headers)
        while True:
            try:
                producer.produce(message.topic, message.value, message.key, **options)
                return
            except BufferError:
                producer.poll(BREATH)

    def _commit(self, marks: Marks) -> None:
        """Writes the marks and commits; returns when all of it is durable, for a failed delivery fails the commit."""
        producer = self._opened()
        news = {table: told for table, told in marks.tables.items() if self._marks.tables.get(table) != told}
        for key, value in mark_messages(self._settings.transactional_id, marks.last, news):
            self._produce(producer, Message(topic=self._settings.marks_topic, key=key, value=value))
        producer.commit_transaction(self._settings.timeout)
        self._marks = marks

    def _share(self, messages: Sequence[Message], documents: Sequence[Document]) -> Share:
        """The messages with metadata before those whose table was not told so yet."""
        tables = dict(self._marks.tables)
        found: list[Message] = []
        for message in messages:
            structure = message.structure
            if structure is not None:
                former = tables.get(structure.table)
                if former is None or former.schema_id != structure.schema_id:
                    told = Told(structure.schema_id, 1 if former is None else former.version + 1)
                    tables[structure.table] = told
                    time = self._clock().astimezone(dt.UTC).replace(tzinfo=None).isoformat("T", "milliseconds")
                    value = structure.told(told.version, time)
                    found.append(Message(topic=structure.topic, key=structure.table.encode(), value=value))
            if message.key is not None or message.value is not None:  # what is neither only brings its structure
                found.append(message)
        topics = self._topics
        assert topics is not None
        for topic in dict.fromkeys([message.topic for message in found]):
            topics.require(topic)
        last = max(self._marks.last, *[document.id for document in documents if document.id != HEARTBEAT], "")
        return Share(messages=found, marks=Marks(last=last, tables=tables))

    def _messages(self, document: Document) -> Sequence[Message]:
        if isinstance(document, MessagesDocument):
            return document.messages
        if not self._settings.topic:
            raise ConfigError("output.topic is missing: it takes documents that are no messages.")
        positions = tuple(position for positions in document.covers.values() for position in positions)
        headers: tuple[Header, ...] = (("id", document.id.encode()),)
        key = (
            self._settings.transactional_id.encode()
        )  # one key, one partition: documents are right only in their order
        return [Message(topic=self._settings.topic, key=key, value=document.body, positions=positions, headers=headers)]

    def _hear(self, error: KafkaError) -> None:
        """Keeps what the client says by the way: why nobody answers is said only there."""
        self._said = louder(self._said, error)

    def _listen(self) -> None:
        """Lets the client say what it has not said yet."""
        from confluent_kafka import KafkaException

        if self._producer is not None:
            try:
                self._producer.poll(0)
            except KafkaException as fatal:
                self._hear(error_of(fatal))

    def _lost(self, failed: KafkaException) -> SinkError:
        """The error in words. The connection is dropped: only a new one can tell what became of the transaction."""
        self._listen()
        said, self._said = self._said, None
        # Whoever keeps the error keeps its frames, and a producer in one of them would live on: it would go on asking
        # for our transactional id, and take it away from its own successor once the brokers are back.
        clear_frames(failed.__traceback__)
        self._drop()
        return in_words(error_of(failed), self._settings.servers, said)

    def _abort(self) -> None:
        """Ends the transaction by taking over from ourselves: librdkafka stumbles over the numbers of what failed."""
        self._drop()
        self._opened()

    def _drop(self) -> None:
        producer, self._producer, self._topics = self._producer, None, None
        if producer is not None:
            producer.purge()
            producer.flush(0)


def _untold(metadata: Message) -> SinkError:
    """What to tell when a broker does not take a metadata message."""
    size, table = len(metadata.value or b""), (metadata.key or b"").decode()
    message = f"The metadata message of {table} has {size} bytes, more than topic {metadata.topic} takes."
    return SinkError(message, hint="Raise the broker's limit and output.max_message_bytes.", may_pass=False)
