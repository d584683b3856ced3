"""Conversions that mark: the lock of a log, a place among its outputs, and an output that says whose rows it has.

The note `_UNMARKED` beside an output holds its order until all rows of it are marked. Behind the order stands
`reserved` where the journal keeps the rows for this output: then nothing takes its place, and who gives the
same order again marks the others. A conversion that was not told to mark reserves nothing; where it is told to
later, those of its rows are marked that are still free then.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from eventlog.convert.commit import SUCCESS, UNMARKED, Destination, is_reserved
from eventlog.convert.folders import OUTCOMES_FILE, list_outcome_files
from eventlog.convert.identity import identity_of, is_its_end, takes_waiting_rows
from eventlog.convert.sending import is_sending
from eventlog.convert.settings import Conversion, LogInput
from eventlog.convert.taken import ALL, ConvertedRows, has_journal, open_log
from eventlog.core.errors import InstallError, OccupiedError, SourceError, UsageError
from eventlog.core.model import Status
from eventlog.core.plural import count_words
from eventlog.sources.marks import RowRanges

if TYPE_CHECKING:
    from eventlog.convert.place import ConversionPlace

LEASE_SECONDS: Final = 60.0
"""A conversion that is frozen for longer loses the log to a publisher; one that was killed loses it
at once on this machine.
"""


class MarkedOutput(Protocol):
    """Where an output stands whose rows are marked. `name` is what the journal calls it by."""

    @property
    def name(self) -> str: ...

    def read(self, name: str) -> bytes | None:
        """Read a small file; None where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, or overwrite it."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""

    def tidy(self) -> None:
        """Remove what a run killed after its commit has left."""

    def outcomes(self) -> AbstractContextManager[Sequence[Path]]:
        """Open the files of the outcomes in their order, on this machine until the block is left."""


@contextmanager
def fetch_outcomes(fetch: Callable[[Path], None]) -> Iterator[list[Path]]:
    """Have `fetch` bring the outcomes of a distant output, a file or a folder, to this machine."""
    with tempfile.TemporaryDirectory(prefix="eventlog-") as folder:
        path = Path(folder) / OUTCOMES_FILE
        fetch(path)
        yield list_outcome_files(path)


class Marked(Struct, frozen=True, kw_only=True):
    """How many rows have their statuses now. Those that were converted and are not free are `left`;
    `kept_for` are paused outputs that get the rows when they are resumed, until when they stay N;
    `passed` are the others, which do not get them.
    """

    rows: int
    left: int = 0
    kept_for: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """Yield sentences on rows not marked, and on outputs waiting or passed over."""
        if self.left:
            why = "somebody holds them, or an output waits for them"
            yield f"{count_words(self.left, 'row')} of DEST stay N: {why}."
        for name in self.kept_for:
            yield f"{name} is paused, or was, and gets the rows too; they stay N until then."
        if self.rows and self.passed:
            names = ", ".join(self.passed)
            yield f"These rows are over for the outputs {names} too: they get them from DEST alone, for none was paused."


class Marking:
    """A conversion that marks, while it has the log's lock. It converts the rows that are `taken`."""

    def __init__(self, output: MarkedOutput, place: ConversionPlace, order: str) -> None:
        self.taken: ConvertedRows = ALL
        self.note = f"{order}\nreserved"
        """Stands beside the output."""
        self._output = output
        self._place = place

    def begin(self, *, sending: bool) -> None:
        """Seal the rows, after giving back those of a former try.

        Rows of a try interrupted while it sent are not given back, but taken again.
        """
        with _say_who_has_the_lock():
            self._place.refuse_other()
            if sending:
                self._place.let_appear()
                self.taken = ConvertedRows(RowRanges.union([RowRanges(), *self._place.list_sealed().values()]))
            else:
                self.taken = self._place.seal()

    def plan(self) -> None:
        """Note durably: the output may appear; UsageError if its rows were given back."""
        with _say_who_has_the_lock():
            self._place.let_appear()

    @contextmanager
    def planned(self) -> Iterator[None]:
        """Let the output appear; after an error its rows are given back."""
        self.plan()
        try:
            yield
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Give the rows back after an error, unless the output is there."""
        # Where nobody can see whether it is there, nothing is given back: rows that were converted
        # and are free again would be published twice.
        is_there = True
        with suppress(Exception):
            is_there = self._output.read(SUCCESS) is not None and is_reserved(self._output.read(UNMARKED))
        if not is_there:
            # Without the database they stay reserved; who gives the order again gives them back.
            with suppress(SourceError):
                self._place.give_back()

    def finish(self) -> Marked:
        """Mark the unmarked rows of the complete output."""
        with _say_who_has_the_lock():
            self._place.refuse_other()
            self._output.tidy()
            left, note = 0, self._output.read(UNMARKED)
            if not (self._place.is_planned or is_reserved(note)):
                left = self._seal_converted()
            if note is not None and not note.startswith(self.note.encode()):
                # From now on rows may be marked, and a further conversion would not find them.
                self._output.write(UNMARKED, f"{self.note}\n".encode())
            rows = self._mark()
            kept_for, passed = self._place.leave()
            self._output.remove(UNMARKED)
            return Marked(rows=rows, left=left, kept_for=tuple(kept_for), passed=tuple(passed))

    def _mark(self) -> int:
        from eventlog.convert.outcomes import OutcomesInOrder

        marked = 0
        with self._output.outcomes() as files, closing(OutcomesInOrder(files)) as outcomes:
            for number, records in self._place.list_sealed().items():
                # A batch may be empty when all of its rows have gone; then nothing is read for it.
                last = -(2**63)
                if records:
                    last = records.parts[-1][1]
                known, others = outcomes.read_to(last)
                marked += self._place.mark(number, known, others)
        return marked

    def _seal_converted(self) -> int:
        """Seal the rows of an output made without --mark; return how many cannot be sealed."""
        from eventlog.convert.outcomes import OutcomesInOrder

        with self._output.outcomes() as files, closing(OutcomesInOrder(files)) as outcomes:
            taken = self._place.seal(outcomes.numbers())
        self._place.let_appear()
        return sum(taken.left.values())


@contextmanager
def marking(conversion: Conversion, output: MarkedOutput | None = None) -> Iterator[Marking]:
    """Take the lock of a log; OccupiedError while a publisher has it. The output is made in a folder where
    nobody says otherwise.
    """
    from eventlog.convert.place import ConversionPlace, name_conversion
    from eventlog.sources.log.lock import LogLock

    source = conversion.input
    assert isinstance(source, LogInput)
    output = output or Destination(conversion.destination)
    with open_log(source, LEASE_SECONDS) as log:
        lock = LogLock(log, LEASE_SECONDS)
        if not lock.take():
            raise OccupiedError(
                f"Another publisher works on the event log {log.name}.",
                hint="Stop it, and let the conversion do this; or convert without --mark.",
            )
        try:
            order = identity_of(conversion)
            place = ConversionPlace(log, lock, name_conversion(output.name), order, conversion.catalog)
            yield Marking(output, place, order)
        except BaseException:
            # The first error is the one to show; the lock goes with its lease in any case.
            with suppress(SourceError):
                lock.leave()
            raise
        lock.leave()


@contextmanager
def sealing(
    marking: Marking | None, work: Path | None = None, *, sending: bool = False
) -> Iterator[ConvertedRows | None]:
    """Seal the rows of a conversion with marks until its output is there, and yield those it takes.

    After an error give them back, unless the work folder shows some may be with a receiver.
    """
    if marking is None:
        yield None
        return
    marking.begin(sending=sending)
    try:
        yield marking.taken
    except BaseException:
        if work is None or not is_sending(work):
            marking.give_back()
        raise


def note_beside(conversion: Conversion, identity: str, marking: Marking | None) -> str | None:
    """Return what stands beside an output until its rows are marked; None if they cannot be."""
    if marking is not None:
        return marking.note
    return identity if takes_waiting_rows(conversion) else None


@contextmanager
def _say_who_has_the_lock() -> Iterator[None]:
    """Add a hint to OccupiedError: the lock is another's, and this conversion ends."""
    try:
        yield
    except OccupiedError as error:
        cause = "It took the log over while this conversion was stopped."
        hint = f"{cause} Stop it, and give the same command again."
        raise OccupiedError(error.message, hint=hint) from error


def can_be_marked(source: object) -> None:
    """Refuse, before anything is converted, an input without rows to mark or without a journal."""
    assert isinstance(source, LogInput)
    if set(source.statuses) != {Status.NEW.value}:
        raise UsageError("--mark marks rows that wait, so it takes no other --status than N.")
    with open_log(source) as log:
        log.check()
        if not has_journal(log):
            message = f"The event log {log.name} has no journal, which says whose its rows are."
            raise InstallError(message, hint=f"`eventlog upgrade --log {log.name}` makes it.")


def waits_for_marks(conversion: Conversion, output: MarkedOutput | None = None) -> bool:
    """Return True if the complete output of this very order is there, and rows of it are not marked.

    With --overwrite it is made anew, unless rows are reserved for it.
    """
    output = output or Destination(conversion.destination)
    ended, note = output.read(SUCCESS), output.read(UNMARKED)
    if ended is None or note is None or (conversion.overwrite and not is_reserved(note)):
        return False
    # On HDFS a file is seen before it has its content: who is killed then leaves an empty one.
    order = note.decode(errors="replace").partition("\n")[0].strip()
    return order == identity_of(conversion) if note else is_its_end(ended, conversion)
