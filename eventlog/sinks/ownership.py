"""Whose a target is: the log that writes there, and the epoch of the publisher that took it over last.

Law: who takes a target over writes its epoch there first, and every later write of a former holder is refused by what
it finds, or is made of files that the new holder has removed.
"""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.durable_files import (
    flush,
    make_folder,
    remove_leftovers,
    write_file,
)
from eventlog.core.errors import ConfigError, DataError, OccupiedError, SinkError
from eventlog.core.seams import Tenure

OWNERS: Final = ".eventlog"
"""A folder beside the documents, hidden so that no pattern for documents finds it. In it stands a file for each epoch."""

PERMANENT: Final = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
        *(errno.ENAMETOOLONG, errno.EINVAL),
    }
)
"""What waiting does not mend; a full disk or a folder that is not mounted may pass."""

_claim_name = re.compile(r"\d{20}\.json").fullmatch


class Owner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who took a target over last; a target without a log belongs to nobody yet."""

    log: str = ""
    name: str = ""
    epoch: int = 0


def taken_over(owner: Owner, tenure: Tenure | None, place: str, way_out: str) -> Owner:
    """The owner from now on; refused for another log, and for a holder that is not the latest.

    `place` and `way_out` are what to tell: where it is, and how a log gets a place of its own.
    """
    if tenure is None:
        return replace(owner, epoch=owner.epoch + 1)
    if owner.log and owner.log != tenure.log:
        raise ConfigError(f"{place} belongs to the {owner.name}; the {tenure.name} cannot write there.", hint=way_out)
    if owner.epoch > tenure.epoch:
        raise taken_by_a_later_one(place)
    return Owner(log=tenure.log, name=tenure.name, epoch=tenure.epoch)


def taken_by_a_later_one(place: str) -> OccupiedError:
    """What to tell a publisher that has been replaced."""
    return OccupiedError(f"Somebody else has taken {place} over.", hint="This one writes nothing more there.")


def not_written(what: str, folder: Path, error: OSError) -> SinkError:
    """Why something cannot be written in the folder."""
    place = error.filename2 or error.filename or folder
    may_pass = error.errno not in PERMANENT
    hint = "It is tried again." if may_pass else "Mend that and start again."
    return SinkError(f"{what} cannot be written to {place}: {error.strerror}.", hint=hint, may_pass=may_pass)


class FolderClaim(Struct, frozen=True):
    """The file by which somebody has taken a folder over; its name begins with the epoch."""

    name: str
    content: bytes


class OwnedFolder:
    """A folder of documents, whose owner stands in a hidden folder beside them.

    Each epoch has a file of its own there and the highest counts. So who was stopped in the middle of taking the folder
    over, and goes on after somebody else has done it, takes nothing away from that one.
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
        owner = taken_over(self._read(former), tenure, f"The folder {self.folder}", way_out)
        self._ours, self.epoch = FolderClaim(f"{owner.epoch:020d}.json", msgspec.json.encode(owner)), owner.epoch
        if self._ours != former:
            self._write(self._ours)
        self.confirm()
        self._forget_others()

    def confirm(self) -> None:
        """OccupiedError when somebody else has taken the folder over since."""
        if self._ours is not None and self._latest() != self._ours:
            raise taken_by_a_later_one(f"the folder {self.folder}")

    def _write(self, claim: FolderClaim) -> None:
        make_folder(self._claims)
        try:
            write_file(self._claims / claim.name, claim.content)
        except FileNotFoundError:
            self.confirm()  # whoever has taken the folder over meanwhile has tidied up
            raise
        flush(self.folder)

    def _latest(self) -> FolderClaim | None:
        """The file of the highest epoch; who has a higher one may remove it while it is looked at."""
        while name := max(self._names(), default=""):
            with suppress(FileNotFoundError):
                return FolderClaim(name, (self._claims / name).read_bytes())
        return None

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in self._claims.iterdir() if _claim_name(entry.name)]
        except FileNotFoundError:
            return []

    def _forget_others(self) -> None:
        """Removes the files of former owners; those that stay do no harm."""
        if self._claims.is_dir():
            remove_leftovers(self._claims)
        for name in self._names():
            if self._ours is not None and name < self._ours.name:
                with suppress(OSError):
                    (self._claims / name).unlink()

    def _read(self, claim: FolderClaim | None) -> Owner:
        if claim is None:
            return Owner()
        try:
            return msgspec.json.decode(claim.content, type=Owner)
        except msgspec.DecodeError as error:
            hint = "It says which event log writes there; delete it if that is this one."
            raise DataError(f"{self._claims / claim.name} cannot be read: {error}.", hint=hint) from None
