"""Messages to Kafka from Spark's executors: lanes are laid and sent there, by the code of
`eventlog.convert.lanes`.

The driver asks the target for its last number and reserves those of this conversion, and sends
metadata; no message passes through it. The plan is noted before the first message goes, and stays
until all are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa

from eventlog.convert.commit import Summary
from eventlog.convert.lanes import (
    LaidPart,
    LanePlan,
    Lay,
    end_open,
    keep_plan,
    lane_count,
    lane_tasks,
    lay,
    read_kept_plan,
    reserve,
    send_lane,
)
from eventlog.convert.partitions import labels_of
from eventlog.convert.sending import (
    NOTHING_YET,
    ONCE_MORE,
    Sent,
    our_words,
    sink_of,
    something_else,
)
from eventlog.convert.settings import Conversion, SentMessages
from eventlog.convert.work import Task, guard_task
from eventlog.convert.writing import PartTasks, Write, last_number
from eventlog_spark.deciding import do_tasks, unpack_tasks, write_answer
from eventlog_spark.faults import travelling

Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Collected = Callable[[str, Sequence[Task], Step, int], list[bytes]]
"""What tasks answer: the name of the step, the tasks, what executors do with them, how many rows
they get through.
"""


def lanes_sent(conversion: Conversion, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Send these lanes; to the brokers every attempt of a lane is the same."""
    with travelling():
        for task in unpack_tasks(conversion, batches):
            yield write_answer(msgspec.json.encode(guard_task(send_lane, task)))


class Sending:
    """The last steps of a conversion to Kafka."""

    def __init__(self, conversion: Conversion, folder: Path, collected: Collected) -> None:
        assert isinstance(conversion.format, SentMessages)
        self._conversion = conversion
        self._target = conversion.format
        self._folder = folder
        self._collected = collected

    def planned(self, summary: Summary, tasks: PartTasks) -> LanePlan:
        """Number all changes and reserve the numbers; then the conversion can only be continued."""
        tables = tasks.tables
        if tables is None:
            tables = self._conversion.output_tables
        with our_words(NOTHING_YET), closing(sink_of(self._target)) as sink:
            after = sink.last()
            parts = self._lay(list(tasks.each()), after, summary.changes)
            last = last_number(after, summary.changes, tasks.changes)
            # Metadata is sent only of tables that have messages.
            numbers = sorted({number for part in parts for number in part.tables})
            reserve(sink, self._target, last, [tables[number] for number in numbers])
        plan = LanePlan(
            after=after,
            last=last,
            laid=tuple(part.file for part in parts),
            ended=tasks.ended,
            summary=summary,
            tables=tasks.tables,
        )
        keep_plan(self._folder, plan)
        return plan

    def take_up(self) -> LanePlan:
        """Read the plan of an interrupted run; refuse it if others have written since."""
        plan = read_kept_plan(self._folder)
        with our_words(ONCE_MORE):
            # First: the last number cannot be read behind what a lane has left open.
            end_open(self._target.into, labels_of(plan.laid))
            with closing(sink_of(self._target)) as sink:
                if sink.last() != plan.last:
                    raise something_else(sink.last())
        return plan

    def sent(self, plan: LanePlan) -> Sent:
        """Send the rest of all lanes, side by side."""
        tasks = lane_tasks(self._conversion, plan, self._folder)
        with our_words(ONCE_MORE):
            answers = self._collected("sending", tasks, partial(lanes_sent, self._conversion), plan.summary.changes)
        documents = 0
        refused: dict[int, str] = {}
        for answer in answers:
            lane = msgspec.json.decode(answer, type=Sent)
            documents += lane.documents
            refused |= lane.refused
        return Sent(documents=documents, refused=refused)

    def _lay(self, parts: Sequence[Write], after: str, changes: int) -> list[LaidPart]:
        lanes = lane_count(changes)
        tasks = [
            Lay(
                name=f"laid-{part.name}",
                part=part,
                after=after,
                lanes=lanes,
                folder=part.folder,
            )
            for part in parts
        ]
        answers = self._collected("numbering", tasks, partial(do_tasks, lay, self._conversion), changes)
        return [msgspec.json.decode(answer, type=LaidPart) for answer in answers]
