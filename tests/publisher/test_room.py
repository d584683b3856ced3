"""What was left of transactions takes nobody's room: alone it would go without the end of its transactions."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.core.model import Reason
from eventlog.publisher import journal_view
from eventlog.publisher.selection import BEHIND, NOTHING_SENT
from eventlog.publisher.tables import Parked
from tests.publisher.scene import Scene


@pytest.mark.parametrize("left", [1, 7, 40])
def test_rows_of_other_objects_go_with_whatever_was_left(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr(journal_view, "NEAR_ROWS", 2)
    scene = Scene(sqlite, "far")
    scene.write(1, left, objects=1)
    scene.write(left + 1, left + 3)
    reason = Reason.GOES_ON.value
    rows = [
        Parked(output="far", record=number, object="one", reason=reason, due=0 if number == 1 else None)
        for number in range(1, left + 1)
    ]
    rows += [
        Parked(output="far", record=number, object=f"another {number}", reason=BEHIND, due=0)
        for number in range(left + 1, left + 4)
    ]
    with scene.journal.transaction() as journal:
        journal.park(rows)
    with scene.journal.reading() as view_now:
        going, _ = view_now.due("far", scene.journal.now(), 2, NOTHING_SENT)
    numbers = [row.record for row in going]
    assert numbers[:left] == [*range(1, left + 1)]
    assert left + 1 in numbers
    assert len(numbers) <= left + 2
