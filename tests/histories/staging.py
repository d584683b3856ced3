"""Puts the project's modules on the stage: their threads, waits, clocks and random numbers are the
stage's for a while.
"""

from __future__ import annotations

import concurrent.futures
import functools
import importlib
import logging
import pkgutil
import secrets
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from types import ModuleType
from typing import Any, Final

import eventlog
from tests.histories.hearts import observed
from tests.histories.stage import (
    StageClock,
    StageEvent,
    StageExecutor,
    StageFuture,
    StageLock,
    StageQueue,
    StageRLock,
    StageSecrets,
    StageThread,
    seeded_uuid,
)

PACKAGES: Final = ("admin", "config", "core", "daemon", "delivery", "publisher", "sinks", "sources", "sql")
"""What is imported before a history, so that nothing that comes later has threads of its own; those
that are there.
"""

_STANDING_IN: Final[dict[int, Any]] = {
    id(threading.Thread): StageThread,
    id(threading.Event): StageEvent,
    id(threading.Lock): StageLock,
    id(threading.RLock): StageRLock,
    id(SimpleQueue): StageQueue,
    id(Future): StageFuture,
    id(ThreadPoolExecutor): StageExecutor,
    id(time): StageClock(),
    id(time.monotonic): StageClock.monotonic,
    id(time.perf_counter): StageClock.perf_counter,
    id(time.sleep): StageClock.sleep,
    id(secrets): StageSecrets(),
    id(uuid.uuid4): seeded_uuid,
}


@contextmanager
def staged() -> Iterator[None]:
    """While it lasts, what the project's modules know under any name as a thread or a clock is the
    stage's.
    """
    _import_all()
    former: list[tuple[ModuleType, str, Any]] = []
    for name, module in sorted(sys.modules.items()):
        if name.startswith("eventlog."):
            former += [(module, key, value) for key, value in vars(module).items() if id(value) in _STANDING_IN]
    for module, key, value in former:
        setattr(module, key, _STANDING_IN[id(value)])
    locking, functools.cached_property.__get__ = functools.cached_property.__get__, _computed_once  # type: ignore[method-assign]  # see there
    concurrent.futures.ThreadPoolExecutor = StageExecutor  # type: ignore[assignment,misc]  # for imports inside functions
    pool = logging.getLogger("sqlalchemy.pool")  # it tells of each session that died with its process
    pool.addHandler(silent := logging.NullHandler())
    pool.propagate, talks = False, pool.propagate
    try:
        with observed():
            yield
    finally:
        pool.removeHandler(silent)
        pool.propagate = talks
        functools.cached_property.__get__ = locking  # type: ignore[method-assign]  # as it was
        concurrent.futures.ThreadPoolExecutor = ThreadPoolExecutor  # type: ignore[misc]  # as it was
        for module, key, value in former:
            setattr(module, key, value)


def _computed_once(self: Any, instance: Any, owner: Any = None) -> Any:
    """What `cached_property` does, without Python 3.11's lock for all instances: who has it may be
    frozen.
    """
    if instance is None:
        return self
    values = vars(instance)
    if self.attrname not in values:
        values[self.attrname] = self.func(instance)
    return values[self.attrname]


def _import_all() -> None:
    for package in PACKAGES:
        root = importlib.util.find_spec(f"{eventlog.__name__}.{package}")
        if root is None:
            continue
        prefix = f"{eventlog.__name__}.{package}."
        for found in pkgutil.walk_packages(root.submodule_search_locations, prefix):
            if "migrations" not in found.name and not found.name.endswith(("gbase.drivers",)):
                try:
                    importlib.import_module(found.name)
                except ModuleNotFoundError as error:
                    if (error.name or "").startswith(eventlog.__name__):
                        raise
