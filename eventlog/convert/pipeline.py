"""The one way of a conversion, on every engine; an engine brings rows together by their objects and
runs the tasks.

    decided    rows by objects through the step, into files by ranges of positions: the engine's
    contested  only where a record_id may stand twice; then all is decided once more
    gathered   only where transactions are to be whole: changes to the ranges of where these end
    written    ranges to parts and outcomes; or sent, and then only outcomes

Captured streams take a shorter way: their images are whole and in their order, so pieces are read
and written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from eventlog.cli.watching import Counting, RowTally
from eventlog.convert.collecting import Gather, WrittenChanges, gather
from eventlog.convert.commit import Summary
from eventlog.convert.forms import SentForm, form_of
from eventlog.convert.partitions import PartitionFile, labels_of, within
from eventlog.convert.sending import Sent, send
from eventlog.convert.settings import Conversion, SentMessages, SentTables, StreamInput
from eventlog.convert.tasks import Compare, DecidedBucket, DecidedRows, count_left, find_contested, may_conflict
from eventlog.convert.transactions import unknown_transactions
from eventlog.convert.work import Task
from eventlog.convert.writing import InTheirOrder, PartTasks, Write, WriteOutcomes, last_number, produce
from eventlog.core.plural import count_words
from eventlog.core.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from eventlog.convert.marks import Marking
    from eventlog.convert.streams import StreamResult

Result = TypeVar("Result")
PUBLISHED = "S published"
REFUSED = "E refused"


class ConversionWatch(Protocol):
    """Shows how far a conversion is."""

    def begin(self, stage: str, rows: int | None, tally: Counting) -> None:
        """Begin a stage of so many rows, if known; the tally counts on."""


class Unwatched:
    """Nobody looks."""

    def begin(self, stage: str, rows: int | None, tally: Counting) -> None: ...


class Engine(Protocol):
    """Who does the work of a conversion."""

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
        """Run tasks and return their results in order; `keep` them for a resumed run."""

    def decided(self, conflicts: Sequence[PartitionFile]) -> DecidedRows:
        """Bring rows together by object and run the step; `conflicts` are files of record_ids."""

    def release(self) -> None:
        """Free the disk of rows already decided."""


class ConversionRun:
    """One conversion on its way. `folder` is for what is only needed meanwhile, `staged` for the
    output.
    """

    def __init__(
        self,
        conversion: Conversion,
        engine: Engine,
        folder: str,
        staged: str,
        watch: ConversionWatch,
        marking: Marking | None = None,
    ) -> None:
        self._conversion = conversion
        self._engine = engine
        self._folder = folder
        self._staged = staged
        self._watch = watch
        self._marking = marking

    def converted(self) -> Summary:
        """Convert everything and return the summary."""
        if not isinstance(self._conversion.input, StreamInput):
            return self._decide()
        from eventlog.convert.streams import StreamResult, pieces_of, read_piece

        # Pieces of a stream are read side by side, and what they hold is written in their order.
        tasks = pieces_of(self._conversion, self._folder)
        pieces = until_damage(self._engine.run("reading", read_piece, tasks, StreamResult))
        ended = [piece.ended for piece in pieces]
        return self._write(stream_summary(pieces), ended, pieces, tables_of(pieces))

    def _decide(self) -> Summary:
        decided = self._engine.decided(())
        if may_conflict(decided.numbers):
            conflicts = self._find_contested(decided.buckets)
            # All once more: an object may have been decided with a row that counts for none.
            if conflicts:
                decided = self._engine.decided(conflicts)
        self._engine.release()
        units, buckets = decided.numbers, decided.buckets
        rows = sum(unit.rows for unit in units)
        summary = replace(summary_of(rows, buckets), left=count_left(units))
        ended = [bucket.ended for bucket in buckets]
        if not self._conversion.gathers:
            return self._write(summary, ended, buckets)
        summary = replace(summary, notes=unknown_transactions(units))
        return self._write(summary, ended, self._gather(decided, summary.changes))

    def _gather(self, decided: DecidedRows, changes: int) -> list[WrittenChanges]:
        """Bring changes to the ranges in which their transactions end."""
        rendered = tuple(bucket.rendered for bucket in decided.buckets)
        ends = [bucket.ends for bucket in decided.buckets if bucket.ends is not None]
        tasks = [
            Gather(
                name=f"gathered-{label:04d}",
                conversion=self._conversion,
                label=label,
                rendered=within(rendered, label, label),
                ends=within(ends, label, label),
                boundaries=decided.boundaries,
                folder=self._folder,
            )
            for label in labels_of(rendered)
        ]
        stage = "gathering transactions"
        gathered = self._engine.run(stage, gather, tasks, WrittenChanges, rows=changes)
        for file in (*rendered, *ends):
            # They may be gone: a run that resumes finds the tasks done, and comes here once more.
            Path(file.path).unlink(missing_ok=True)
        return gathered

    def _find_contested(self, buckets: Sequence[DecidedBucket]) -> list[PartitionFile]:
        """Find the record_ids with several outcomes, in order."""
        ended = tuple(bucket.ended for bucket in buckets)
        tasks = [
            Compare(
                name=f"compare-{label:04d}",
                ended=within(ended, label, label),
                label=label,
                folder=self._folder,
            )
            for label in labels_of(ended)
        ]
        files = self._engine.run("comparing numbers", find_contested, tasks, PartitionFile)
        return [file for file in files if file.labels]

    def _write(
        self,
        summary: Summary,
        ended: Sequence[PartitionFile],
        changes: Sequence[WrittenChanges],
        tables: dict[int, Table] | None = None,
    ) -> Summary:
        """Write or send everything; return the summary with the number of parts or documents."""
        tasks = PartTasks(
            conversion=self._conversion,
            changes=tuple(changes),
            ended=tuple(ended),
            tables=tables,
            folder=self._folder,
            staged=self._staged,
        )
        if isinstance(self._conversion.format, SentTables | SentMessages):
            # Before the first document goes: what is with a receiver cannot be taken back.
            if self._marking is not None:
                self._marking.plan()
            sent = self._send(self._conversion.format, tasks)
            self._produce(ended, [], summary.rows, sent.refused)
            return with_refused(replace(summary, parts=sent.documents), len(sent.refused))
        last = last_number(self._conversion.after, summary.changes, changes)
        parts = self._produce(ended, list(tasks.each()), summary.rows)
        return replace(summary, parts=parts, change_seq=last)

    def _send(self, target: SentTables | SentMessages, tasks: PartTasks) -> Sent:
        """Send all changes from this process, in the order of their positions."""
        whole, tally = tasks.whole(), RowTally()
        self._watch.begin("sending", whole.span.last, tally)

        def pass_on() -> Iterator[pa.RecordBatch]:
            for batch in InTheirOrder(whole).batches:
                tally.rows += len(batch)
                yield batch

        form = form_of(self._conversion, tasks.tables)
        assert isinstance(form, SentForm)
        return send(target, form, pass_on(), Path(self._folder))

    def _produce(
        self,
        ended: Sequence[PartitionFile],
        parts: Sequence[Write],
        rows: int,
        refused: Mapping[int, str] | None = None,
    ) -> int:
        """Write the outcomes and the parts; return how many parts."""
        outcomes = WriteOutcomes(
            name="outcomes",
            ended=tuple(ended),
            folder=self._folder,
            staged=self._staged,
            streamed=isinstance(self._conversion.input, StreamInput),
            refused=dict(refused or {}),
        )
        tasks: list[Write | WriteOutcomes] = [outcomes, *parts]
        # The staged files go with an interrupted run, so their tasks are none that could be taken
        # as done.
        counts = self._engine.run("writing", produce, tasks, int, rows=rows, keep=False)
        # The first of them wrote the outcomes, and no part.
        return sum(counts[1:])


def summary_of(rows: int, decided: Sequence[DecidedBucket]) -> Summary:
    """Sum up the steps of a conversion."""
    outcomes = Counter[str]()
    for bucket in decided:
        outcomes.update(bucket.outcomes)
    summary = Summary(
        rows=rows,
        duplicates=sum(bucket.duplicates for bucket in decided),
        changes=sum(sum(bucket.rendered.rows) for bucket in decided),
    )
    return with_outcomes(summary, outcomes)


def stream_summary(pieces: Sequence[StreamResult]) -> Summary:
    """Sum up the pieces of a stream."""
    rows = sum(sum(piece.ended.rows) for piece in pieces)
    notes = tuple(dict.fromkeys(note for piece in pieces for note in piece.notes))
    damage = next((piece.damage for piece in pieces if piece.damage is not None), None)
    lost = sum(piece.lost for piece in pieces)
    missing = []
    if damage is not None:
        missing.append(f"{damage} Everything before it is converted.")
    if lost:
        records = f"{count_words(lost, 'record')} that could not be understood"
        missing.append(f"Left out: {records}. The others are converted.")
    summary = summary_of(rows, pieces)
    return replace(summary, notes=notes, damage=" ".join(missing) or None)


def with_refused(summary: Summary, refused: int) -> Summary:
    """Count so many published rows as refused."""
    moved = Counter(summary.outcomes)
    moved[PUBLISHED] -= refused
    moved[REFUSED] += refused
    return with_outcomes(summary, moved)


def until_damage(pieces: Sequence[StreamResult]) -> list[StreamResult]:
    """Return the pieces up to the first damaged one: nothing behind it is converted."""
    damaged = [number for number, piece in enumerate(pieces, 1) if piece.damage is not None]
    if not damaged:
        return list(pieces)
    # With the damaged one itself: what stands before the damage is converted.
    return list(pieces[: damaged[0]])


def tables_of(pieces: Sequence[StreamResult]) -> dict[int, Table]:
    """Join the tables of all pieces, by number."""
    return {number: table for piece in pieces for number, table in piece.tables.items()}


def with_outcomes(summary: Summary, outcomes: Mapping[str, int]) -> Summary:
    """Return the summary with rows counted by status and reason."""
    statuses = Counter[str]()
    for ended, count in outcomes.items():
        statuses[ended.partition(" ")[0]] += count
    # Those that were moved to another one may be none by now.
    return replace(
        summary,
        statuses={status: count for status, count in sorted(statuses.items()) if count},
        outcomes={ended: count for ended, count in sorted(outcomes.items()) if count},
    )
