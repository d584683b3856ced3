"""A stage: processes whose threads take turns, with a clock of its own. What happens depends on the
seed alone.

A thread of a process runs until it waits, or until it comes to a point at which something else may
happen; then the director says who goes on. No two run at once, nobody sleeps, and a lease of an
hour ends at once. A process that dies is never given another turn: what it would still do while it
is unwound is stopped at every point.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty
from random import Random
from threading import Semaphore
from threading import Thread as SystemThread
from typing import Any, Final, Self

BEGINNING: Final = 1_000_000.0
"""What the clock says when a history begins."""

PATIENCE: Final = 300
"""Seconds by the clock on the wall that a turn may take on a machine that is busy with other
things.
"""

TURN_SECONDS: Final = 0.01
"""How far the clock goes on with each turn."""


class Died(BaseException):
    """The process has died: nothing that it does from now on reaches anybody."""


class Process:
    """One process on the stage. Who is frozen gets no turn; who is dead is unwound."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self.actors: list[Actor] = []
        self.sessions: list[Any] = []
        """The driver's connections that it has opened."""
        self.others: list[Any] = []
        """What else ends with it without a word to anybody, such as connections to receivers."""

    def die(self) -> None:
        """Ends it as `kill -9` does: from now on nothing that it does reaches anybody. Its sessions
        break at once.
        """
        self.alive = self.frozen = False
        for session in self.sessions:
            with suppress(Exception):  # it is closed already, or its server has gone
                session.rollback()  # SQLite forgets a connection only when all of its cursors are forgotten
        for one in (*self.sessions, *self.others):
            with suppress(Exception):
                one.close()
        self.sessions.clear()


class Actor:
    """One thread of a process."""

    def __init__(self, stage: Stage, process: Process, work: Callable[[], object]) -> None:
        self.process = process
        self.ended = False
        self.error: BaseException | None = None
        self.condition: Callable[[], bool] | None = None
        self.until = math.inf
        self.turn = Semaphore(0)
        self._stage = stage
        self._work = work
        self._thread: SystemThread | None = None

    def ready(self, now: float) -> bool:
        """Whether there is anything for it to do."""
        if self.ended or self.process.frozen:
            return False
        return self.condition is None or now >= self.until or self.condition()

    def go_on(self) -> None:
        """Lets it run to its next stop; by the director alone."""
        if self._thread is None:
            self._thread = SystemThread(target=self._run, daemon=True)
            self._thread.start()
        self.turn.release()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self.turn.acquire()
        try:
            if self.process.alive:
                self._work()
        except BaseException as error:  # noqa: BLE001  # the director looks what it was
            self.error = error
        self.ended = True
        self._stage.give_back()


class Stage:
    """Whose turn it is, and what time."""

    def __init__(self, rng: Random) -> None:
        self.now = BEGINNING
        self.rng = rng
        self.current: Actor | None = None
        self.processes: list[Process] = []
        self._back = Semaphore(0)

    def begin(self, process: Process, work: Callable[[], object]) -> Actor:
        """A new thread of a process, which gets its turn later."""
        actor = Actor(self, process, work)
        process.actors.append(actor)
        if process not in self.processes:
            self.processes.append(process)
        return actor

    def run(self, actor: Actor) -> None:
        """Lets one go on until its next stop."""
        self.now += TURN_SECONDS
        self.current = actor
        actor.go_on()
        if not self._back.acquire(timeout=PATIENCE):
            raise RuntimeError(f"{actor.process.name} waits for something that is not on the stage")
        self.current = None
        if actor.ended:
            actor.join()

    def give_back(self) -> None:
        """Ends a turn; by whoever has it."""
        self._back.release()

    def stop(self) -> None:
        """Lets others have their turns; returns when it is this one's again. Died where the process
        has died meanwhile.
        """
        actor = self.current
        assert actor is not None
        if actor.process.alive:
            self.give_back()
            actor.turn.acquire()
        if not actor.process.alive:
            raise Died

    def wait(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Waits as a thread does, by the clock of the stage; the director himself never waits."""
        actor = self.current
        if actor is None:
            return condition()
        actor.condition = condition
        actor.until = math.inf if seconds is None else self.now + max(seconds, 0.0)
        try:
            self.stop()
        finally:
            actor.condition = None
        return condition()

    def ready(self) -> list[Actor]:
        """All who could go on now. Where everybody waits, the clock goes on until somebody does
        not.
        """
        actors = [actor for process in self.processes for actor in process.actors]
        found = [actor for actor in actors if actor.ready(self.now)]
        if found:
            return found
        waiting = [actor.until for actor in actors if not (actor.ended or actor.process.frozen)]
        if not waiting or min(waiting) == math.inf:
            return []
        self.now = max(self.now, min(waiting))
        return [actor for actor in actors if actor.ready(self.now)]

    def kill(self, process: Process) -> None:
        """Ends a process as `kill -9` does: its sessions break, its threads are unwound without
        effect.
        """
        process.die()
        for actor in process.actors:
            while not actor.ended:
                self.run(actor)
        process.die()  # sessions that were opened while it was unwound
        self.processes = [one for one in self.processes if one is not process]


_stages: list[Stage] = []
"""The stage that is on, if one is."""


def on_stage() -> Stage:
    return _stages[-1]


def set_stage(stage: Stage | None) -> None:
    """Says which stage is on."""
    _stages[:] = [] if stage is None else [stage]


class StageThread:
    """What stands for `threading.Thread`."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or "thread"
        self.daemon = daemon
        self._work = lambda: target(*args, **(kwargs or {})) if target is not None else None
        self._actor: Actor | None = None

    def start(self) -> None:
        stage = on_stage()
        assert stage.current is not None, "only a process begins threads"
        self._actor = stage.begin(stage.current.process, self._work)

    def join(self, timeout: float | None = None) -> None:
        actor = self._actor
        if actor is not None:
            on_stage().wait(lambda: actor.ended, timeout)

    def is_alive(self) -> bool:
        return self._actor is not None and not self._actor.ended


class StageEvent:
    """What stands for `threading.Event`."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        return on_stage().wait(self.is_set, timeout)


class StageLock:
    """What stands for `threading.Lock`: who has it may be stopped, and others wait on the stage."""

    def __init__(self) -> None:
        self._owner: object = None
        self._depth = 0

    def acquire(self) -> bool:
        me = on_stage().current or self
        if self._owner is not None and not self._is_mine(me):
            on_stage().wait(lambda: self._owner is None, None)
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_mine(self, _me: object) -> bool:
        return False


class StageRLock(StageLock):
    """What stands for `threading.RLock`."""

    def _is_mine(self, me: object) -> bool:
        return self._owner is me


class StageQueue:
    """What stands for `queue.SimpleQueue`."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []

    def put(self, item: Any) -> None:
        self._waiting.append(item)

    def empty(self) -> bool:
        return not self._waiting

    def get(self, timeout: float | None = None) -> Any:
        if not on_stage().wait(lambda: bool(self._waiting), timeout):
            raise Empty
        return self._waiting.pop(0)


class StageFuture(Future[Any]):
    """What stands for a future: who waits for it waits on the stage."""

    def result(self, timeout: float | None = None) -> Any:
        on_stage().wait(self.done, timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        on_stage().wait(self.done, timeout)
        return super().exception(0)


class StageExecutor:
    """What stands for a pool of threads: what is submitted is done at once."""

    def __init__(self, *_: object, **__: object) -> None:
        """However many threads there were to be."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to do."""

    def submit(self, work: Callable[..., Any], *given: Any, **named: Any) -> Future[Any]:
        future = StageFuture()
        try:
            future.set_result(work(*given, **named))
        except Exception as error:  # noqa: BLE001  # whoever asks for the result gets it
            future.set_exception(error)
        return future

    def map(self, work: Callable[..., Any], *each: Iterable[Any]) -> Iterator[Any]:
        futures = [self.submit(work, *given) for given in zip(*each, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, *_: object, **__: object) -> None:
        """Nothing is left to do."""


class StageClock:
    """What stands for the module `time`: the monotonic clocks are the stage's, the rest is as it
    was.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def monotonic() -> float:
        return on_stage().now

    perf_counter = monotonic

    @staticmethod
    def clock_gettime(clock: int) -> float:
        # A thread that another test of this process left behind, such as a lease's, may ask between two stages.
        return on_stage().now if _stages else time.clock_gettime(clock)

    @staticmethod
    def sleep(seconds: float) -> None:
        on_stage().wait(lambda: False, seconds)


class StageSecrets:
    """What stands for the module `secrets`: drawn by the seed, so that a history is repeated
    exactly.
    """

    @staticmethod
    def token_hex(size: int = 16) -> str:
        return on_stage().rng.randbytes(size).hex()

    @staticmethod
    def SystemRandom() -> Random:  # noqa: N802  # the name is the module's
        return on_stage().rng


def seeded_uuid() -> uuid.UUID:
    """What stands for `uuid4`."""
    return uuid.UUID(bytes=on_stage().rng.randbytes(16), version=4)
