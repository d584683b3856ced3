"""Each known fault of today's heart, as a history that shows it: it fails until the heart is
mended, and is taken out then.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.histories.faults import FAULTS, Fault
from tests.histories.grounds import SqliteGround
from tests.histories.receiving import Receiver
from tests.histories.world import World, Wrong

pytestmark = pytest.mark.long  # in a run with several processes one of them has ended in the middle of a history


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name, marks=() if fault.mended else pytest.mark.xfail(raises=Wrong, reason=fault.item))
        for name, fault in FAULTS.items()
    ],
)
def test_a_known_fault_is_mended(fault: Fault, receiver: Receiver, tmp_path: Path) -> None:
    """Strict, as all of them are: a heart without the fault makes it fail."""
    for number in range(fault.seeds):
        folder = tmp_path / str(number)
        folder.mkdir()
        world = World(fault.seed + number, SqliteGround(folder), receiver, fault.profile)
        try:
            assert world.run()["rows"]
        except Wrong as wrong:
            if any(re.search(fault.finding, one) for one in wrong.findings):
                raise
