"""The image of 0.2.0 is replaced by this one while rows wait and writers write; nothing is lost."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from eventlog.version import VERSION
from tests.containers.touring import Tour, Watched, until
from tests.hardening.ledger.runs import waiting
from tests.hardening.ledger.writers import at_work
from tests.support.containers import ROOT, ContainerEngine, EngineError

pytestmark = pytest.mark.containers

PREVIOUS: Final = "643b2496"
"""The commit that was 0.2.0."""

PREVIOUS_IMAGE: Final = "eventlog:0.2.0"


@pytest.fixture
def previous_image(container_engine: ContainerEngine, tmp_path: Path) -> str:
    """The image of 0.2.0, from its own Dockerfile and lock; once made, it stays as it is."""
    if container_engine.has(PREVIOUS_IMAGE):
        return PREVIOUS_IMAGE
    packed = subprocess.run(["git", "archive", PREVIOUS], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone does not go back to {PREVIOUS}, which is 0.2.0")
    folder = tmp_path / "previous"
    folder.mkdir()
    subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
    container_engine.build(PREVIOUS_IMAGE, folder / "docker" / "Dockerfile", folder)
    return PREVIOUS_IMAGE


def upgraded(tour: Tour) -> bool:
    """Whether the log is of this version now; for some seconds nobody can tell a publisher that was killed from one at work."""
    try:
        tour.once("prepare", "eventlog upgrade")
    except EngineError as error:
        if "or was killed some seconds ago" not in str(error):
            raise
        return False
    return True


def test_the_previous_image_is_replaced_while_rows_wait(tour: Tour, previous_image: str, tmp_path: Path) -> None:
    tour.write({name: {"image": previous_image, "build": None} for name in ("prepare", "publisher")})
    tour.compose("up", "--detach")
    until(tour.ready, why="the previous publisher is not ready")
    assert "0.2.0" in tour.inside("publisher", "eventlog", "--version")
    watched = Watched(tour, seed=2)
    with at_work(*watched.works):
        time.sleep(2)
        tour.engine.do("kill", tour.container("publisher"))
        until(lambda: waiting(watched.database) > 20, why="nobody writes")
        tour.write()
        until(lambda: upgraded(tour), why="the log is not upgraded")
        tour.compose("up", "--detach")
        until(tour.ready, why="the new publisher is not ready")
        assert VERSION in tour.inside("publisher", "eventlog", "--version")
        time.sleep(1)
    assert watched.findings(tmp_path) == []
    watched.database.dispose()
