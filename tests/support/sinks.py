"""Sinks for tests: opened as a publisher opens them, and stopped in the middle of what they do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

import obstore
import pytest

from eventlog.core.seams import Sink, Tenure
from eventlog.sinks.lake.delta import DeltaTables
from eventlog.sinks.lake.iceberg import IcebergTables

Opened = TypeVar("Opened", bound=Sink)
STEPS = ("open", "mkdir", "replace", "unlink", "listdir", "scandir", "fsync")
"""What a sink asks of the file system, in which it can be stopped before each."""
REQUESTS = ("get", "put", "copy", "delete", "list")
"""What it asks of an object store, likewise."""
LAKE = ("_latest", "_put_rows")
"""What it asks of a table of a lake, likewise."""


def tenure(epoch: int = 1, log: str = "log-of-tests") -> Tenure:
    """Make a tenure of a log's lock."""
    return Tenure(log=log, name=f"event log {log}", epoch=epoch)


def opened(sink: Opened, who: Tenure | None = None) -> Opened:
    """Open the sink: it takes its target over."""
    sink.open(who)
    return sink


class Stopped:
    """Whether the one who works came to the step before which it was to be stopped."""

    def __init__(self, before: int, meanwhile: Callable[[], object]) -> None:
        self.happened = False
        self._before = before
        self._meanwhile = meanwhile
        self._taken = 0
        self._watching = True
        self._turn = Lock()

    def step(self) -> None:
        """Note that the other thread is about to take a step."""
        with self._turn:
            self._taken += self._watching
            if not self._watching or self._taken != self._before:
                return
            self._watching = False
        self.happened = True
        self._meanwhile()


@contextmanager
def stopped(before: int, meanwhile: Callable[[], object]) -> Iterator[Stopped]:
    """Freezes whoever works in here before that step at the file system, counted from 1, while others do their part."""
    found = Stopped(before, meanwhile)
    with _stepping(found.step):
        yield found


@contextmanager
def _stepping(look: Callable[[], None]) -> Iterator[None]:
    """Call `look` before each step at the file system."""

    def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*positional: Any, **named: Any) -> Any:
            look()
            return function(*positional, **named)

        return step

    with pytest.MonkeyPatch.context() as patch:
        patch_steps(patch, stepping)
        yield


def patch_steps(patch: pytest.MonkeyPatch, stepping: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Wraps whatever a sink can ask of a file system or of an object store."""
    for module, names in ((os, STEPS), (obstore, REQUESTS), (DeltaTables, LAKE), (IcebergTables, LAKE)):
        for name in names:
            patch.setattr(module, name, stepping(getattr(module, name)))


class KilledError(BaseException):
    """The process is gone: nothing that it would still do has any effect."""


@contextmanager
def dying(before: int) -> Iterator[Stopped]:
    """Kills whoever works in here before that step at the file system, counted from 1."""
    found = Stopped(before, lambda: None)
    with _stepping(lambda: _die(found)):
        yield found


def _die(found: Stopped) -> None:
    found.step()
    if found.happened:
        raise KilledError


@contextmanager
def failing(before: int, error: OSError) -> Iterator[Stopped]:
    """Lets that step at the file system fail, counted from 1, and no other."""

    def fail() -> None:
        raise error

    found = Stopped(before, fail)
    with _stepping(found.step):
        yield found


@contextmanager
def broken(module: object, name: str, at: int, error: BaseException) -> Iterator[None]:
    """Lets a function fail when it is called for the so manieth time, and not work any more after that."""
    function, calls = getattr(module, name), iter(range(1, at))

    def breaking(*positional: Any, **named: Any) -> Any:
        if next(calls, None) is None:
            raise error
        return function(*positional, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, breaking)
        yield
