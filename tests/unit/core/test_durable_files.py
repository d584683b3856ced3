"""Hidden files of processes that have one number, as the first ones of two containers have: 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HIDE = """
import os, sys
os.getpid = lambda: 1
from pathlib import Path
from eventlog.core.durable_files import hide_files
print(hide_files([(Path(sys.argv[1]) / "one.xml", b"<one/>")])[0].temporary.name)
"""


def hidden_by_process_1(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", HIDE, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_two_containers_do_not_write_under_the_same_name(tmp_path: Path) -> None:
    """Else one would remove or replace the file of the other on its way."""
    names = {hidden_by_process_1(tmp_path) for _ in range(2)}
    assert len(names) == 2
    assert {entry.name for entry in tmp_path.iterdir()} == names
