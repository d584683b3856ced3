"""A claim keeps others away while it lasts, and ends with whoever had it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.core.errors import SourceError
from eventlog.sources.stream.claim import Claim


def test_one_at_a_time(tmp_path: Path) -> None:
    first, second = Claim(tmp_path / "claim"), Claim(tmp_path / "claim")
    assert (first.take(), first.take(), second.take()) == (True, True, False)
    first.leave()
    assert (second.take(), first.take()) == (True, False)
    second.leave()


def test_a_process_that_dies_lets_go(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path; from eventlog.sources.stream.claim import Claim\n"
    program += "assert Claim(Path(sys.argv[1])).take(); os._exit(0)"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "claim")], check=True)
    claim = Claim(tmp_path / "claim")
    assert claim.take()
    claim.leave()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be opened"):
        Claim(tmp_path / "missing" / "claim").take()
