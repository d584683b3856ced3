"""Inputs of a conversion that lie in an object store: the local engine reads copies of them, in folders of this machine.

Law: the same objects give the same copies, with their times, so a conversion that is given again is
known as the same one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from eventlog.convert.stored import folder_for
from eventlog.core.errors import UsageError
from eventlog.sinks.store.objects import Bucket, objects_at


def fetch(fetched: Mapping[str, str]) -> None:
    """Copy the files at each address into its folder."""
    for folder, address in fetched.items():
        # A run that was killed may have left some, of a state that is gone.
        shutil.rmtree(folder, ignore_errors=True)
        _fetch_one(address, Path(folder))


def folder_of_copies(address: str) -> str:
    """Return the folder for the copies of an address; apart from its folder for output."""
    return str(folder_for(f"input {address}"))


def _fetch_one(address: str, folder: Path) -> None:
    objects, names = _objects_at(address)
    wanted = [name for name in names if not _is_hidden(name)]
    if not wanted:
        hint = "Name an object, or how names of objects begin, up to a /."
        raise UsageError(f"There is nothing to read at {address}.", hint=hint)
    for name in wanted:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)

    def bring(name: str) -> None:
        objects.fetch(name, folder / name)
        written_ns = names[name]
        os.utime(folder / name, ns=(written_ns, written_ns))

    objects.each(bring, wanted)


def _objects_at(address: str) -> tuple[Bucket, dict[str, int]]:
    """Find the objects below an address, or the one at it, and the time of each."""
    objects = objects_at(address, what="An input")
    names = objects.times()
    bucket, _, name = address.rstrip("/").rpartition("/")
    # Of the bucket itself there is nothing left but its scheme.
    if names or bucket.endswith("/"):
        return objects, names
    beside = objects_at(bucket, what="An input")
    time_ns = beside.time(name)
    return beside, {} if time_ns is None else {name: time_ns}


def _is_hidden(name: str) -> bool:
    """Return True for names of other programs' own files; folders on a disk skip them too."""
    return any(part.startswith((".", "_")) for part in PurePosixPath(name).parts)
