"""The worker processes of a conversion: tasks go out, results come back, what is done is not done
again, and all stay small.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib.abc import MetaPathFinder
from itertools import count
from multiprocessing import active_children, connection, forkserver, get_context, parent_process
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from eventlog.core.errors import MachineError

if TYPE_CHECKING:
    from eventlog.convert.settings import Conversion

Result = TypeVar("Result")
START: Final = "forkserver"
"""Processes begin with nothing of the parent's: no threads, no connections, no locks; what they
load, they share.
"""

PRELOADED: Final = "eventlog.convert.preloaded"


class Task(Struct, frozen=True, kw_only=True):
    """What one process does at a time, in a folder. The name tells it from all others of the conversion."""

    name: str
    folder: str


class ConversionTask(Task, frozen=True, kw_only=True):
    """A task that must know what is converted, and how."""

    conversion: Conversion


def cores() -> int:
    """Return the number of cores this process may use."""
    # Not `cpu_count`: a container or `taskset` may leave this process fewer than there are.
    return len(os.sched_getaffinity(0))


LONGEST_FOLDER_BYTES: Final = 75
"""A socket's path may have 107 bytes, and multiprocessing takes 32 of them below the temporary folder."""


@cache
def find_why_alone() -> str:
    """Find why one process does the work; empty where several can work together."""
    try:
        get_context(START).Lock()
    except (OSError, ImportError):
        return "This user may not write to /dev/shm, where processes have locks together, so one process does the work."
    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) > LONGEST_FOLDER_BYTES:
        return f"{folder} is too long for the sockets of several processes, so one does the work; shorten TMPDIR."
    return ""


class SharedTally:
    """How many rows all processes together have got through; read by whoever shows it."""

    def __init__(self) -> None:
        # What one process alone counts needs no lock.
        self.shared: Any = SimpleNamespace(value=0, get_lock=nullcontext)
        if not find_why_alone():
            self.shared = get_context(START).Value("q", 0)

    @property
    def rows(self) -> int:
        return int(self.shared.value)


class _Here:
    """What this process counts on."""

    tally: Any = None
    stage = 0
    """Of its last task."""


def advance(rows: int) -> None:
    """Count more rows as done by this process."""
    if _Here.tally is not None:
        # To read and to write it are two steps, between which another process may come.
        with _Here.tally.get_lock():
            _Here.tally.value += rows


class Workers:
    """Runs tasks in the processes of a pool, or in this one where there is no pool. Results are
    kept in a folder, for who resumes.
    """

    def __init__(self, kept: Path, tally: SharedTally, pool: ProcessPoolExecutor | None) -> None:
        self._kept = kept
        self._tally = tally
        self._pool = pool
        self._stages = count(1)

    def run(
        self,
        function: Callable[[Any], Result],
        tasks: Sequence[Task],
        kind: type[Result],
        *,
        keep: bool = True,
    ) -> list[Result]:
        """Run all tasks and return their results in order; `keep` them for a resumed run."""
        results: dict[str, Result] = {}
        if keep:
            for task in tasks:
                # Another version of eventlog may have left it; then the task is done anew.
                with suppress(FileNotFoundError, msgspec.DecodeError):
                    kept = (self._kept / f"{task.name}.json").read_bytes()
                    results[task.name] = msgspec.json.decode(kept, type=kind)
        open_tasks = [task for task in tasks if task.name not in results]
        for name, result in self._run(function, open_tasks):
            results[name] = result
            if keep:
                # Renamed when it is whole: who resumes takes what has this name as done.
                part = self._kept / f"{name}.part"
                part.write_bytes(msgspec.json.encode(result))
                part.replace(self._kept / f"{name}.json")
        return [results[task.name] for task in tasks]

    def _run(self, function: Callable[[Any], Result], tasks: Sequence[Task]) -> Iterator[tuple[str, Result]]:
        if self._pool is None:
            _Here.tally = self._tally.shared
            for task in tasks:
                yield task.name, guard_task(function, task)
            return
        stage = next(self._stages)
        futures: dict[Future[Result], str] = {}
        for task in tasks:
            futures[self._pool.submit(_in_stage, stage, function, task)] = task.name
        # As they end, in any order, so that what is done is kept although another one fails.
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            message = "A worker process was killed, by somebody or because memory ran out."
            hint = "Run it again; what is done of files is kept."
            raise MachineError(message, hint=hint) from error
        finally:
            for future in futures:
                future.cancel()


def foresee_workers() -> None:
    """Start the server workers are forked from early: it gets ready beside other work."""
    get_context(START).set_forkserver_preload([PRELOADED])
    # Only the main thread may change who hears signals; elsewhere workers see to it (`_begin`).
    if current_thread() is not main_thread():
        forkserver.ensure_running()
        return
    # What begins now inherits that it does not hear Ctrl-C, and so do its workers. Else it would
    # show where it was interrupted, even while Python starts in it.
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, former)


def end_server() -> None:
    """End the server workers are forked from.

    After an interruption it would fork another one, without anything of ours.
    """
    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)  # noqa: SLF001  # it has no other name
    if pid is not None:
        # It may have ended by itself.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def workers(jobs: int, kept: Path, tally: SharedTally) -> Iterator[Workers]:
    """Start the worker processes for the block; use this one alone if locks cannot be shared."""
    if jobs == 1 or find_why_alone():
        yield Workers(kept, tally, None)
        return
    foresee_workers()
    pool = ProcessPoolExecutor(jobs, mp_context=get_context(START), initializer=_begin, initargs=(tally.shared,))
    try:
        yield Workers(kept, tally, pool)
    except KeyboardInterrupt:
        end_server()
        # They do not hear Ctrl-C; what they have half done is done anew by who resumes.
        for worker in active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def guard_task(function: Callable[[Any], Result], task: Task) -> Result:
    """Run the task; the disk's refusal becomes our error, which can travel between processes."""
    try:
        with without_collecting():
            return function(task)
    except OSError as error:
        from eventlog.convert.folders import cannot_write

        raise cannot_write(Path(error.filename or task.folder), error) from error


def _in_stage(stage: int, function: Callable[[Any], Result], task: Task) -> Result:
    """Run a task in a process of the pool. Memory freed by the stage before goes back to the
    system: this one needs other sizes, and both would be held. Before each task it would cost a
    sixth.
    """
    if stage != _Here.stage:
        _Here.stage = stage
        # Only glibc keeps what is freed in the middle of its heap.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
    return guard_task(function, task)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Switch off garbage collection: rows and changes make no cycles, and it costs a tenth."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _begin(shared: Any) -> None:
    """Begin a worker; end it with its parent, which cannot say so when killed."""
    save_memory()
    # What it is forked from hears Ctrl-C where another thread than the main one began that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Here.tally = shared
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def end_with_parent() -> None:
            connection.wait([sentinel])
            # Not `sys.exit`, which ends a thread.
            os._exit(1)

        Thread(target=end_with_parent, daemon=True).start()


BROUGHT: Final = frozenset({"numpy", "pandas"})
"""There where Spark is installed too."""

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
MALLOC: Final = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 64 << 20, M_ARENA_MAX: 1}
"""One heap, of which the system gets back what is free at the end. Smaller steps cost more in page
faults than they save.
"""


class Without(MetaPathFinder):
    """Keeps Arrow from loading what it can do without: 60 MB and half a second that rows need
    nothing of.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(fullname, name=fullname)


def save_memory() -> None:
    """Make this process frugal for the rest of its life; call it before rows are touched."""
    # What is loaded already stays: to load half of it once more would fail.
    sys.meta_path.insert(0, Without(BROUGHT - sys.modules.keys()))
    use_one_core()


def use_one_core() -> None:
    """Have Arrow use one thread and return memory: page faults of others cost a tenth and more."""
    has_tuned_heap = False
    # Only glibc can be told to return what is freed; other libraries have ways of their own.
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        has_tuned_heap = all(mallopt(name, value) for name, value in MALLOC.items())
    if has_tuned_heap:
        # Arrow reads it when it is loaded, for what it allocates by itself; `set_memory_pool` is
        # only about what Python asks of it.
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    import pyarrow as pa

    if has_tuned_heap:
        pa.set_memory_pool(pa.system_memory_pool())
    # The processes share the cores among them.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
