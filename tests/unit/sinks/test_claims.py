"""Who has a folder of documents: whoever is killed while taking it over leaves nothing that stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from eventlog.core.seams import Tenure
from eventlog.sinks.plan_folder import OWNERS, OwnedFolder

DYING: Final = """
import os, signal, sys
from pathlib import Path
from eventlog.core.seams import Tenure
from eventlog.sinks.plan_folder import OwnedFolder
_, folder, step, epoch = sys.argv
setattr(os, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
OwnedFolder(Path(folder)).take_over(Tenure(log="log", name="the log", epoch=int(epoch)))
"""


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in (folder / OWNERS).iterdir())


@pytest.mark.parametrize("step", ["replace", "fsync", "unlink"])
def test_kills_leave_no_claim_behind_the_next_owner(tmp_path: Path, step: str) -> None:
    OwnedFolder(tmp_path).take_over(Tenure(log="log", name="the log", epoch=1))
    for epoch in ("2", "3"):
        killed = subprocess.run([sys.executable, "-c", DYING, str(tmp_path), step, epoch], check=False)
        assert killed.returncode == -9
    assert len(names(tmp_path)) > 1
    OwnedFolder(tmp_path).take_over(Tenure(log="log", name="the log", epoch=9))
    assert names(tmp_path) == [f"{9:020d}.json"]
