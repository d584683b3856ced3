"""Marks the rows of a log with what a conversion made of them. Who marks is a publisher: it has the
log's lock, and a place of its own in the journal for the time that it works, see
`publisher.conversions`.

Before anything of the output appears, its rows are reserved there. Then files beside the output say
whose order it was:

    _UNMARKED   no row is marked yet; nothing is lost when the output is made anew
    _MARKING    some rows may be marked: the output has what no further conversion would find

Both go when all rows are marked, so whoever was interrupted goes on by giving the same order again.
A conversion that was not told to mark reserves nothing; where it is told to later, those of its
rows are marked that are still free then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.convert.commit import MARKING, SUCCESS, UNMARKED
from eventlog.convert.identity import is_its_end, order_of
from eventlog.convert.marked_place import MarkedFolder, MarkedPlace
from eventlog.convert.marked_rows import OutcomesInOrder, batches_of, numbers_in
from eventlog.convert.sending import is_sending
from eventlog.convert.settings import Conversion, LogInput
from eventlog.convert.withheld import NOTHING, Withheld, has_holds, withheld_by
from eventlog.core.errors import InstallError, OccupiedError, SourceError, UsageError
from eventlog.core.model import Status
from eventlog.core.plural import count_words
from eventlog.sources.marks import Stretches

if TYPE_CHECKING:
    from eventlog.care.conversions import ConversionJournal, Kept
    from eventlog.convert.partitions import PartitionFile
    from eventlog.sql.log import Log

LEASE_SECONDS: Final = 60.0
"""A conversion that is frozen for longer loses the log to a publisher; one that was killed loses it
at once on this machine.
"""

RESERVED: Final = "reserved"
"""Stands in the files below the order, where the journal has reserved its rows."""

TRIES: Final = 3
"""So often rows are looked at again that somebody may have held meanwhile."""


class Marked(Struct, frozen=True, kw_only=True):
    """How many rows have their letters now. Those that were converted and are not free are `left`;
    `kept_for` are paused outputs that get the rows when they are resumed, until when they stay N;
    `passed` are the others, which do not get them.
    """

    rows: int
    left: int = 0
    kept_for: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """What is not as one expects of rows that were marked."""
        if self.left:
            why = "somebody holds them, or an output waits for them"
            yield f"{count_words(self.left, 'row')} of DEST stay N: {why}."
        for name in self.kept_for:
            yield f"{name} is paused, or was, and gets the rows too; they stay N until then."
        if self.rows and self.passed:
            names = ", ".join(self.passed)
            yield f"These rows are over for the outputs {names} too: they get them from DEST alone, for none was paused."


class Marking:
    """The place of a conversion in the journal of a log, while it has the lock."""

    def __init__(
        self,
        conversion: Conversion,
        output: MarkedPlace,
        log: Log,
        journal: ConversionJournal,
    ) -> None:
        self.withheld: Withheld = NOTHING
        self._conversion = conversion
        self._output = output
        self._log = log
        self._journal = journal
        self._order = order_of(conversion) or ""
        self._kept: Kept | None = None
        self._is_empty = False

    @property
    def order(self) -> str:
        """What stands in the files beside the output."""
        return f"{self._order}\n{RESERVED}"

    def begin(self, *, sending: bool) -> None:
        """Takes the place. What a former try has reserved is given back, unless it was interrupted
        while it sent.
        """
        with _in_our_words():
            self._journal.refuse_other()
            if sending:
                self._confirm()
                return
            unmarked = self._output.read(UNMARKED)
            if unmarked is not None:
                # The note must not say that rows are reserved when they are given back below: the
                # output can be made anew, and if it is not, those rows are marked that are free.
                self._output.write(UNMARKED, f"{_order_in(unmarked)}\n".encode())
            self._journal.give_back()
            self._look()

    def _look(self) -> None:
        """Sees what is not to be taken."""
        from eventlog.care.conversions import read_kept

        # Before holds are read: rows that an output lacks are parked for it, and can be passed then.
        self._journal.park_lagging()
        self._kept = read_kept(self._journal)
        self.withheld = withheld_by(self._kept, self._log, self._conversion.catalog)

    def reserve(self, ended: Sequence[PartitionFile], row_bytes: int) -> None:
        """Reserves the rows that have outcomes, in files."""
        arrays = (batch.column(0) for file in ended for batch in file.read(columns=["position"]))
        self.reserve_numbers(numbers_in(arrays), row_bytes)

    def reserve_numbers(self, numbers: Stretches, row_bytes: int) -> None:
        """Reserves rows; SourceError where they are not free any more, and the work is in vain."""
        with _in_our_words():
            # They are where an interrupted run that had reserved them is gone on with.
            if not self._journal.is_reserved:
                self._reserve(numbers, row_bytes)

    def _reserve(self, numbers: Stretches, row_bytes: int) -> None:
        from eventlog.publisher.plans import HoldsChangedError

        self._is_empty = not numbers
        for _ in range(TRIES):
            assert self._kept is not None
            # Somebody may have held one of them since holds were read.
            with suppress(HoldsChangedError):
                self._journal.reserve(batches_of(numbers, row_bytes), self._kept)
                return
            self._look()
            free, _ = self._free()
            if numbers - free:
                break
        what = f"Rows of the event log {self._log.name} were held, or taken away"
        message = f"{what}, while they were converted; none is marked."
        raise SourceError(message, hint="Give the same command again.")

    def confirm(self) -> None:
        """Refuses to let an output appear whose rows somebody has given back to publishers."""
        with _in_our_words():
            self._confirm()

    def _confirm(self) -> None:
        # Without rows nothing is reserved, and nothing can have been given back.
        if not self._is_empty and not self._journal.is_reserved:
            message = f"The rows of this conversion were given back: {self._journal.name} was forgotten."
            hint = "Choose another folder; what was sent is with its receiver already."
            raise UsageError(message, hint=hint)

    def give_back(self) -> None:
        """Gives its rows back, unless the output is there, after an error."""
        # Where nobody can see whether it is there, nothing is given back: rows that were converted
        # and are free again would be published twice.
        is_there = True
        with suppress(Exception):
            is_complete = self._output.read(SUCCESS) is not None
            is_there = is_complete and _is_reserved(self._output.read(UNMARKED))
        if not is_there:
            # Without the database they stay reserved; who gives the order again gives them back.
            with suppress(SourceError):
                self._journal.give_back()

    # --- when the output is there -----------------------------------------------------------------

    def finish(self) -> Marked:
        """Marks the rows of the complete output that are still to be marked."""
        with _in_our_words():
            self._journal.refuse_other()
            self._output.tidy()
            left = self._reserve_free_rows()
            unmarked, being_marked = self._output.read(UNMARKED), self._output.read(MARKING)
            order = f"{self.order}\n".encode()
            has_note = unmarked is not None or being_marked is not None
            if has_note and being_marked != order:
                # From now on rows may be marked, so this note comes first and the other one goes
                # after it: in between a crash leaves both, and never none.
                self._output.write(MARKING, order)
            self._output.remove(UNMARKED)
            rows = self._mark()
            kept_for, passed = self._journal.finish()
            self._output.remove(MARKING)
            return Marked(rows=rows, left=left, kept_for=tuple(kept_for), passed=tuple(passed))

    def _mark(self) -> int:
        marked = 0
        with self._output.outcomes() as files, OutcomesInOrder(files) as outcomes:
            for number, records in self._journal.list_reserved().items():
                # A batch may be empty when all of its rows have gone; then nothing is read for it.
                last = -(2**63)
                if records:
                    last = records.parts[-1][1]
                known, others = outcomes.upto(last)
                marked += self._journal.mark(number, known, others)
        return marked

    def _reserve_free_rows(self) -> int:
        """Reserves what can be marked of an output that was made without being told to; how many
        rows cannot be.
        """
        notes = [self._output.read(name) for name in (UNMARKED, MARKING)]
        if self._journal.is_reserved or any(map(_is_reserved, notes)):
            return 0
        # A run that was killed may have reserved some of its batches and not the others.
        self._journal.give_back()
        self._look()
        with self._output.outcomes() as files, OutcomesInOrder(files) as outcomes:
            converted, row_bytes = outcomes.numbers(), outcomes.row_bytes
        free, waiting = self._free()
        self._reserve(converted & free, row_bytes)
        # What does not wait any more somebody else has published, and it is not left.
        return len((converted & waiting) - free)

    def _free(self) -> tuple[Stretches, Stretches]:
        """The rows that this conversion may take now, and all that wait."""
        from eventlog.convert.reading import read_log
        from eventlog.convert.rows import Placing

        source = self._conversion.input
        assert isinstance(source, LogInput)
        placing = Placing(self._conversion.catalog)
        free, waiting = [], []
        for rows in read_log(source):
            taken, _ = self.withheld.divide(placing.place(rows))
            free.append(taken.column("record_id"))
            waiting.append(rows.column("record_id"))
        return numbers_in(free), numbers_in(waiting)


@contextmanager
def marking(conversion: Conversion, output: MarkedPlace | None = None) -> Iterator[Marking]:
    """The lock of a log and a place in its journal; OccupiedError while a publisher has the lock.
    The output is made at its place, which is a folder where nobody says otherwise.
    """
    from eventlog.care.conversions import ConversionJournal, conversion_name
    from eventlog.sources.log.lock import LogLock

    source = conversion.input
    assert isinstance(source, LogInput)
    output = output or MarkedFolder(conversion.destination)
    with _log(source) as log:
        lock = LogLock(log, LEASE_SECONDS)
        if not lock.take():
            raise OccupiedError(
                f"Another publisher works on the event log {log.name}.",
                hint="Stop it, and let the conversion do this; or convert without --mark.",
            )
        try:
            name, order = conversion_name(output.name), order_of(conversion) or ""
            journal = ConversionJournal(log, lock, name, order, conversion.catalog)
            yield Marking(conversion, output, log, journal)
        except BaseException:
            # The first error is the one to show; the lock goes with its lease in any case.
            with suppress(SourceError):
                lock.leave()
            raise
        lock.leave()


@contextmanager
def placed(
    marking: Marking | None,
    work: Path | None = None,
    *,
    sending: bool = False,
) -> Iterator[None]:
    """The place of a conversion from its begin until the output is there, where it marks. After an
    error its rows are given back, unless some of them may be with a receiver, as the folder of its
    work says.
    """
    if marking is None:
        yield
        return
    marking.begin(sending=sending)
    try:
        yield
    except BaseException:
        if work is None or not is_sending(work):
            marking.give_back()
        raise


@contextmanager
def _in_our_words() -> Iterator[None]:
    """A publisher that has lost the lock stands by; a conversion ends."""
    try:
        yield
    except OccupiedError as error:
        cause = "It took the log over while this conversion was stopped."
        hint = f"{cause} Stop it, and give the same command again."
        raise OccupiedError(error.message, hint=hint) from error


def can_be_marked(source: object) -> None:
    """Refuses, before anything is converted, what could not be marked afterwards."""
    assert isinstance(source, LogInput)
    if set(source.statuses) != {Status.NEW.value}:
        raise UsageError("--mark marks rows that wait, so it takes no other --status than N.")
    with _log(source) as log:
        log.check()
        if not has_holds(log.engine, log.names):
            message = f"The event log {log.name} has no journal, which says whose its rows are."
            raise InstallError(message, hint=f"`eventlog upgrade --log {log.name}` makes it.")


@contextmanager
def _log(source: LogInput) -> Iterator[Log]:
    from eventlog.sql.connect import connect, limit_sessions
    from eventlog.sql.findlog import log_columns
    from eventlog.sql.log import Log

    engine = connect(source.url)
    limit_sessions(engine, None, None, LEASE_SECONDS)
    try:
        yield Log(engine, log_columns(engine, source.names, source.columns))
    finally:
        engine.dispose()


def waits_for_marks(conversion: Conversion, output: MarkedPlace | None = None) -> bool:
    """Whether the complete output of this very order is there, and rows of it are not marked.

    Who says to overwrite it gets it made anew as long as nothing is lost by that.
    """
    output = output or MarkedFolder(conversion.destination)
    ended = output.read(SUCCESS)
    if ended is None:
        return False
    names = [MARKING]
    if not conversion.overwrite:
        names.append(UNMARKED)
    notes = [note for name in names if (note := output.read(name)) is not None]
    if any(_order_in(note) == order_of(conversion) for note in notes):
        return True
    # On HDFS a file is seen before it has its content: who is killed then leaves an empty one.
    return b"" in notes and is_its_end(ended, conversion)


def _order_in(note: bytes) -> str:
    return note.decode(errors="replace").partition("\n")[0].strip()


def _is_reserved(note: bytes | None) -> bool:
    return note is not None and RESERVED in note.decode(errors="replace").split()
