"""The destination of a conversion: everything is made in a folder inside it and appears at the end,
`_SUCCESS` last.

A folder without `_SUCCESS` holds nothing complete, whatever was killed when: what an unfinished run
left there is known by the folder it worked in, and goes when the next run begins.
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.convert.folders import OUTCOMES_FILE, cannot_write, list_outcome_files
from eventlog.core.errors import SinkError, UsageError
from eventlog.core.plural import count_words
from eventlog.durable_files import PART, flush, make_folder, protect, write_file

SUCCESS = "_SUCCESS"
DAMAGED: Final = "_DAMAGED"
"""Stands in the place of `_SUCCESS` where a part of a stream is missing."""

IDENTITY: Final = "identity"
"""What `_SUCCESS` holds besides the summary: of which order and input all this was made, see `identity`."""

UNMARKED: Final = "_UNMARKED"
"""Stands there until the rows of a log are marked, see `marks`."""

WORK = "_temporary-eventlog"
STAGED = "output"
"""Begins the name of the folder for the output. Each run has one of its own: on a cluster, tasks of
a run that was killed may write for some seconds more, and nothing of theirs may appear.
"""

MOVING = "moving"
"""Names the folders that are on their way from or to the destination, for who comes after a
crash.
"""

LOCK = "lock"
_names = "|".join([re.escape(OUTCOMES_FILE), SUCCESS, DAMAGED, UNMARKED, WORK, PART])
is_ours = re.compile(rf"part-\d{{5,}}\.xml|{_names}").fullmatch


class Summary(Struct, frozen=True, kw_only=True):
    """What a conversion did; `_SUCCESS` holds it, or `_DAMAGED`. `duplicates` are rows that stood
    in the input once more, as they are.
    """

    rows: int
    duplicates: int = 0
    changes: int = 0
    parts: int = 0
    statuses: Mapping[str, int] = {}
    outcomes: Mapping[str, int] = {}
    """Rows by status and reason, such as "W vanished"."""
    left: Mapping[str, int] = {}
    """Waiting rows that were not taken: held ones, those that an output lacks, and what comes
    behind such rows.
    """
    folders: tuple[str, ...] = ()
    """The folders that were made, where the output is more than part files side by side."""
    change_seq: str = ""
    """The last one that was given, in files of formats that number their changes."""
    notes: tuple[str, ...] = ()
    """What was odd about a stream."""
    damage: str | None = None
    """What of a stream is missing, and what is there: where it is damaged, or that records were
    left out.
    """

    @property
    def bad(self) -> int:
        """Return the number of rows with the status E."""
        return self.statuses.get("E", 0)

    @property
    def line(self) -> str:
        """Write the summary in a line."""
        rows = count_words(self.rows - self.duplicates, "row")
        changes, parts = count_words(self.changes, "change"), count_words(self.parts, "part")
        statuses = ", ".join(f"{status} {count}" for status, count in self.statuses.items())
        line = f"{rows}, {changes}, {parts} ({statuses or 'nothing'})"
        if self.duplicates:
            line += f"; {count_words(self.duplicates, 'duplicate')} left out"
        if self.left:
            reasons = ", ".join(f"{why} {count}" for why, count in self.left.items())
            line += f"; {count_words(sum(self.left.values()), 'row')} left waiting ({reasons})"
        if self.bad:
            line += f"; {self.bad} bad: see outcomes.parquet"
        return f"{line}."


def folders_from(success: bytes) -> tuple[str, ...]:
    """Read the folders of a conversion from its `_SUCCESS`; none from another program's."""
    try:
        return msgspec.json.decode(success, type=Summary).folders
    except msgspec.DecodeError:
        return ()


def success_of(summary: Summary, identity: str) -> bytes:
    """Write the content of `_SUCCESS`."""
    facts = msgspec.to_builtins(summary)
    if identity:
        facts[IDENTITY] = identity
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def summary_from(success: bytes) -> Summary:
    """Read the summary of a complete conversion from its `_SUCCESS`."""
    return msgspec.json.decode(success, type=Summary)


class Destination:
    """A folder that a conversion writes to. `work` is for what is only needed meanwhile, `staged`
    for the output.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / WORK
        self.staged = self.work / f"{STAGED}-{uuid4().hex}"
        self._made = not folder.exists()

    @contextmanager
    def occupy(self, *, overwrite: bool, resume: bool = False) -> Iterator[None]:
        """Prepare the folder and lock it until the block ends.

        Refuse a folder with anything else in it, unless told to overwrite; former output then stays
        until the commit. Keep an interrupted run's work only to `resume` it.
        """
        try:
            self._refuse_occupied(overwrite=overwrite)
            make_folder(self.work)
            # A lock of the system: it goes with the process that has it, however that ends.
            with (self.work / LOCK).open("wb") as lock:
                self._lock(lock.fileno())
                self._clear(resume=resume)
                self.staged.mkdir()
                yield
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def begun(self, fingerprint: str) -> Path:
        """Make the work folder of this order, and remove those of other orders."""
        kept = self.work / fingerprint
        for entry in self.work.iterdir():
            if entry.is_dir() and entry not in (kept, self.staged):
                shutil.rmtree(entry)
        kept.mkdir(exist_ok=True)
        return kept

    def commit(self, summary: Summary, order: str | None = None, identity: str = "") -> None:
        """Move the staged files into place and flush them, `_SUCCESS` or `_DAMAGED` last.

        The order of a conversion of a log stays there until the log's rows are marked.
        """
        try:
            self._refuse_strangers()
            if order is not None:
                (self.staged / UNMARKED).write_text(f"{order}\n")
            # From here on the former output is gone, and `_SUCCESS` was the first of it to go.
            self._remove_former()
            staged = sorted(self.staged.iterdir())
            for file in staged:
                _flush(file, self.folder)
            folders = tuple(entry.name for entry in staged if entry.is_dir())
            if folders:
                # Files are known by their names. Folders have names of tables, so who comes after
                # a crash could not tell them from somebody else's.
                write_file(self.work / MOVING, msgspec.json.encode(folders))
            for file in staged:
                file.replace(self.folder / file.name)
            # Names and contents are on the disk before `_SUCCESS` says that they are.
            flush(self.folder)
            name = SUCCESS
            if summary.damage is not None:
                name = DAMAGED
            success = success_of(replace(summary, folders=folders), identity)
            write_file(self.folder / name, success)
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        self.discard()

    def is_new(self) -> bool:
        """Return True if no interrupted run left its work here."""
        return all(entry.name == LOCK or entry == self.staged for entry in self.work.iterdir())

    def discard(self) -> None:
        """Remove the work folder; the output's too, if it is empty and made here."""
        shutil.rmtree(self.work, ignore_errors=True)
        if self._made and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def tidy(self) -> None:
        """Remove what a run killed after its commit has left, unless another works there."""
        # Without a lock nothing was left, and who has it is still at work.
        with suppress(OSError, SinkError), (self.work / LOCK).open("rb") as lock:
            self._lock(lock.fileno())
            self.discard()

    # --- for the marking of rows, see `marks` -----------------------------------------------------

    @property
    def name(self) -> str:
        return str(self.folder.absolute())

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        write_file(self.folder / name, content)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        # A name that is gone may come back after a power cut, until its folder is on the disk.
        flush(self.folder)

    @contextmanager
    def outcomes(self) -> Iterator[Sequence[Path]]:
        yield list_outcome_files(self.folder / OUTCOMES_FILE)

    # ----------------------------------------------------------------------------------------------

    def _refuse_occupied(self, *, overwrite: bool) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{self.folder} is not a folder; the output goes into one of its own.")
        names = set[str]()
        if self.folder.exists():
            names = {entry.name for entry in self.folder.iterdir()}
        if SUCCESS in names and is_reserved(self.read(UNMARKED)):
            raise being_marked(str(self.folder))
        unfinished = WORK in names and not names & {SUCCESS, DAMAGED}
        strange = {name for name in names - self._folders() if not is_ours(name)}
        # What an unfinished run has left nobody needs to be asked for.
        if not overwrite and (strange or (names and not unfinished)):
            message = f"{self.folder} is not empty."
            raise UsageError(message, hint="Choose another folder, or use --overwrite.")

    def _refuse_strangers(self) -> None:
        """Refuse to replace folders that no conversion made: nobody said they may be removed."""
        staged = {entry.name for entry in self.staged.iterdir() if entry.is_dir()}
        strange = [name for name in staged - self._folders() if (self.folder / name).exists()]
        if strange:
            first = self.folder / min(strange)
            message = f"{first} is there already, and is no output of a conversion."
            raise UsageError(message, hint="Move it away, or choose another folder.")

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"Another conversion is writing to {self.folder}."
            hint = "Wait for it, or choose another folder."
            raise SinkError(message, hint=hint, may_pass=True) from error

    def _clear(self, *, resume: bool) -> None:
        """Remove what a killed run left, and parts it had begun to move."""
        if not (self.folder / SUCCESS).exists() and not (self.folder / DAMAGED).exists():
            self._remove_former()
        for entry in self.work.iterdir():
            # The lock file stays: who removed it would lock another one than who comes next.
            if entry.name != LOCK and (not resume or entry.name.startswith(STAGED)):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def _folders(self) -> set[str]:
        """List the folders made here by a former conversion, complete or interrupted."""
        folders = set[str]()
        for name in (SUCCESS, DAMAGED):
            if (self.folder / name).is_file():
                folders.update(folders_from((self.folder / name).read_bytes()))
        if (self.work / MOVING).is_file():
            moving = (self.work / MOVING).read_bytes()
            folders.update(msgspec.json.decode(moving, type=list[str]))
        return folders

    def _remove_former(self) -> None:
        """Remove the output of a former conversion, `_SUCCESS` first; leave other files."""
        folders = self._folders()
        if folders:
            # Once `_SUCCESS` is gone nothing else says that these folders are ours.
            write_file(self.work / MOVING, msgspec.json.encode(sorted(folders)))
        (self.folder / SUCCESS).unlink(missing_ok=True)
        (self.folder / DAMAGED).unlink(missing_ok=True)
        for name in folders:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for entry in list(self.folder.iterdir()):
            if entry.name != WORK and is_ours(entry.name):
                # Outcomes are a folder where Spark wrote it.
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def is_reserved(note: bytes | None) -> bool:
    """Return True if rows are reserved for this note's output; an empty one is a killed run's."""
    return note is not None and (not note or b"reserved" in note.split())


def being_marked(output: str) -> UsageError:
    """Make the error for an output with reserved rows: no other conversion finds these."""
    message = f"{output} holds a conversion whose rows are reserved; they were being marked when it was interrupted."
    again = "Give its own command once more, with --mark, to mark the others"
    return UsageError(message, hint=f"{again}; or move the output away.")


def _flush(entry: Path, folder: Path) -> None:
    """Flush a file, or a folder with its files, to the disk; only `folder`'s readers may read."""
    protect(entry, folder)
    if entry.is_dir():
        for inner in sorted(entry.iterdir()):
            _flush(inner, folder)
    flush(entry)
