"""The engine without Java: the tasks of a conversion in the processes of one machine, in bounded
memory.

Each task reads what the ones before left in the work folder. A run that resumes does not do again
what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from eventlog.convert.commit import Destination, Summary
from eventlog.convert.identity import as_begun, identity_of
from eventlog.convert.marks import Marking, note_beside, sealing
from eventlog.convert.partitions import PartitionFile, labels_of, within
from eventlog.convert.pipeline import ConversionRun, ConversionWatch, Unwatched
from eventlog.convert.plan import bucket_count
from eventlog.convert.sending import is_sending, reach, refuse_other
from eventlog.convert.settings import (
    Conversion,
    LogInput,
    SnapshotRows,
)
from eventlog.convert.snapshot import PlacedTable, snapshot_files
from eventlog.convert.taken import ALL, ConvertedRows, choose_rows
from eventlog.convert.tasks import (
    Decide,
    DecidedBucket,
    DecidedRows,
    Scatter,
    Scattered,
    SnapshotFiles,
    decide,
    find_boundaries,
    place,
    scatter,
)
from eventlog.convert.transactions import refuse_left_rows, refuse_unknown_transactions
from eventlog.convert.work import SharedTally, Task, Workers, cores, workers
from eventlog.core.errors import DataError, UsageError

Result = TypeVar("Result")


def convert(
    conversion: Conversion,
    *,
    jobs: int | None = None,
    watch: ConversionWatch | None = None,
    marking: Marking | None = None,
) -> Summary:
    """Convert with `jobs` processes; by default as many as this process has cores.

    Resume an interrupted run of files if order and input are the same. Resume one of a log only if
    it was sending: other rows it has read may be published by now.
    """
    destination, identity = Destination(conversion.destination), identity_of(conversion)
    refuse_unknown_transactions(conversion)
    sending = is_sending(destination.work)
    resume = sending or not isinstance(conversion.input, LogInput)
    jobs, watch = jobs or cores(), watch or Unwatched()
    with destination.occupy(overwrite=conversion.overwrite, resume=resume):
        try:
            # Not before the folder is ours: a Kafka shuts out whoever sends under the same name.
            reach(conversion.format)
        except BaseException:
            if destination.is_new():
                destination.discard()
            raise
        with sealing(marking, destination.work, sending=sending) as taken:
            try:
                if not conversion.overwrite:
                    refuse_other(identity, destination.work)
                kept, tally = destination.begun(identity), SharedTally()
                conversion = as_begun(conversion, kept)
                with workers(jobs, kept, tally) as crew:
                    engine = LocalEngine(conversion, crew, kept, watch, tally, taken)
                    run = ConversionRun(conversion, engine, str(kept), str(destination.staged), watch, marking)
                    summary = run.converted()
            except (DataError, UsageError):
                # It would end so again. What was being sent stays: a part of it is with a receiver.
                if not is_sending(destination.work):
                    destination.discard()
                raise
            if marking is not None:
                marking.plan()
            destination.commit(summary, note_beside(conversion, identity, marking), identity)
    return summary


class LocalEngine:
    """Brings rows together in files of this machine."""

    def __init__(
        self,
        conversion: Conversion,
        crew: Workers,
        folder: Path,
        watch: ConversionWatch,
        tally: SharedTally,
        taken: ConvertedRows | None = None,
    ) -> None:
        self._conversion = conversion
        self._taken = taken
        self._crew = crew
        self._folder = str(folder)
        self._watch = watch
        self._tally = tally
        self._buckets = bucket_count(conversion.units)

    def run(
        self,
        stage: str,
        function: Callable[[Any], Result],
        tasks: Sequence[Task],
        kind: type[Result],
        *,
        rows: int | None = None,
        keep: bool = True,
    ) -> list[Result]:
        self._watch.begin(stage, rows, self._tally)
        return self._crew.run(function, tasks, kind, keep=keep)

    def decided(self, conflicts: Sequence[PartitionFile]) -> DecidedRows:
        """Scatter rows and snapshot over partitions of whole objects, and decide each."""
        rows = tuple(unit.file for unit in self._scattered)
        numbers = [unit.numbers for unit in self._scattered]
        boundaries, outcome_boundaries = find_boundaries(numbers)
        # Another name: what is kept of a task is found by it, and these are other tasks.
        name = "again" if conflicts else "bucket"
        tasks = [
            Decide(
                name=f"{name}-{bucket:04d}",
                conversion=self._conversion,
                bucket=bucket,
                rows=within(rows, bucket, bucket),
                conflicts=tuple(conflicts),
                snapshot=tuple(self._placed),
                boundaries=boundaries,
                outcome_boundaries=outcome_boundaries,
                folder=self._folder,
            )
            for bucket in labels_of(rows)
        ]
        buckets = self.run("deciding", decide, tasks, DecidedBucket, rows=sum(unit.rows for unit in numbers))
        return DecidedRows(numbers=numbers, buckets=buckets, boundaries=boundaries)

    def release(self) -> None:
        """Also when this runs once again."""
        files = [unit.file for unit in self._scattered]
        files += [table.file for table in self._placed if table.file is not None]
        for file in files:
            # Missing where a run before this one came as far as here.
            Path(file.path).unlink(missing_ok=True)

    @cached_property
    def _scattered(self) -> list[Scattered]:
        source, units = self._conversion.input, self._conversion.units
        taken = self._taken
        if taken is None:
            taken = choose_rows(source, self._conversion.catalog) if isinstance(source, LogInput) else ALL
        refuse_left_rows(self._conversion, taken)
        tasks = [
            Scatter(
                name=f"rows-{number:06d}",
                conversion=self._conversion,
                unit=unit,
                buckets=self._buckets,
                folder=self._folder,
                taken=taken,
            )
            # Without files there is nothing to cut: a log is read by one task.
            for number, unit in enumerate([None] if isinstance(source, LogInput) else units)
        ]
        # How many rows there are is known only where each of the files says it.
        counted = [unit.rows for unit in units if unit.rows is not None]
        is_known = len(counted) == len(units) and not isinstance(source, LogInput)
        rows = sum(counted) if is_known else None
        return self.run("reading", scatter, tasks, Scattered, rows=rows)

    @cached_property
    def _placed(self) -> list[PlacedTable]:
        """Place the snapshot in the partitions, if one answers read-backs."""
        source, catalog = self._conversion.read_back, self._conversion.catalog
        if not isinstance(source, SnapshotRows) or catalog is None:
            return []
        tasks = [
            SnapshotFiles(
                name=file.name,
                conversion=self._conversion,
                file=file,
                buckets=self._buckets,
                folder=self._folder,
            )
            for file in snapshot_files(source, catalog)
        ]
        return self.run("placing the snapshot", place, tasks, PlacedTable)
