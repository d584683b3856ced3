"""After a run of tests nothing is left and nothing runs, however it ended; what was left makes it fail, with its name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.publishing import until

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
from tests.conftest import pytest_addoption, pytest_configure
"""
LEAVING = """
import os, subprocess, sys, tempfile
from pathlib import Path

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]

def test_that_cleans_up(tmp_path):
    (tmp_path / "kept").write_text("by pytest")

def test_that_leaves_a_process():
    process = subprocess.Popen(SLEEPER)
    process.returncode = 0  # so that Python itself does not complain
    Path(os.environ["TOLD"]).write_text(f"{process.pid} {tempfile.gettempdir()}")

def test_that_leaves_files():
    tempfile.mkdtemp(prefix="forgotten-")
    (Path.home() / "cache").mkdir()

def test_that_waits():
    import time
    Path(os.environ["TOLD"]).write_text(f"{os.getpid()} {tempfile.gettempdir()}")
    time.sleep(600)
"""


class Place:
    """A project of tests in a folder, whose runs are like ours."""

    def __init__(self, folder: Path) -> None:
        self.told = folder / "told"
        self.tests = folder / "tests"
        self.tests.mkdir()
        (self.tests / "conftest.py").write_text(CONFTEST)
        (self.tests / "test_leaving.py").write_text(LEAVING)

    def begun(self, chosen: str, *options: str) -> subprocess.Popen[str]:
        """A run of the tests whose names hold one of these words."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *options]
        return subprocess.Popen(
            [*command, str(self.tests)],
            cwd=self.tests,
            env={**kept, "PYTHONPATH": str(ROOT), "TOLD": str(self.told)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, chosen: str, *options: str) -> tuple[int, str]:
        """How such a run ended, and what it said."""
        with self.begun(chosen, *options) as run:
            said = run.communicate(timeout=300)[0]
            return run.returncode, said

    def check_nothing_is_left(self) -> None:
        """Neither the process that was told of, nor the folder of its run."""
        process, folder = self.told.read_text().split()
        assert not Path(folder).exists()
        until(lambda: not runs(int(process)), "the process ends")


def runs(process: int) -> bool:
    """Whether it does something yet: one that nobody has asked how it ended does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_run_that_cleans_up_passes(place: Place) -> None:
    code, said = place.run("cleans")
    assert (code, "1 passed" in said, "left behind" in said) == (0, True, False), said


def test_a_process_that_is_left_is_named_with_its_test_and_ended(place: Place) -> None:
    code, said = place.run("leaves_a_process")
    assert (code, "1 error" in said) == (1, True), said
    assert "of test_leaving.py::test_that_leaves_a_process" in said
    assert "time.sleep(600)" in said
    place.check_nothing_is_left()


def test_files_that_are_left_are_named_and_removed(place: Place) -> None:
    code, said = place.run("leaves_files")
    assert (code, "1 error" in said) == (1, True), said
    [forgotten] = {line for line in said.splitlines() if "/forgotten-" in line}
    assert not Path(forgotten).exists()
    assert "/home/cache" in said


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "options, with_signal",
    [
        ((), signal.SIGINT),
        (("-n", "1"), signal.SIGTERM),
        pytest.param((), signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(("-n", "1"), signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_who_breaks_it_off_leaves_nothing(place: Place, with_signal: signal.Signals, options: tuple[str, ...]) -> None:
    with place.begun("waits", *options) as run:
        until(place.told.exists, "the test runs")
        run.send_signal(with_signal)
        run.communicate(timeout=300)
    assert run.returncode == 2
    place.check_nothing_is_left()
