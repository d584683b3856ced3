"""The tasks after the decision: changes in the order of their positions become parts, and outcomes
one file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
from msgspec import Struct
from pyarrow import parquet

from eventlog.convert.collecting import WrittenChanges, latest
from eventlog.convert.folders import OUTCOMES_FILE, cannot_write
from eventlog.convert.forms import PART, STAMP, FileForm, Parts, form_of
from eventlog.convert.partitions import (
    BY_END,
    BY_PLACE,
    BY_POSITION,
    OUTCOME_ORDER,
    PartitionFile,
    in_order,
    labels_of,
    read_label,
    within,
)
from eventlog.convert.plan import SPAN_EVENTS, PartSpan, part_spans
from eventlog.convert.rows import OUTCOMES, WRITTEN_OUTCOMES, integers
from eventlog.convert.settings import Conversion
from eventlog.convert.work import ConversionTask, Task, advance
from eventlog.core.model import Reason, Status
from eventlog.core.schema import Table

GROUP_ROWS: Final = 131_072
"""Rows of a row group: always as many, so that the bytes do not depend on how the rows came."""

ENCODED: Final[dict[str, Any]] = {
    "compression": "zstd",
    # Of positions, which never repeat, it would be 70 MB.
    "use_dictionary": ["status", "reason", "note"],
    "column_encoding": {"position": "DELTA_BINARY_PACKED"},
}


class Write(ConversionTask, frozen=True, kw_only=True):
    """Some of the parts, to be written."""

    rendered: tuple[PartitionFile, ...]
    span: PartSpan
    stamp: str = ""
    """The latest time in the ranges before, in forms that number their changes."""
    tables: dict[int, Table] | None = None
    """What a stream's tables look like, by the numbers that its changes have for them."""
    staged: str


class WriteOutcomes(Task, frozen=True, kw_only=True):
    """The outcomes of all rows, to be written."""

    ended: tuple[PartitionFile, ...]
    staged: str
    streamed: bool = False
    """The positions are those of a stream, as text."""
    refused: Mapping[int, str] = {}
    """What was not taken where changes were sent to, and why."""


class PartTasks(Struct, frozen=True, kw_only=True):
    """What the tasks share that write parts: the changes under ranges, the tables of a stream by
    number, and the folders. `ended` are the outcomes of all rows.
    """

    conversion: Conversion
    changes: tuple[WrittenChanges, ...]
    ended: tuple[PartitionFile, ...] = ()
    tables: dict[int, Table] | None
    folder: str
    staged: str

    def each(self, at_once: int = SPAN_EVENTS) -> Iterator[Write]:
        """Yield the tasks to write whole parts, as many as have `at_once` changes, or one."""
        stamps, stamp = self._stamps(), ""
        size = self.conversion.part_events
        beyond = size if self.conversion.gathers else 0
        for number, span in enumerate(part_spans(self.counted(), size, at_once, beyond=beyond)):
            while stamps and stamps[0][0] < span.range:
                stamp = max(stamp, stamps.popleft()[1])
            yield self._task(number, span, stamp)

    def whole(self) -> Write:
        """Make one task of all changes."""
        counted = self.counted()
        first, until = min(counted, default=0), max(counted, default=0)
        changes = sum(counted.values())
        span = PartSpan(first=0, last=changes, range=first, skipped=0, until=until)
        return self._task(0, span, "")

    def counted(self) -> dict[int, int]:
        """Count the changes in each range."""
        counted = Counter[int]()
        for changes in self.changes:
            counted.update(changes.rendered.counted())
        return counted

    def _stamps(self) -> deque[tuple[int, str]]:
        """List the latest time in each range, in forms that number their changes."""
        latest: dict[int, str] = {}
        for changes in self.changes:
            for label, stamp in changes.stamps.items():
                latest[label] = max(latest.get(label, ""), stamp)
        return deque(sorted(latest.items()))

    def _task(self, number: int, span: PartSpan, stamp: str) -> Write:
        rendered = [changes.rendered for changes in self.changes]
        return Write(
            name=f"parts-{number:06d}",
            conversion=self.conversion,
            # Not all: with hundreds of ranges and files most of a task would be of no use to it.
            rendered=within(rendered, span.range, span.until),
            span=span,
            stamp=stamp,
            tables=self.tables,
            folder=self.folder,
            staged=self.staged,
        )


def last_number(after: str, changes: int, written: Sequence[WrittenChanges]) -> str:
    """Return the change_seq of the last of so many changes; `after` if they are not numbered."""
    stamps = [stamp for changes_written in written for stamp in changes_written.stamps.values()]
    stamp = max(stamps, default="")
    if not stamp:
        return after
    from eventlog.qlik.change_seq import ChangeSeq

    return ChangeSeq.parse(after).later(changes, stamp).text


def produce(task: Write | WriteOutcomes) -> int:
    """Write parts or the outcomes; return how many."""
    if isinstance(task, WriteOutcomes):
        file = Path(task.staged) / OUTCOMES_FILE
        return write_outcomes(file, _outcomes(task), streamed=task.streamed)
    conversion = task.conversion
    changes = InTheirOrder(task)
    parts = Parts(
        first=task.span.first,
        before=changes.before,
        part_events=conversion.part_events,
        stamp=changes.stamp,
        start=conversion.after,
    )
    form = form_of(conversion, task.tables)
    assert isinstance(form, FileForm)
    return form.write(Path(task.staged), changes.batches, parts)


class InTheirOrder:
    """A task's changes in the order of their positions, or of the ends of their transactions: those
    of its parts. `before` is how many there are before them, and `stamp` is the latest time of
    these.
    """

    def __init__(self, task: Write) -> None:
        span = task.span
        self.stamp, self.before = task.stamp, span.first - span.skipped
        part_events, gathers = task.conversion.part_events, task.conversion.gathers
        batches = _in_order(task)
        first: list[pa.RecordBatch] = []
        # A range may begin with changes of parts before, which are read only for their times.
        for batch in batches:
            if gathers:
                count = bisect_left(integers(batch.column(PART)), span.first // part_events)
            else:
                count = min(len(batch), span.first - self.before)
            if count and STAMP in batch.schema.names:
                self.stamp = max(self.stamp, latest(batch.slice(0, count)))
            self.before += count
            if count < len(batch):
                first = [batch.slice(count)]
                break
        following = chain(first, batches)
        if gathers:
            # Rounded up: the last part may be shorter.
            next_part = -(-span.last // part_events)
            self.batches = _in_parts_before(next_part, following)
        else:
            self.batches = between(following, 0, span.last - span.first)


def _in_order(task: Write) -> Iterator[pa.RecordBatch]:
    """Yield the changes in a task's ranges, in order; each transaction is in one range."""
    spill, gathers = Path(task.folder) / f"{task.name}.spill", task.conversion.gathers
    keys = BY_END if gathers else BY_POSITION
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(
        in_order(read_label(task.rendered, label), keys, spill) for label in labels_of(task.rendered)
    )
    if not gathers:
        return batches
    from eventlog.convert.transactions import count_rows, in_whole_parts

    if task.conversion.counts:
        batches = count_rows(batches)
    return in_whole_parts(batches, task.span.first - task.span.skipped, task.conversion.part_events)


def between(batches: Iterable[pa.RecordBatch], first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows from one number to before another, counted from 0."""
    start = 0
    for batch in batches:
        rows = batch.slice(max(0, first - start), max(0, last - max(first, start)))
        start += len(batch)
        if len(rows):
            yield rows
        if start >= last:
            return


def _in_parts_before(part: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows before those of a part."""
    for batch in batches:
        rows = batch.slice(0, bisect_left(integers(batch.column(PART)), part))
        if len(rows):
            yield rows
        if len(rows) < len(batch):
            return


def _outcomes(task: WriteOutcomes) -> Iterator[pa.RecordBatch]:
    spill = Path(task.folder) / f"{task.name}.spill"
    keys = BY_PLACE if task.streamed else OUTCOME_ORDER
    for label in labels_of(task.ended):
        for batch in in_order(read_label(task.ended, label), keys, spill):
            outcomes = batch
            if task.refused:
                rows = batch.to_pylist()
                # Of a log it is the position, of a stream the place.
                number = batch.schema.names[0]
                verdict = {"status": Status.ERROR.value, "reason": Reason.REFUSED.value}
                for row in rows:
                    if row[number] in task.refused:
                        row |= {**verdict, "note": task.refused[row[number]]}
                outcomes = pa.RecordBatch.from_pylist(rows, batch.schema)
            yield outcomes
            advance(len(batch))


def write_outcomes(file: Path, batches: Iterable[pa.RecordBatch], *, streamed: bool = False) -> int:
    """Write outcomes given in their order (`partitions.OUTCOME_ORDER`); return how many.

    A stream's positions are texts, beside the numbers for their order.
    """
    written = 0
    schema, encoded = OUTCOMES, ENCODED
    if streamed:
        schema, encoded = WRITTEN_OUTCOMES, {"compression": "zstd"}
        # Without the numbers, which are their first column.
        batches = (pa.RecordBatch.from_arrays(batch.columns[1:], schema=WRITTEN_OUTCOMES) for batch in batches)
    try:
        with parquet.ParquetWriter(file, schema, **encoded) as writer:
            for group in _groups(batches, schema):
                writer.write_table(group, row_group_size=GROUP_ROWS)
                written += len(group)
    except OSError as error:
        raise cannot_write(file.parent, error) from error
    return written


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows in tables of GROUP_ROWS, the last one shorter."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += len(batch)
        while rows >= GROUP_ROWS:
            table = pa.Table.from_batches(held, schema)
            yield table.slice(0, GROUP_ROWS).combine_chunks()
            rows -= GROUP_ROWS
            held = table.slice(GROUP_ROWS).to_batches()
    if rows:
        yield pa.Table.from_batches(held, schema).combine_chunks()


MOST_OPEN_PLACES: Final = 200
"""Files that are open at once; systems allow 256 or more to a process."""


class OpenFiles:
    """Files that are begun anew, and grow until they are closed together."""

    def __init__(self, buffering: int) -> None:
        self._buffering = buffering
        self._open: OrderedDict[Path, BinaryIO] = OrderedDict()
        self.begun: dict[Path, None] = {}
        """All files so far, in the order in which they were begun."""

    def write(self, path: Path, content: bytes | memoryview) -> None:
        """Append to a file."""
        file = self._open.get(path)
        if file is None:
            file = self._open_file(path)
        elif len(self._open) > 1:
            # The one that was not written to for the longest time is the first to be closed.
            self._open.move_to_end(path)
        file.write(content)

    def close(self) -> None:
        """Close all files; later writes begin new ones."""
        while self._open:
            self._open.popitem()[1].close()
        self.begun = {}

    def _open_file(self, path: Path) -> BinaryIO:
        if len(self._open) >= MOST_OPEN_PLACES:
            self._open.popitem(last=False)[1].close()
        if path in self.begun:
            # It was closed so that others could be open.
            file: BinaryIO = path.open("ab", buffering=self._buffering)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb", buffering=self._buffering)
            self.begun[path] = None
        self._open[path] = file
        return file
