"""The processes of a Spark that runs on this machine, for the tests that kill them; from /proc, for `ps` is not everywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.leftovers import JAVA

ROOT: Final = Path(__file__).resolve().parents[2]
JAVA_OPTIONS: Final = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={Path(tempfile.gettempdir()) / JAVA}"
"""A Java of tests lives for seconds, in which a second compiler and threads that collect garbage cost more than they gain."""


def apart(folder: Path) -> dict[str, str]:
    """The environment of a driver that will be killed: what it leaves stands in a folder of its test."""
    (folder / JAVA).mkdir(exist_ok=True)
    return os.environ | {"TMPDIR": str(folder)}


def started(module: str, folder: Path, *told: str) -> subprocess.Popen[str]:
    """A module of these tests as a driver that will be killed."""
    command = [sys.executable, "-m", f"tests.spark.{module}", *told]
    return subprocess.Popen(
        command, cwd=ROOT, env=apart(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def assert_killed(driver: subprocess.Popen[str]) -> None:
    """The driver has come to the moment at which it kills itself."""
    _, err = driver.communicate(timeout=3600)
    assert driver.returncode == -signal.SIGKILL, err[-3000:]


def kill_workers(root: int, *, most: int | None = None) -> int:
    """Kills Python workers below a process, all of them or so many; says how many there were."""
    found = workers(root)[:most]
    for worker in found:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    return len(found)


def workers(root: int) -> list[int]:
    """Python processes below the JVM below a process, the one that forks them left out: Spark asks it for others."""
    parents = _parents()

    def below(process: int) -> bool:
        while process > 1:
            process = parents.get(process, 0)
            if process == root:
                return True
        return False

    return [one for one, parent in parents.items() if below(one) and _is_python(one) and _is_python(parent)]


def kill_tree(root: int) -> None:
    """Kills a process and all that it has started, the youngest first."""
    for child in [process for process, parent in _parents().items() if parent == root]:
        kill_tree(child)
    with suppress(ProcessLookupError):
        os.kill(root, signal.SIGKILL)


def _parents() -> dict[int, int]:
    return {int(path.name): _parent(path) for path in Path("/proc").glob("[0-9]*")}


def _parent(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _is_python(process: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
