"""Files that are there entirely or not at all, and stay there when the power goes: temporary file, fsync, rename."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

FLUSHERS = 16
"""Threads that wait for the disk together, since file systems commit what waits in one go (measured: twice as fast)."""

_numbers = count()
_part = re.compile(r"\.eventlog-(\d+)-\d+\.part").fullmatch


class Part(NamedTuple):
    """A file on its way: written and flushed under a temporary name, waiting for its own."""

    temporary: Path
    target: Path


def write_file(target: Path, content: bytes) -> None:
    """Puts the content there, durable when it returns; a reader sees the former file or the new one."""
    write_files([(target, content)])


def write_files(files: Sequence[tuple[Path, bytes]]) -> None:
    """Puts files into their folders in the given order, durable when it returns."""
    show_files(hide_files(files))


def hide_files(files: Sequence[tuple[Path, bytes]]) -> list[Part]:
    """Writes files that nobody sees yet, durable when it returns, for `show_files` to give them their names."""
    parts = [Part(_temporary_name(target), target) for target, _ in files]
    try:
        _write_parts([(part.temporary, content) for part, (_, content) in zip(parts, files, strict=True)])
    except BaseException:
        discard_files(parts)
        raise
    return parts


def show_files(parts: Sequence[Part]) -> None:
    """Gives hidden files their names in the given order, durable when it returns."""
    try:
        for part in parts:
            part.temporary.replace(part.target)
    except BaseException:
        discard_files(parts)
        raise
    for folder in {part.target.parent for part in parts}:
        flush_folder(folder)


def discard_files(parts: Iterable[Part]) -> None:
    """Removes hidden files that nobody wants to see any more."""
    _discard(part.temporary for part in parts)


def flush_folder(folder: Path) -> None:
    """Makes the names in the folder durable: a rename is not until then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> int:
    """Removes temporary files that a crash left there, and says how many; those of a running process stay."""
    found = [entry for entry in os.scandir(folder) if (match := _part(entry.name)) and not _elsewhere(int(match[1]))]
    _discard(Path(entry) for entry in found)
    return len(found)


def _write_parts(parts: Sequence[tuple[Path, bytes]]) -> None:
    if len(parts) == 1:  # the publisher's everyday: no thread stands between a commit and its document
        _write_part(*parts[0])
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(FLUSHERS) as flushers:
        for _ in flushers.map(lambda part: _write_part(*part), parts):
            pass


def _write_part(temporary: Path, content: bytes) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary_name(target: Path) -> Path:
    """In the same folder, because a rename is only atomic within a file system; hidden, so that no pattern finds it."""
    return target.parent / f".eventlog-{os.getpid()}-{next(_numbers)}.part"


def _elsewhere(process: int) -> bool:
    """Whether another process, still running, is writing the file."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, and belongs to somebody else
        return True
    return True


def _discard(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink()
        except OSError:
            continue  # it was renamed already, or the disk refuses this too; the next start tries again
