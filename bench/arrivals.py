"""Notices documents the moment they get their names, as the kernel tells it."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from select import select
from threading import Thread
from types import TracebackType
from typing import Final, Self

MOVED_TO: Final = 0x80
HEADER: Final = struct.Struct("iIII")
PATIENCE: Final = 30.0


class Arrivals:
    """The documents that get their names in a folder while this is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: list[tuple[int, float]] = []
        self._open = True
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init()
        if libc.inotify_add_watch(self._descriptor, os.fsencode(self._folder), MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "the folder cannot be watched")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._thread.join()
        os.close(self._descriptor)

    def delays(self, committed: Mapping[int, float]) -> list[float]:
        """Seconds from each commit to the document with its change; a document is called after its last record_id."""
        end = time.monotonic() + PATIENCE
        while not self._seen or self._seen[-1][0] < max(committed):
            if time.monotonic() > end:
                raise AssertionError("not every change was published")
            time.sleep(0.01)
        waiting = sorted(committed)
        found: list[float] = []
        for last, when in self._seen:
            while waiting and waiting[0] <= last:
                found.append(when - committed[waiting.pop(0)])
        return found

    def _watch(self) -> None:
        while self._open:
            if select([self._descriptor], [], [], 0.1)[0]:
                told = os.read(self._descriptor, 65536)
                self._seen += [(number, time.monotonic()) for number in _numbers(told)]


def _numbers(told: bytes) -> list[int]:
    """The record_ids in the names that the kernel tells."""
    found: list[int] = []
    while told:
        *_, length = HEADER.unpack_from(told)
        name = told[HEADER.size : HEADER.size + length].rstrip(b"\0").decode()
        if name.endswith(".xml"):
            found.append(int(name.removesuffix(".xml")))
        told = told[HEADER.size + length :]
    return found
