"""Commands that a server of the tests forks are what they would be had they begun from nothing, and end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command import eventlog
from tests.integration.publishing import until
from tests.support import forking
from tests.support.forking import Forked

WAITING = "import time; time.sleep(600)"


@pytest.mark.parametrize("words", ["rules", "status --database sqlite:///none.db", "--nonsense", "explain --help"])
def test_it_says_and_ends_as_one_that_began_from_nothing(tmp_path: Path, words: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")} | {"NO_COLOR": "1"}
    command = [sys.executable, "-m", "eventlog", *words.split()]
    real = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=kept)
    forked = eventlog(*words.split(), cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


def test_it_is_killed_as_any_other_and_ends_with_the_server() -> None:
    one, other = (Forked("rules", environment=os.environ, program=WAITING) for _ in range(2))
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(0.01)
    assert one.poll() is None
    one.kill()
    assert one.wait(60) == -signal.SIGKILL
    forking.end()
    assert other.wait(60) == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{other.pid}").exists(), "it has ended")
