"""What a conversion does in processes of its own: it reads files for their tables, and works without libraries that take much."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from eventlog.convert.work import SharedTally, Task, workers
from tests.support.converting import log_row, write_parquet


@pytest.mark.parametrize("frugal", ["", "save_memory()"])
def test_a_frugal_process_converts_without_pandas(tmp_path: Path, frugal: str) -> None:
    source = write_parquet(tmp_path / "a.parquet", [log_row(1)])
    script = (
        f"from eventlog.convert.work import save_memory\n{frugal}\n"
        "from pathlib import Path\nimport sys\nfrom eventlog.convert.settings import Conversion, FilesInput\n"
        "from eventlog.convert.local import convert\n"
        f"ordered = Conversion(input=FilesInput(places=({str(source)!r},)), destination=Path({str(tmp_path / 'out')!r}))\n"
        "print(convert(ordered, jobs=1).changes, 'pandas' in sys.modules and bool(save_memory))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    changes, loaded = done.stdout.split()
    assert changes == "1"
    assert loaded == "False" or not frugal


def test_arrow_takes_all_of_its_memory_from_the_heap_that_is_given_back(tmp_path: Path) -> None:
    """Its other pools keep what is free, and it would use one of them for what nobody asks of it in Python."""
    source = write_parquet(tmp_path / "a.parquet", [log_row(number) for number in range(1, 1001)])
    script = (
        "from eventlog.convert.work import save_memory\nsave_memory()\n"
        f"import pyarrow as pa\nfrom pyarrow import parquet\nparquet.read_table({str(source)!r}).sort_by('record_id')\n"
        "pools = [getattr(pa, f'{name}_memory_pool')() for name in pa.supported_memory_backends()]\n"
        "print(*[pool.backend_name for pool in pools if pool.max_memory()])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["system"]


def linger(task: Task) -> int:
    (Path(task.folder) / task.name).touch()
    time.sleep(600)
    return 0


def test_who_interrupts_does_not_wait_for_what_workers_are_about(tmp_path: Path) -> None:
    def interrupt() -> None:
        while not (tmp_path / "one").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    timer = Timer(0.0, interrupt)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), workers(2, tmp_path, SharedTally()) as crew:
        crew.run(linger, [Task(name="one", folder=str(tmp_path))], int)
    timer.join()
    assert time.monotonic() - began < 300  # a task takes 600 seconds
