"""Files that are there entirely or not at all, and stay there when the power goes.

A file is written under a temporary name, synced, and renamed.

Law: what is written is for us alone, whatever the umask: files are 0600 and folders that we make
0700. A folder whose owner gave it a group for what is made in it (`chmod g+rxs`) says otherwise:
its group may read, 0640 and 2750.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

FLUSH_THREADS = 16
"""Threads that wait for the disk together, since file systems commit what waits in one go
(measured: twice as fast).
"""

_numbers = count()
_process = secrets.token_hex(8)
PART: Final = r"\.eventlog-([0-9a-f]+)-\d+\.part"
"""What the name of a file looks like that has not got its own yet; after a kill it stays."""

_part = re.compile(PART).fullmatch

PERMANENT: Final = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
        *(errno.ENAMETOOLONG, errno.EINVAL),
    }
)
"""What waiting does not mend; a full disk or a folder that is not mounted may pass."""


class PartialFile(NamedTuple):
    """A file on its way: written and flushed under a temporary name, waiting for its own."""

    temporary: Path
    target: Path


def write_file(target: Path, content: bytes) -> None:
    """Puts the content there, durable when it returns; a reader sees the former file or the new
    one.
    """
    write_files([(target, content)])


def write_files(files: Sequence[tuple[Path, bytes]]) -> None:
    """Puts files into their folders in the given order, durable when it returns."""
    parts = hide_files(files)
    try:
        show_files(parts)
    except BaseException:
        discard_files(parts)
        raise


def hide_files(files: Sequence[tuple[Path, bytes]]) -> list[PartialFile]:
    """Write files under hidden names of this process, for `show_files` to rename."""
    parts = []
    for target, content in files:
        # In the same folder, because a rename is only atomic within a file system; hidden, so that
        # no pattern finds it.
        temporary = target.parent / f".eventlog-{_process}-{next(_numbers)}.part"
        parts.append((PartialFile(temporary, target), content))
    return hide_parts(parts)


def hide_parts(files: Sequence[tuple[PartialFile, bytes]]) -> list[PartialFile]:
    """Writes files under their temporary names, durable when it returns."""
    parts = list(map(itemgetter(0), files))
    try:
        # the publisher's everyday: no thread stands between a commit and its file
        if len(parts) == 1:
            _flush_and_close(_write_part(parts[0].temporary, files[0][1]))
            return parts
        from concurrent.futures import Future, wait

        flushing: list[Future[None]] = []
        try:
            for part, content in files:
                # Written here, for threads that only wait for the disk take nobody's turn.
                flushing.append(_flushers().submit(_flush_and_close, _write_part(part.temporary, content)))
            for flushed in flushing:
                flushed.result()
        finally:
            # No thread may use a file any more when those of a plan that failed are discarded.
            wait(flushing)
    except BaseException:
        discard_files(parts)
        raise
    return parts


@cache
def _flushers() -> ThreadPoolExecutor:
    """Return a pool of threads for flushing, kept: starting them takes as long as the disk
    (measured).
    """
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(FLUSH_THREADS, thread_name_prefix="eventlog-flushes")


# A process that was forked has none of these threads.
os.register_at_fork(after_in_child=_flushers.cache_clear)


def show_files(parts: Sequence[PartialFile], apart: int = 0) -> None:
    """Gives hidden files their names in the given order, durable when it returns.

    So many of the last come `apart`, once all others are durable.
    """
    cut = len(parts) - apart
    for some in filter(None, (parts[:cut], parts[cut:])):
        for part in some:
            part.temporary.replace(part.target)
        # A name is durable only with its folder; each folder once, after all names are in it.
        for folder in {part.target.parent for part in some}:
            flush(folder)


def discard_files(parts: Iterable[PartialFile]) -> None:
    """Remove hidden files no longer wanted."""
    for part in parts:
        # It was renamed already, or the disk refuses this too; the next start tries again.
        with suppress(OSError):
            part.temporary.unlink()


def make_empty(path: Path) -> None:
    """Make an empty file for a library to write into, so that it belongs to us from the beginning."""
    # O_EXCL refuses what is there already, also a link that somebody has laid.
    os.close(_open_file(path, os.O_EXCL))


def protect(entry: Path, folder: Path) -> None:
    """Give a file made by a library the rights of the folder where it will be shown."""
    shared = _is_shared(folder)
    if entry.is_dir():
        # The 2 is setgid: what is made in the folder belongs to the folder's group.
        entry.chmod(0o2750 if shared else 0o700)
    else:
        entry.chmod(0o640 if shared else 0o600)


def make_folder(folder: Path) -> None:
    # From the outermost folder inwards, so that each is made in one that is there.
    for missing in reversed([parent for parent in (folder, *folder.parents) if not parent.exists()]):
        with suppress(FileExistsError):  # somebody else was quicker
            missing.mkdir(mode=0o700)
            # The umask takes rights from what mkdir is given, and not from chmod.
            if _is_shared(missing.parent):
                missing.chmod(0o2750)
            flush(missing.parent)
    folder.mkdir(exist_ok=True)  # which fails where a file has its place


def flush(path: Path) -> None:
    """Brings a file to the disk, or the names in a folder: a rename is not durable until then."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove files hidden by other processes with `hide_files`.

    The caller has the folder to itself: a frozen writer that continues later finds nothing to show.
    """
    with os.scandir(folder) as entries:
        hidden = [(entry.path, _part(entry.name)) for entry in entries]
    for path, match in hidden:
        if match is not None and match[1] != _process:
            # It got its name meanwhile; what cannot be removed must not go unnoticed.
            with suppress(FileNotFoundError):
                Path(path).unlink()


def _write_part(temporary: Path, content: bytes) -> int:
    """Write a new file with this content; return its descriptor."""
    # Refuses a file that is there, and with it a link that somebody else has laid in its place.
    descriptor = _open_file(temporary, os.O_EXCL)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]  # a write may take less than all
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _flush_and_close(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_file(path: Path, how: int) -> int:
    # For the group only once it is known that the folder is shared: never more than 0600 before.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        os.fchmod(descriptor, 0o640 if _is_shared(path.parent) else 0o600)
    except PermissionError:  # somebody else's file: it stays as they made it
        return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_shared(folder: Path) -> bool:
    """Return True if files in the folder belong to its group, which may read them."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISGID and mode & stat.S_IRGRP)
