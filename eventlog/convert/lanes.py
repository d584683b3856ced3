"""Lanes: messages go to Kafka side by side, from any number of machines, and those of one key one
after the other.

    lay        a range of the changes gets its numbers, and is laid into lanes by keys
    reserve    the numbers are taken, and metadata sent, before the first message goes
    send_lane  one producer sends a lane in the order of positions, under an id of the lane's own

Law: a lane holds the same messages in the same documents whenever it is sent, and its mark at the
brokers says up to where they are there. So a task that is repeated, and a conversion that is given
once more, send what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.commit import Summary
from eventlog.convert.forms import STAMP
from eventlog.convert.partitions import (
    PartitionFile,
    gather_batches,
    labels_of,
    partition_file,
    read_label,
    within,
    write_by,
)
from eventlog.convert.sending import SENDING, Begun, Sent, note_refused, something_else
from eventlog.convert.settings import Conversion, SentMessages
from eventlog.convert.to_messages import LAID, MessageDocuments, writer_of
from eventlog.convert.work import ConversionTask, Task
from eventlog.convert.writing import InTheirOrder, Write
from eventlog.core.errors import MachineError
from eventlog.core.schema import Table
from eventlog.core.seams import Sink
from eventlog.durable_files import write_file
from eventlog.qlik.change_seq import ChangeSeq, Sequencer
from eventlog.qlik.messages.document import Message, MessagesDocument
from eventlog.sinks.kafka.settings import KafkaSettings, producer_options

MOST_LANES: Final = 64
LANE_CHANGES: Final = 50_000
"""Changes that are worth a producer of their own."""


class Lay(Task, frozen=True, kw_only=True):
    """A range of the changes, to be numbered behind `after` and laid into lanes."""

    part: Write
    after: str
    lanes: int


class LaidPart(Struct, frozen=True, kw_only=True):
    """A range in lanes, and the places of the tables that occur in it."""

    file: PartitionFile
    tables: tuple[int, ...]


class LanePlan(Struct, frozen=True, kw_only=True):
    """What is sent: changes numbered after `after` to `last`, in lanes. What the conversion amounts
    to besides.
    """

    after: str
    last: str
    laid: tuple[PartitionFile, ...]
    ended: tuple[PartitionFile, ...]
    summary: Summary
    tables: dict[int, Table] | None = None


class SendLane(ConversionTask, frozen=True, kw_only=True):
    """One lane, to be sent."""

    lane: int
    plan: LanePlan


def lane_count(changes: int) -> int:
    return min(MOST_LANES, 1 + changes // LANE_CHANGES)


def lay(task: Lay) -> LaidPart:
    """Number a range and distribute it over lanes."""
    tables = set[int]()
    with partition_file(Path(task.folder) / f"{task.name}.arrow", LAID) as writer:
        for rows in gather_batches(_number_changes(task), LAID):
            tables.update(pc.unique(rows.column("table")).to_pylist())
            keys, table_numbers = rows.column("key").to_pylist(), rows.column("table").to_pylist()
            # By its key; by its table where it has none, for nothing else is to be kept in order.
            # Not Python's hash, which is another one in each process.
            lanes = [
                (table if key is None else crc32(key)) % task.lanes
                for key, table in zip(keys, table_numbers, strict=True)
            ]
            write_by(writer, rows, pa.array(lanes, pa.int64()))
    return LaidPart(file=writer.finished(), tables=tuple(sorted(tables)))


def reserve(sink: Sink, target: SentMessages, last: str, tables: Iterable[Table]) -> None:
    """Commit the last number to the target, so those before it are ours; send metadata with it."""
    messages = []
    for table in tables:
        writer = writer_of(table, target.settings)
        # No writer is for a table that goes to no topic, no structure where metadata is not sent.
        if writer is not None and writer.structure is not None:
            structure = writer.structure
            metadata = Message(topic=structure.topic, key=None, value=None, structure=structure)
            messages.append(metadata)
    # Without any message it moves the mark at the brokers all the same.
    sink.commit(last, [MessagesDocument(id=last, body=b"", covers={}, messages=tuple(messages))])


def keep_plan(folder: Path, plan: LanePlan) -> None:
    """Store the plan: from now on the conversion can only be continued."""
    write_file(folder / SENDING, msgspec.json.encode(plan))


def read_kept_plan(folder: Path) -> LanePlan:
    """Read the plan of a conversion interrupted while it sent."""
    try:
        return msgspec.json.decode((folder / SENDING).read_bytes(), type=LanePlan)
    except msgspec.DecodeError as error:
        what = f"What {folder / SENDING} says of messages that are being sent"
        message = f"{what} is of another version of eventlog: {error}."
        hint = "Continue with the version that began to send them."
        raise MachineError(message, hint=hint, may_pass=False) from error


def lane_tasks(conversion: Conversion, plan: LanePlan, folder: Path) -> list[SendLane]:
    """Make a task for each lane with changes."""
    return [
        SendLane(
            name=f"lane-{lane:02d}",
            conversion=conversion,
            lane=lane,
            plan=replace(plan, laid=within(plan.laid, lane, lane), ended=()),
            folder=str(folder),
        )
        for lane in labels_of(plan.laid)
    ]


def send_lane(task: SendLane) -> Sent:
    """Send the rest of a lane."""
    from eventlog.sinks.kafka.sink import KafkaSink

    target, plan = task.conversion.format, task.plan
    assert isinstance(target, SentMessages)
    form = MessageDocuments(target, _tables_of(task.conversion, plan), metadata_sent=True)
    note = Path(task.folder) / task.name / "refused"
    note.parent.mkdir(exist_ok=True)
    documents = 0
    with closing(KafkaSink(lane_settings(target.into, task.lane))) as sink:
        sink.open(None)
        # Only now: the same task may run elsewhere at the same time, and notes what was refused
        # until it is fenced off.
        begun = Begun(after=plan.after)
        if note.exists():
            begun = msgspec.json.decode(note.read_bytes(), type=Begun)
        last_id = sink.last()
        if last_id > plan.last:
            raise something_else(last_id)
        for document in form.laid(read_label(plan.laid, task.lane)):
            documents += 1
            # Those before went before an interruption. The last one is sent once more, and taken as
            # done: what was refused of it may not be noted.
            if document.id >= last_id:
                begun = note_refused(note, begun, sink.commit(document.id, [document]))
    return Sent(documents=documents, refused=begun.refused)


def lane_settings(settings: KafkaSettings, lane: int) -> KafkaSettings:
    """Return the Kafka settings of a lane, with a transactional id of its own."""
    return replace(settings, transactional_id=f"{settings.transactional_id}.{lane + 1}")


def end_open(settings: KafkaSettings, lanes: Iterable[int]) -> None:
    """End the transactions of killed lanes: nobody can read marks behind open ones."""
    from confluent_kafka import KafkaException, Producer

    from eventlog.sinks.kafka.errors import error_of, in_words

    for lane in lanes:
        producer = Producer(producer_options(lane_settings(settings, lane)))
        # A producer that begins ends what stands open under its transactional id.
        try:
            producer.init_transactions(settings.timeout)
        except KafkaException as failed:
            raise in_words(error_of(failed), settings.servers) from failed


def _tables_of(conversion: Conversion, plan: LanePlan) -> Mapping[int, Table]:
    # Tables that rows in files described are not in the conversion: they were met while it ran.
    if plan.tables is None:
        return conversion.output_tables
    return plan.tables


def _number_changes(task: Lay) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a range with a change_seq in the place of position and time."""
    # Each attempt spills into a file of its own.
    part = InTheirOrder(replace(task.part, name=task.name))
    # As if all changes before had been numbered here: ranges are numbered side by side.
    before = ChangeSeq.parse(task.after).later(task.part.span.first, part.stamp)
    numbers = Sequencer(before.text)
    for batch in part.batches:
        sequences = pa.array(map(numbers.step, batch.column(STAMP).to_pylist()), pa.string())
        yield pa.RecordBatch.from_arrays([sequences, *batch.columns[2:]], schema=LAID)
