"""The engine without Java: the stages of a conversion in the processes of one machine, in bounded memory.

    scatter    units of the input to buckets of whole objects, and a snapshot's tables likewise
    conflicts  only where a record_id may stand twice
    decide     buckets to rendered changes and outcomes, by ranges of positions
    write      ranges to parts and outcomes

Each stage reads what the one before left in the work folder, and removes it once nobody needs it any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from msgspec.structs import replace

from eventlog.convert.chosen import form_of
from eventlog.convert.commit import Destination, Summary
from eventlog.convert.conflicts import FindConflicts, SortNumbers, find_conflicts, may_conflict, sort_numbers
from eventlog.convert.forms import SentForm
from eventlog.convert.inputs import Unit, units
from eventlog.convert.order import ranges
from eventlog.convert.parttasks import PartTasks
from eventlog.convert.plan import bucket_count, fingerprint, range_count
from eventlog.convert.readback import PlacedTable
from eventlog.convert.scatter import Scatter, Scattered, scatter
from eventlog.convert.sending import Sent, is_sending, reach, refuse_other, send
from eventlog.convert.settings import (
    Conversion,
    FilesInput,
    SentMessages,
    SentTables,
    SnapshotRows,
    StreamInput,
)
from eventlog.convert.sheaf import Sheaf
from eventlog.convert.snapshot import snapshot_files
from eventlog.convert.stages import (
    Decide,
    DecidedBucket,
    InTheirOrder,
    SnapshotFiles,
    Write,
    WriteOutcomes,
    decide,
    place,
    produce,
)
from eventlog.convert.streams import StreamResult, pieces_of, read_piece
from eventlog.convert.summaries import (
    stream_summary,
    summary_of,
    tables_of,
    until_damage,
    with_refused,
)
from eventlog.convert.unmarked import order_of
from eventlog.convert.work import SharedTally, Workers, workers
from eventlog.core.errors import DataError, UsageError
from eventlog.core.schema import Table


class ConversionWatch(Protocol):
    """Shows how far a conversion is."""

    def begin(self, stage: str, rows: int | None, tally: SharedTally) -> None:
        """A stage begins that gets through so many rows, if that is known; the tally counts on."""


class Unwatched:
    """Nobody looks."""

    def begin(self, stage: str, rows: int | None, tally: SharedTally) -> None: ...


def convert(
    conversion: Conversion, *, jobs: int | None = None, resume: bool = False, watch: ConversionWatch | None = None
) -> Summary:
    """Converts, with `jobs` processes (default: as many as this process may use cores).

    What a run that was interrupted had done is used again by one that resumes, if the order and the input are the same.
    """
    destination = Destination(conversion.destination)
    reach(conversion.format)
    resume = resume or is_sending(destination.work)
    with destination.occupied(overwrite=conversion.overwrite, resume=resume):
        try:
            summary = _converted(conversion, destination, jobs or cores(), watch or Unwatched())
        except (DataError, UsageError):
            if not is_sending(destination.work):
                destination.discard()
            raise
        destination.commit(summary, order_of(conversion))
    return summary


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _converted(conversion: Conversion, destination: Destination, jobs: int, watch: ConversionWatch) -> Summary:
    """Makes the output, staged for its commit."""
    cut = units(conversion.input) if isinstance(conversion.input, FilesInput) else []
    order = fingerprint(conversion, cut)
    if not conversion.overwrite:
        refuse_other(order, destination.work)
    kept = destination.begun(order)
    tally = SharedTally()
    with workers(jobs, kept, tally) as crew:
        run = _Run(conversion, crew, kept, destination.staged, watch, tally)
        return run.streamed() if isinstance(conversion.input, StreamInput) else run.converted(cut)


class _Run:
    """One conversion on its way through the stages."""

    def __init__(
        self,
        conversion: Conversion,
        crew: Workers,
        folder: Path,
        staged: Path,
        watch: ConversionWatch,
        tally: SharedTally,
    ) -> None:
        self._conversion = conversion
        self._crew = crew
        self._folder = str(folder)
        self._staged = str(staged)
        self._watch = watch
        self._tally = tally

    def converted(self, cut: Sequence[Unit]) -> Summary:
        """Goes through all stages; the summary counts what they did."""
        buckets = bucket_count(cut)
        scattered = self._scatter(cut, buckets)
        snapshot = self._place(buckets)
        rows = sum(unit.rows for unit in scattered)
        sampled = [number for unit in scattered for number in unit.sampled]
        boundaries = ranges(sampled, range_count(rows))
        conflicts = self._conflicts(scattered, boundaries, buckets)
        decided = self._decide([unit.sheaf for unit in scattered], conflicts, snapshot, boundaries, buckets)
        _remove(unit.sheaf for unit in scattered)
        _remove(one.sheaf for one in snapshot if one.sheaf is not None)
        return self._written(summary_of(rows, decided), decided)

    def streamed(self) -> Summary:
        """Reads the pieces of a stream, and writes what they hold in their order."""
        self._watch.begin("reading", None, self._tally)
        pieces = until_damage(self._crew.run(read_piece, pieces_of(self._conversion, self._folder), StreamResult))
        return self._written(stream_summary(pieces), pieces, tables_of(pieces))

    def _scatter(self, cut: Sequence[Unit], buckets: int) -> list[Scattered]:
        files = isinstance(self._conversion.input, FilesInput)
        tasks = [
            Scatter(
                name=f"rows-{number:06d}",
                conversion=self._conversion,
                unit=unit,
                buckets=buckets,
                folder=self._folder,
            )
            for number, unit in enumerate(cut if files else [None])
        ]
        counted = [unit.rows for unit in cut]
        known = sum(rows for rows in counted if rows is not None) if None not in counted and files else None
        self._watch.begin("reading", known, self._tally)
        return self._crew.run(scatter, tasks, Scattered)

    def _place(self, buckets: int) -> list[PlacedTable]:
        """Brings a snapshot to the buckets, if read-backs are answered by one."""
        source, catalog = self._conversion.read_back, self._conversion.catalog
        if not isinstance(source, SnapshotRows) or catalog is None:
            return []
        tasks = [
            SnapshotFiles(name=file.name, conversion=self._conversion, file=file, buckets=buckets, folder=self._folder)
            for file in snapshot_files(source.folder, catalog)
        ]
        self._watch.begin("placing the snapshot", None, self._tally)
        return self._crew.run(place, tasks, PlacedTable)

    def _conflicts(self, scattered: Sequence[Scattered], boundaries: tuple[int, ...], buckets: int) -> list[Sheaf]:
        if not may_conflict(scattered):
            return []
        self._watch.begin("comparing numbers", None, self._tally)
        numbers = self._crew.run(
            sort_numbers,
            [
                SortNumbers(name=f"numbers-{place:06d}", rows=unit.sheaf, boundaries=boundaries, folder=self._folder)
                for place, unit in enumerate(scattered)
            ],
            Sheaf,
        )
        tasks = [
            FindConflicts(
                name=f"conflicts-{label:04d}",
                numbers=tuple(numbers),
                range=label,
                buckets=buckets,
                folder=self._folder,
            )
            for label in range(len(boundaries) + 1)
        ]
        found = self._crew.run(find_conflicts, tasks, Sheaf)
        _remove(numbers)
        return found

    def _decide(
        self,
        rows: Sequence[Sheaf],
        conflicts: Sequence[Sheaf],
        snapshot: Sequence[PlacedTable],
        boundaries: tuple[int, ...],
        buckets: int,
    ) -> list[DecidedBucket]:
        self._watch.begin("deciding", sum(sum(sheaf.rows) for sheaf in rows), self._tally)
        filled = {label for sheaf in rows for label in sheaf.labels}
        tasks = [
            Decide(
                name=f"bucket-{bucket:04d}",
                conversion=self._conversion,
                bucket=bucket,
                rows=tuple(rows),
                conflicts=tuple(conflicts),
                snapshot=tuple(snapshot),
                boundaries=boundaries,
                folder=self._folder,
            )
            for bucket in range(buckets)
            if bucket in filled
        ]
        return self._crew.run(decide, tasks, DecidedBucket)

    def _written(
        self, summary: Summary, decided: Sequence[DecidedBucket], tables: dict[int, Table] | None = None
    ) -> Summary:
        """Writes everything, or sends it; the summary knows then how many parts there are, or documents."""
        ended = tuple(one.ended for one in decided)
        outcomes = WriteOutcomes(
            name="outcomes", ended=ended, folder=self._folder, staged=self._staged, streamed=tables is not None
        )
        tasks = PartTasks(
            conversion=self._conversion,
            decided=tuple(decided),
            tables=tables,
            folder=self._folder,
            staged=self._staged,
        )
        target = self._conversion.format
        if isinstance(target, SentTables | SentMessages):
            sent = self._sent(target, tasks)
            outcomes = replace(outcomes, refused=sent.refused)
            self._produced([outcomes], summary.rows)
            return with_refused(replace(summary, parts=sent.documents), len(sent.refused))
        return replace(summary, parts=self._produced([outcomes, *tasks.each()], summary.rows))

    def _produced(self, tasks: Sequence[Write | WriteOutcomes], rows: int) -> int:
        """Writes the outcomes, and parts; says how many parts."""
        self._watch.begin("writing", rows, self._tally)
        # The staged files go with an interrupted run, so their tasks are none that could be taken as done.
        return sum(self._crew.run(produce, tasks, int, keep=False)[1:])

    def _sent(self, target: SentTables | SentMessages, tasks: PartTasks) -> Sent:
        """Sends all changes, from this process."""
        whole = tasks.whole()
        self._watch.begin("sending", whole.last, self._tally)
        form = form_of(self._conversion, tasks.tables)
        assert isinstance(form, SentForm)
        rendered = InTheirOrder(whole).batches()
        return send(target, form, self._told(rendered), Path(self._folder))

    def _told(self, rendered: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same, counted as it passes."""
        for batch in rendered:
            self._tally.add(len(batch))
            yield batch


def _remove(sheaves: Iterable[Sheaf]) -> None:
    """Gives back the disk that nobody needs any more, also when this runs once again."""
    for sheaf in sheaves:
        Path(sheaf.path).unlink(missing_ok=True)
