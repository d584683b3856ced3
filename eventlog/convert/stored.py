"""A conversion whose output goes to an object store: it is made in a folder of this machine, and
put there when it is complete.

Law: the output is hidden in the store until all of it is there, one step commits it, and `_SUCCESS`
comes last. Whoever is killed before has left nothing that is looked at, and the same command goes
on with what stands in the folder.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from eventlog.convert.commit import (
    DAMAGED,
    SUCCESS,
    UNMARKED,
    WORK,
    Summary,
    being_marked,
    folders_from,
    is_ours,
    is_reserved,
)
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.identity import complete
from eventlog.convert.marks import fetch_outcomes
from eventlog.convert.settings import Conversion, LogInput
from eventlog.core.errors import ConfigError, SinkError, UsageError
from eventlog.sinks.store.objects import OURS, Bucket
from eventlog.sinks.store.plans import HIDDEN, POSITION, HiddenObjects, Position, StoredPlans
from eventlog.sources.stream.claim import Claim

if TYPE_CHECKING:
    from eventlog.convert.marks import Marking


def folder_for(address: str) -> Path:
    """Return the folder in which the output for an address is made; the next run finds it again."""
    home = Path(tempfile.gettempdir()) / f"eventlog-{os.getuid()}"
    return home / blake2b(address.encode(), digest_size=16).hexdigest()


def make_private(home: Path) -> None:
    """Make the parent of those folders; refuse one others have made or may look into."""
    home.mkdir(mode=0o700, exist_ok=True)
    # Not `stat`: a link that somebody else put there would be followed to a folder of ours.
    status = home.lstat()
    is_ours_alone = status.st_uid == os.getuid() and not status.st_mode & 0o077
    if not stat.S_ISDIR(status.st_mode) or not is_ours_alone:
        message = f"{home} may be read or written by others."
        raise ConfigError(message, hint="Remove it, or set TMPDIR.")


@contextmanager
def claim(folder: Path, does: str) -> Iterator[None]:
    """Lock one of those folders against other processes. `does` describes the work there."""
    make_private(folder.parent)
    claim = Claim(folder.with_suffix(".lock"))
    if not claim.take():
        message = f"Another conversion {does}."
        raise SinkError(message, hint="Wait for it, or set another TMPDIR.", may_pass=True)
    try:
        yield
    finally:
        claim.path.unlink(missing_ok=True)
        claim.leave()
        # It is not empty where another conversion has its own folder there.
        with suppress(OSError):
            folder.parent.rmdir()


class StoredConversion:
    """The place of a conversion in an object store; `folder` is where its output is made."""

    def __init__(self, objects: Bucket, folder: Path, *, overwrite: bool) -> None:
        self.folder = folder
        self._objects = objects
        self._overwrite = overwrite

    def begin(self, conversion: Conversion) -> Summary | None:
        """Prepare place and folder; return the summary if this very conversion is there."""
        self.finish_former()
        summary = None if self._overwrite else complete(conversion, self)
        if summary is not None:
            return summary
        self._refuse_occupied()
        ended = any((self.folder / name).exists() for name in (SUCCESS, DAMAGED))
        marks = isinstance(conversion.input, LogInput) and conversion.input.mark
        if ended and (marks or complete(conversion) is None):
            # Of another order, or with rows that may be published by now.
            self.discard()
        return None

    def publish(self, marking: Marking | None = None) -> None:
        """Put the output there, all or nothing. Rows to mark must still be reserved."""
        plans = StoredPlans(self._objects)
        with nullcontext() if marking is None else marking.planned():
            hidden, replaced = self._hide(plans)
        # Not within: after an error nobody knows whether it was committed, and then it appears yet.
        # Its rows stay reserved, and the same command settles it.
        plans.show(hidden, apart=1, gone=replaced)
        plans.forget()

    def _hide(self, plans: StoredPlans) -> tuple[HiddenObjects, tuple[str, ...]]:
        """Put the output there, hidden; return it, and the former objects to remove later."""
        plans.take_over(None)
        # Once more: the conversion took its time, and somebody else may have written there.
        self._refuse_occupied()
        # Last in the list, `_SUCCESS` is the one object that is shown apart, after all others.
        files = sorted(_files(self.folder))
        files.sort(key=lambda file: file.name in (SUCCESS, DAMAGED))
        names = [PurePosixPath(file.relative_to(self.folder)) for file in files]
        if not {SUCCESS, DAMAGED} & set(map(str, names)):
            hint = "Somebody removed it during the conversion; give the same command again."
            raise SinkError(f"The output in {self.folder} is gone.", hint=hint, may_pass=True)
        former_folders = self._folders()
        folders = {name.parts[0] for name in names if len(name.parts) > 1}
        self._refuse_strangers(folders - former_folders)
        hidden = plans.hide(secrets.token_hex(8), list(zip(names, files, strict=True)))
        replaced: tuple[str, ...] = ()
        if self._overwrite:
            replaced = self._former(former_folders, {str(name) for name in names})
        return hidden, replaced

    def discard(self) -> None:
        """Remove the folder at once: a rest of it would be taken for the whole."""
        removed = self.folder.with_suffix(".removed")
        shutil.rmtree(removed, ignore_errors=True)
        with suppress(FileNotFoundError):
            self.folder.replace(removed)
        shutil.rmtree(removed, ignore_errors=True)

    def finish_former(self) -> None:
        """Finish or remove the remains of a run killed while it put its output there."""
        # Listed first: who hides something later has put a position before that.
        hidden = list(self._objects.names(HIDDEN))
        position = self._objects.read(POSITION)
        if position is None:
            # A request of a killed run may come when the next one has ended.
            self._objects.remove(hidden)
            return
        # Publishers and conversions keep the same notes there; only a publisher's name a log.
        if msgspec.json.decode(position.content, type=Position).owner.log:
            message = f"{self._objects.address} is where a publisher writes."
            raise UsageError(message, hint="Choose another prefix.")
        plans = StoredPlans(self._objects)
        plans.take_over(None)
        plans.forget()

    def _names(self) -> Iterator[str]:
        return (name for name in self._objects.names() if not name.startswith(OURS))

    def _refuse_occupied(self) -> None:
        if self._overwrite:
            if is_reserved(self.read(UNMARKED)) and self.read(SUCCESS) is not None:
                raise being_marked(self._objects.address)
        elif next(self._names(), None) is not None:
            message = f"{self._objects.address} is not empty."
            raise UsageError(message, hint="Choose another prefix, or use --overwrite.")

    def _refuse_strangers(self, folders: set[str]) -> None:
        """Refuse folders somebody else has there: their contents would mix with ours."""
        for folder in sorted(folders):
            if next(self._objects.names(f"{folder}/"), None) is not None:
                there = f"{self._objects.address}/{folder}"
                message = f"{there} is there already, and is no output of a conversion."
                raise UsageError(message, hint="Move it away, or choose another prefix.")

    def _folders(self) -> set[str]:
        """List the folders made here by a former conversion."""
        folders = set[str]()
        for name in (SUCCESS, DAMAGED):
            folders.update(folders_from(self.read(name) or b""))
        return folders

    def _former(self, folders: set[str], others: set[str]) -> tuple[str, ...]:
        """List the objects of a former conversion to remove, `_SUCCESS` first; leave other objects.

        Objects with new content stay: a late removal could hit what a later run has shown.
        """
        # Outcomes are one object, or a folder where Spark wrote the output.
        known = {*folders, OUTCOMES_FILE}
        former = [name for name in self._names() if name.split("/")[0] in known or is_ours(name)]
        former = [name for name in former if name in (SUCCESS, DAMAGED) or name not in others]
        # `_SUCCESS` goes first: who is killed on the way leaves nothing that looks complete.
        return tuple(sorted(former, key=lambda name: (name not in (SUCCESS, DAMAGED), name)))

    # --- for the marking of rows, see `marks` -----------------------------------------------------

    @property
    def name(self) -> str:
        return self._objects.address

    def read(self, name: str) -> bytes | None:
        stored = self._objects.read(name)
        return None if stored is None else stored.content

    def write(self, name: str, content: bytes) -> None:
        self._objects.put(name, content)

    def remove(self, name: str) -> None:
        self._objects.remove([name])

    def tidy(self) -> None:
        """`finish_former` has done it."""

    def outcomes(self) -> AbstractContextManager[list[Path]]:
        def fetch(path: Path) -> None:
            # Objects below the name are a folder, as Spark writes it; else it is one object.
            for name in list(self._objects.names(f"{OUTCOMES_FILE}/")) or [OUTCOMES_FILE]:
                file = path.parent / name
                file.parent.mkdir(exist_ok=True)
                self._objects.fetch(name, file)

        return fetch_outcomes(fetch)


def _files(folder: Path) -> Iterator[Path]:
    """List the files of the conversion in its folder."""
    for entry in folder.rglob("*"):
        if entry.is_file() and WORK not in entry.relative_to(folder).parts:
            yield entry
