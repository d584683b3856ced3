"""The level that this file belongs to: what needs more than nothing fails here."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import pytest


def test_no_program_is_started_here() -> None:
    with pytest.raises(pytest.fail.Exception, match="starts no servers"):
        subprocess.run(["true"], check=True)
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def test_no_worker_process_is_started_here() -> None:
    with pytest.raises(pytest.fail.Exception, match="starts no servers"):
        multiprocessing.get_context("spawn").Process(target=print).start()
