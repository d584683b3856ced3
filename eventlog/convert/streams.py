"""Streams in bulk: each piece of a captured stream becomes written changes and outcomes, in the
order in which it is read.

Images are whole and come in the order of their commits, so nothing is brought together and nothing
is read back. A piece is a range that can be read by itself; the labels, places and tables of
piece number n begin at n times a large number, so that pieces which were read side by side follow
each other in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from eventlog.convert.collecting import latest
from eventlog.convert.forms import (
    STAMP,
    Form,
    InTurn,
    Rendering,
    form_of,
    outcomes_of,
    table_numbers,
)
from eventlog.convert.partitions import partition_file
from eventlog.convert.rows import STREAM_OUTCOMES
from eventlog.convert.settings import Conversion, StreamInput
from eventlog.convert.tasks import DecidedBucket
from eventlog.convert.work import ConversionTask, advance
from eventlog.core.errors import DamageError, DataError, SourceError
from eventlog.core.model import Image, Outcome, Position, format_position
from eventlog.core.plural import count_words
from eventlog.core.schema import Catalog, Table
from eventlog.sources.gbase.files import Split, splits
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.images import decide_images
from eventlog.sources.stream.source import ImageBatch

PIECE_LABELS: Final = 1_000_000
PIECE_PLACES: Final = 1 << 40
PIECE_TABLES: Final = 10_000
LABEL_IMAGES: Final = 60_000
"""Images under one label: few enough to be put in order in memory."""

MOST_NOTES: Final = 20


class ReadPiece(ConversionTask, frozen=True, kw_only=True):
    """One piece of a stream, to be read: a split of a file, or all files one after the other."""

    number: int
    split: Split | None


class StreamResult(DecidedBucket, frozen=True, kw_only=True):
    """What came of a piece. `tables` are by their numbers; `notes` say what was odd, `damage` what
    ended it.

    `lost` are records that were left out although they may have had changes.
    """

    tables: Mapping[int, Table] = {}
    notes: tuple[str, ...] = ()
    damage: str | None = None
    lost: int = 0


def pieces_of(conversion: Conversion, folder: str) -> list[ReadPiece]:
    """Cut the input into pieces; only a single binary file of GBase's has several.

    A transaction may go on in the next file.
    """
    source = conversion.input
    assert isinstance(source, StreamInput)
    path = Path(source.places[0])
    cut: Sequence[Split | None] = [None]
    plain = len(source.places) == 1 and path.is_file() and path.suffix.lower() != ".hex"
    if isinstance(source.settings, GBaseSettings) and plain and not source.settings.dirty:
        cut = splits(path, largest=source.settings.largest_record) or [None]
    return [
        ReadPiece(
            name=f"piece-{number:06d}",
            conversion=conversion,
            number=number,
            split=split,
            folder=folder,
        )
        for number, split in enumerate(cut)
    ]


def read_piece(task: ReadPiece) -> StreamResult:
    """Read a piece to its end, or to its damaged place."""
    folder, form = Path(task.folder), form_of(task.conversion, {})
    with (
        partition_file(folder / f"{task.name}-changes.arrow", form.schema) as rendered,
        partition_file(folder / f"{task.name}-outcomes.arrow", STREAM_OUTCOMES) as ended,
    ):
        reading = PieceReading(task, form)
        for written in reading.results():
            file = ended if written.is_outcomes else rendered
            file.write(written.label, written.rows)
        return StreamResult(
            rendered=rendered.finished(),
            ended=ended.finished(),
            outcomes=dict(reading.counted),
            stamps=reading.stamps,
            tables=reading.tables,
            notes=tuple(reading.notes),
            damage=reading.damage,
            lost=reading.lost,
        )


class StreamRows(NamedTuple):
    """Changes as they were written, or outcomes, under a label."""

    label: int
    rows: pa.RecordBatch
    is_outcomes: bool = False


class PieceReading:
    """A piece as it is read, batch after batch."""

    def __init__(self, task: ReadPiece, form: Form) -> None:
        self.counted = Counter[str]()
        self.stamps: dict[int, str] = {}
        self.tables: dict[int, Table] = {}
        self.notes: list[str] = []
        self.damage: str | None = None
        self.lost = 0
        self._task = task
        self._form = form
        self._image_number = task.number * PIECE_PLACES
        self._images = 0
        self._catalog: Catalog | None = None
        self._rendering: Rendering | None = None
        self._in_turn = InTurn()

    def results(self) -> Iterator[StreamRows]:
        """Read batch after batch, and yield what is written of each."""
        try:
            for batch in batches(self._task, self._note, self._lose):
                yield from self._take(batch)
        except DamageError as error:
            split = self._task.split
            if split is None:
                source = self._task.conversion.input
                assert isinstance(source, StreamInput)
                origin, offset = ", ".join(source.places), error.offset
            else:
                # A split is read with a range before it, so its offsets are not the file's.
                origin, offset = split.path, split.in_file(error.offset)
            self.damage = f"{origin}, byte {offset}: {error.problem}."
        except (DataError, SourceError) as error:
            self.damage = str(error)
        # The last change is held until it is known that none of its transaction follows.
        if self._rendering is not None:
            self._in_turn.end(self._rendering)
            yield from self._store(self._label(max(self._images - 1, 0)), self._rendering)

    def _take(self, batch: ImageBatch) -> Iterator[StreamRows]:
        images = batch.images
        rendering = self._rendering_of(batch.catalog)
        decision = decide_images(images, batch.catalog, self._task.conversion.options)
        # Positions are several numbers; this one number orders the images of all pieces.
        numbers = {image.position: self._image_number + number for number, image in enumerate(images, 1)}
        for change in decision.changes:
            rendering.take(change, numbers[change.positions[-1]])
        self._image_number += len(images)
        label = self._label(self._images)
        self._images += len(images)
        yield from self._store(label, rendering)
        refused, rendering.refused = outcomes_of(rendering.refused), []
        # The form comes after the rules, so what it refuses has the last word.
        outcomes = self._end(images, numbers, {**decision.outcomes.others, **refused})
        yield StreamRows(label, outcomes, is_outcomes=True)
        advance(len(images))

    def _rendering_of(self, catalog: Catalog | None) -> Rendering:
        """Return the renderer of these tables; a new one if the stream has described others."""
        if self._rendering is None or catalog is not self._catalog:
            # Tables that are described once more get new numbers: what was written keeps its own.
            first = self._task.number * PIECE_TABLES + len(self.tables)
            policy = self._task.conversion.policy(catalog)
            policy.check(whole=False)
            self.tables |= dict(enumerate(policy.catalog or (), first))
            rendering = self._form.rendering(policy.catalog, table_numbers(policy.catalog, first))
            self._catalog, self._rendering = catalog, rendering.behind(policy)
            self._rendering.in_turn = self._in_turn if self._rendering.counts else None
        return self._rendering

    def _label(self, images: int) -> int:
        return self._task.number * PIECE_LABELS + images // LABEL_IMAGES

    def _store(self, label: int, rendering: Rendering) -> Iterator[StreamRows]:
        rows = rendering.rendered()
        if len(rows):
            yield StreamRows(label, rows)
            if STAMP in rows.schema.names:
                self.stamps[label] = max(self.stamps.get(label, ""), latest(rows))

    def _end(
        self,
        images: Sequence[Image],
        numbers: Mapping[Position, int],
        others: Mapping[Position, Outcome],
    ) -> pa.RecordBatch:
        outcomes = [others.get(image.position) or Outcome(position=image.position) for image in images]
        self.counted.update(f"{outcome.status.value} {outcome.reason.value}" for outcome in outcomes)
        columns = [
            pa.array([numbers[outcome.position] for outcome in outcomes]),
            pa.array([format_position(outcome.position) for outcome in outcomes]),
            pa.array([outcome.status.value for outcome in outcomes]),
            pa.array([outcome.reason.value for outcome in outcomes]),
            pa.array([outcome.note for outcome in outcomes]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=STREAM_OUTCOMES)

    def _note(self, note: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append(note)

    def _lose(self, count: int) -> None:
        self.lost += count


def batches(
    task: ReadPiece,
    report: Callable[[str], None],
    lose: Callable[[int], None],
) -> Iterator[ImageBatch]:
    source, known = task.conversion.input, task.conversion.catalog
    assert isinstance(source, StreamInput)
    if isinstance(source.settings, GBaseSettings):
        from eventlog.sources.gbase.files import chunks_of, read_split
        from eventlog.sources.gbase.images import images
        from eventlog.sources.gbase.reader import Item
        from eventlog.sources.stream.spill import spill_to

        chunks: Iterator[bytes]
        if task.split is None:
            paths = [Path(path) for path in source.places]
            chunks = chain.from_iterable(map(chunks_of, paths))
        else:
            chunks = read_split(task.split)
        # Transactions that do not fit into memory wait there for their commit.
        spill = spill_to(Item, Path(task.folder))
        return images(chunks, source.settings, known, report=report, spill=spill, lose=lose)
    return _queue(task, report, lose)


def _queue(
    task: ReadPiece,
    report: Callable[[str], None],
    lose: Callable[[int], None],
) -> Iterator[ImageBatch]:
    from eventlog.sources.linter.exports import export_rows
    from eventlog.sources.linter.images import CommittedRows
    from eventlog.sources.linter.rows import QueueRow
    from eventlog.sources.stream.spill import spill_to

    source = task.conversion.input
    assert isinstance(source, StreamInput)
    assert not isinstance(source.settings, GBaseSettings)
    spill = spill_to(QueueRow, Path(task.folder))
    catalog = task.conversion.catalog
    with closing(CommittedRows(catalog, source.settings, report, spill, lose)) as committed:
        rows = export_rows([Path(path) for path in source.places], source.settings)
        images = committed.images(rows)
        while some := list(islice(images, 10_000)):
            yield ImageBatch(images=some, catalog=committed.catalog)
        if committed.pending:
            transactions = count_words(committed.pending, "open transaction")
            report(f"The queue ends with {transactions}: left out.")
