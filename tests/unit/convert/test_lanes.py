"""The plan of messages that are being sent: what another version of eventlog has left is no plan of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.convert.commit import Summary
from eventlog.convert.lanes import LanePlan, keep_plan, kept_plan
from eventlog.convert.partitions import PartitionFile
from eventlog.convert.sending import SENDING
from eventlog.core.errors import EX_UNAVAILABLE, MachineError


def plan() -> LanePlan:
    """Two stretches, of which one has nothing in lane 1."""
    one = PartitionFile(path="one", labels=(0, 1), rows=(2, 3), places=(100, 200), sizes=(100, 50))
    other = PartitionFile(path="other", labels=(0,), rows=(4,), places=(100,), sizes=(70,))
    return LanePlan(after="", last="9", laid=(one, other), ended=(one,), summary=Summary(rows=9))


def test_a_plan_is_read_as_it_was_kept(tmp_path: Path) -> None:
    keep_plan(tmp_path, plan())
    assert kept_plan(tmp_path) == plan()


def test_the_plan_of_another_version_is_told(tmp_path: Path) -> None:
    (tmp_path / SENDING).write_text('{"after": "", "last": "9", "laid": [{"path": "one"}]}')
    with pytest.raises(MachineError, match="another version of eventlog") as caught:
        kept_plan(tmp_path)
    assert caught.value.exit_code == EX_UNAVAILABLE
    assert "the version that began" in str(caught.value)
