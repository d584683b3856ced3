"""Files that processes share: hidden names are their own, and a claim ends with whoever had it."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import SourceError
from eventlog.sources.stream.claim import Claim

HIDE = """
import os, sys
os.getpid = lambda: 1
from pathlib import Path
from eventlog.durable_files import hide_files
print(hide_files([(Path(sys.argv[1]) / "one.xml", b"<one/>")])[0].temporary.name)
"""


def hidden_by_process_1(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", HIDE, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_two_containers_whose_processes_have_one_number_do_not_write_under_the_same_name(tmp_path: Path) -> None:
    """Else one would remove or replace the file of the other on its way."""
    names = {hidden_by_process_1(tmp_path) for _ in range(2)}
    assert len(names) == 2
    assert {entry.name for entry in tmp_path.iterdir()} == names


def test_a_claim_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    first, second = Claim(tmp_path / "claim"), Claim(tmp_path / "claim")
    assert (first.take(), first.take(), second.take()) == (True, True, False)
    first.leave()
    assert (second.take(), first.take()) == (True, False)
    second.leave()


def test_a_claim_to_a_file_that_was_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had it removed it between our look and our lock: the next one locks another file."""
    claim, usual = Claim(tmp_path / "claim"), fcntl.flock

    def late(*words: Any) -> None:
        claim.path.unlink()
        usual(*words)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", late)
        assert not claim.take()
    assert claim.take()
    claim.leave()


def test_a_process_that_dies_lets_go_of_its_claim(tmp_path: Path) -> None:
    program = "import os, sys; from pathlib import Path; from eventlog.sources.stream.claim import Claim\n"
    program += "assert Claim(Path(sys.argv[1])).take(); os._exit(0)"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "claim")], check=True)
    claim = Claim(tmp_path / "claim")
    assert claim.take()
    claim.leave()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be opened"):
        Claim(tmp_path / "missing" / "claim").take()
