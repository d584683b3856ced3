"""Plans in a folder: hidden, begun, shown, and whoever comes later can see how far a plan came.

    .eventlog-<holder>=<maker>=<plan>=<number>=<name>.part   a hidden file
    .eventlog-<epoch>=<maker>=<plan>.shown                   the mark: the plan that is shown

The maker is one try to prepare a plan, the holder is who may show or remove what it made.

Law: the mark comes when every file of a plan is hidden, and before the first of them gets its name.
So nothing is there of a plan without it. Of one with it, who comes next shows what is still hidden.

Law: a file is taken by renaming it, before anybody looks at the mark. Only what somebody made or
took is shown or removed by them. So a former owner that goes on finds nothing that it could show,
and takes nothing from those after it. Its mark says nothing any more either: that of the highest
epoch counts, and whoever takes the folder over makes one of its own.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError, SinkError
from eventlog.core.seams import Tenure
from eventlog.durable_files import (
    PERMANENT,
    PartialFile,
    discard_files,
    flush,
    hide_parts,
    make_empty,
    make_folder,
    remove_leftovers,
    show_files,
    write_file,
)
from eventlog.sinks.ownership import Owner, make_replaced_error, take_over

OWNERS: Final = ".eventlog"
"""A folder beside the documents, hidden so that no pattern for documents finds it.

In it stands a file for each epoch.
"""

BEGINNING: Final = ".eventlog-"
HIDDEN, SHOWN = ".part", ".shown"
_claim_name = re.compile(r"\d{20}\.json").fullmatch
# Holder, maker, plan, number, and the name that the file gets; a plan is quoted there.
_hidden_name = re.compile(r"\.eventlog-([0-9a-f]+)=([0-9a-f]+)=([^=]*)=(\d+)=(.+)\.part").fullmatch
_mark_name = re.compile(r"\.eventlog-(\d{20})=([0-9a-f]*)=([^=]*)\.shown").fullmatch
_scratch_name = re.compile(r"\.eventlog-[0-9a-f]+-\d+\.part").fullmatch
"""What `hide_files` makes."""


def not_written(what: str, folder: Path, error: OSError) -> SinkError:
    """Explain why the folder cannot be written."""
    path = error.filename2 or error.filename or folder
    may_pass = error.errno not in PERMANENT
    in_the_way = next((place for place in (folder, *folder.parents) if place.is_file()), None)
    if in_the_way is not None:
        message = f"{what} cannot be written to {folder}: {in_the_way} is a file, and a folder must be there."
        return SinkError(message, hint="Move the file away, or name another folder.", may_pass=False)
    hint = "It is tried again." if may_pass else "Correct that and start again."
    message = f"{what} cannot be written to {path}: {error.strerror}."
    return SinkError(message, hint=hint, may_pass=may_pass)


def folders_from(folder: Path, *, dotted: bool) -> Iterator[Path]:
    """Yield the folder and its subfolders, dotted ones only if `dotted`.

    A subfolder with an owner belongs to another output; it is skipped as a whole.
    """
    for place, below, _ in os.walk(folder):
        # In place, which is how os.walk is told where not to go.
        below[:] = [
            name
            for name in below
            if (dotted or name[0] != ".")
            and name != OWNERS
            # False, and no error, also for a folder of strangers in which we may not look.
            and not os.access(Path(place, name, OWNERS), os.F_OK)
        ]
        yield Path(place)


class FolderClaim(Struct, frozen=True):
    """The file by which somebody has taken a folder over; its name begins with the epoch."""

    name: str
    content: bytes


class OwnedFolder:
    """A folder of documents, whose owner stands in a hidden folder beside them.

    Each epoch has a file of its own there and the highest counts. So who was stopped in the middle
    of taking the folder over, and goes on after somebody else has done it, takes nothing away from
    that one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._claims = folder / OWNERS
        self._ours: FolderClaim | None = None
        self.epoch = 0
        """That of whoever has it; 0 where it is nobody's."""

    def take_over(self, tenure: Tenure | None) -> None:
        """Makes the folder ours; a folder that nobody owns stays so for whoever has no tenure."""
        former = self._latest()
        if tenure is None and former is None:
            self._ours, self.epoch = None, 0
            return
        way_out = f"Give it a folder of its own; or delete {self._claims} if that log is gone."
        owner = take_over(self._read(former), tenure, f"The folder {self.folder}", way_out)
        # Twenty digits, so that names sort as their numbers do.
        self._ours = FolderClaim(f"{owner.epoch:020d}.json", msgspec.json.encode(owner))
        self.epoch = owner.epoch
        if self._ours != former:
            self._write(self._ours)
        # Somebody may have been faster, or may be ahead: only the highest has it.
        self.confirm()
        # The files of former owners do no harm where they stay.
        if self._claims.is_dir():
            remove_leftovers(self._claims)
        for name in self._names():
            if name < self._ours.name:
                with suppress(OSError):
                    (self._claims / name).unlink()

    def confirm(self) -> None:
        """Raise OccupiedError if another publisher has taken the folder over."""
        if self._ours is not None and self._latest() != self._ours:
            raise make_replaced_error(f"the folder {self.folder}")

    def _write(self, claim: FolderClaim) -> None:
        make_folder(self._claims)
        try:
            write_file(self._claims / claim.name, claim.content)
        except FileNotFoundError:
            self.confirm()  # whoever has taken the folder over meanwhile has tidied up
            raise
        flush(self.folder)  # the folder of claims may be new

    def _latest(self) -> FolderClaim | None:
        """Read the claim of the highest epoch."""
        # Who has a higher one may remove it while it is looked at; then there is another to look at.
        while True:
            name = max(self._names(), default="")
            if not name:
                return None
            with suppress(FileNotFoundError):
                return FolderClaim(name, (self._claims / name).read_bytes())

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in self._claims.iterdir() if _claim_name(entry.name)]
        except FileNotFoundError:
            return []

    def _read(self, claim: FolderClaim | None) -> Owner:
        if claim is None:
            return Owner()
        try:
            return msgspec.json.decode(claim.content, type=Owner)
        except msgspec.DecodeError as error:
            hint = "It says which event log writes there; delete it if that is this one."
            raise DataError(
                f"{self._claims / claim.name} cannot be read: {error}.",
                hint=hint,
            ) from None


class Mark(Struct, frozen=True, order=True):
    """Which try of which plan is shown, as the owner of this epoch has it."""

    epoch: int
    maker: str = ""
    plan: str = ""

    @property
    def name(self) -> str:
        return f"{BEGINNING}{self.epoch:020d}={self.maker}={quote(self.plan, safe='')}{SHOWN}"


class Hidden(Struct, frozen=True, kw_only=True):
    """The files of one try to prepare a plan, in the order in which they get their names."""

    plan: str
    maker: str
    parts: list[PartialFile]

    def discard(self) -> None:
        discard_files(self.parts)


class TakenFile(Struct, frozen=True, kw_only=True):
    """A hidden file that is ours now, whoever made it."""

    maker: str
    plan: str
    number: int
    part: PartialFile

    def belongs_to(self, mark: Mark) -> bool:
        return bool(mark.plan) and (self.maker, self.plan) == (mark.maker, mark.plan)


class PlanFolder:
    """A folder with an owner, and the plans that are shown in it.

    Files may be in any of its `folders`.
    """

    def __init__(self, folder: Path, folders: Callable[[], Iterable[Path]]) -> None:
        self.folder = folder
        self.plan = ""
        """The plan that is shown last, all of it."""
        self._folders = folders
        self._owned = OwnedFolder(folder)
        self._holder = secrets.token_hex(4)
        self._mark: Mark | None = None

    def take_over(self, tenure: Tenure | None) -> None:
        """Makes the folder ours, and settles what its former owner left."""
        make_folder(self.folder)
        self._owned.take_over(tenure)
        self.finish_former()

    def finish_former(self) -> list[Path]:
        """Shows the rest of the plan that was begun, and removes what is hidden of others.

        Which files it showed.
        """
        try:
            # Taken before anybody looks at the mark, so that a former owner who goes on finds nothing.
            hidden: list[Path] = []
            for folder in self._folders():
                remove_leftovers(folder)  # files that have no plan
                hidden += [path for path in _ours_in(folder, HIDDEN) if not _scratch_name(path.name)]
            taken = [file for file in map(self._take_file, hidden) if file is not None]
            marks = self._marks()
            # So all that was found is of former owners, and nothing of a later one.
            self._owned.confirm()
            mark = self._own_mark(marks)
            begun = [file for file in taken if mark is not None and file.belongs_to(mark)]
            # In the order of the plan, for the last of them says that the others are there.
            in_order = sorted(begun, key=lambda file: file.number)
            show_files([file.part for file in in_order], apart=1)
            # Names that can be read need not be on the disk yet: who gave them may have been stopped.
            for folder in self._folders() if mark is not None and mark.plan else ():
                flush(folder)
        except FileNotFoundError:
            self._owned.confirm()  # whoever has taken the folder over has taken it
            raise
        for file in taken:
            # What cannot be removed must not go unnoticed.
            file.part.temporary.unlink(missing_ok=True)
        self._mark, self.plan = mark, ""
        if mark is not None:
            self.plan = mark.plan
        return [file.part.target for file in begun]

    def make(self, folder: Path) -> None:
        """Makes a folder in this one, whose name is durable before a file is in it."""
        if folder.is_dir():
            return
        # Each folder above it may be new as well.
        make_folder(folder)
        while folder != self.folder:
            folder = folder.parent
            flush(folder)

    def read(self, path: Path) -> bytes | None:
        """Read a file; None if there is none."""
        if not path.exists():
            return None
        return path.read_bytes()

    def last(self, ids: Callable[[Iterable[PurePath]], Iterator[str]]) -> str:
        """Return the greatest id of the files."""
        entries = (Path(entry) for folder in self._folders() for entry in os.scandir(folder))
        return max(ids(entries), default="")

    def hide(self, plan: str, files: Sequence[tuple[Path, bytes]]) -> Hidden:
        """Writes files that nobody sees yet, durable when it returns."""
        maker = secrets.token_hex(4)
        whose = f"{BEGINNING}{self._holder}={maker}={quote(plan, safe='')}="
        parts = []
        for number, (target, content) in enumerate(files):
            temporary = target.with_name(f"{whose}{number}={target.name}{HIDDEN}")
            parts.append((PartialFile(temporary, target), content))
        return Hidden(plan=plan, maker=maker, parts=hide_parts(parts))

    def show(self, hidden: Hidden, *, apart: int = 0, last: str = "") -> None:
        """Gives files their names if the folder is still ours, durable when it returns.

        So many of the last come `apart`, once all others are durable. Without a plan nobody
        finishes what breaks off.
        """
        begun = False
        try:
            self._owned.confirm()
            begun = bool(hidden.plan)
            if begun:
                self._begin(hidden)
            show_files(hidden.parts, apart)
        except FileNotFoundError:
            self._owned.confirm()  # whoever has taken the folder over has taken the files
            raise
        finally:
            # What was begun stays hidden when it breaks off: who comes next shows the rest of it.
            if not begun:
                hidden.discard()
        self.plan = hidden.plan or self.plan

    def _begin(self, hidden: Hidden) -> None:
        """Makes the mark."""
        mark = Mark(self._owned.epoch, hidden.maker, hidden.plan)
        path = self.folder / mark.name
        if self._mark is None:
            make_empty(path)
        else:
            # One mark at any time: renaming replaces it in one step.
            (self.folder / self._mark.name).replace(path)
        self._mark = mark
        # The mark must be on the disk before the first name. Names in one folder reach it in order,
        # so one file there needs no flush before it.
        if len(hidden.parts) > 1 or hidden.parts[0].target.parent != self.folder:
            flush(self.folder)

    def _take_file(self, path: Path) -> TakenFile | None:
        """Rename a hidden file so that it is ours; None if it has just got its final name."""
        words = _hidden_name(path.name)
        if words is None:
            raise _no_name_of_ours(path)
        _, maker, plan, number, name = words.groups()
        ours = path.with_name(f"{BEGINNING}{self._holder}={maker}={plan}={number}={name}{HIDDEN}")
        try:
            path.replace(ours)
        except FileNotFoundError:
            return None
        part = PartialFile(ours, path.with_name(name))
        return TakenFile(maker=maker, plan=unquote(plan), number=int(number), part=part)

    def _own_mark(self, there: Sequence[Mark]) -> Mark | None:
        """Make the mark of the highest epoch ours and remove the others; None if there is none to
        keep.
        """
        if not there and not self._owned.epoch:
            return None
        latest = there[-1] if there else Mark(self._owned.epoch)
        ours = Mark(self._owned.epoch, latest.maker, latest.plan)
        if ours not in there:
            make_empty(self.folder / ours.name)
            flush(self.folder)
        # Only now: without any mark, nothing would be there of a plan whose files are half shown.
        for mark in there:
            if mark != ours:
                (self.folder / mark.name).unlink(missing_ok=True)
        return ours

    def _marks(self) -> list[Mark]:
        """List all marks, the latest last."""
        # Whoever looks once may miss one that is renamed meanwhile, in a large folder.
        marks = sorted(self._look_for_marks())
        while True:
            again = sorted(self._look_for_marks())
            if again == marks:
                return marks
            marks = again

    def _look_for_marks(self) -> Iterator[Mark]:
        for path in _ours_in(self.folder, SHOWN):
            words = _mark_name(path.name)
            if words is None:
                raise _no_name_of_ours(path)
            epoch, maker, plan = words.groups()
            yield Mark(int(epoch), maker, unquote(plan))


def _ours_in(folder: Path, ending: str) -> list[Path]:
    """List files of ours with this ending."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(BEGINNING)]
    return [folder / name for name in names if name.endswith(ending)]


def _no_name_of_ours(path: Path) -> DataError:
    hint = "Give it its former name, or remove it if it is not eventlog's:"
    hint = f"{hint} such names say how far the folder is."
    return DataError(f"{path} cannot be read: it is no name that eventlog gives.", hint=hint)
