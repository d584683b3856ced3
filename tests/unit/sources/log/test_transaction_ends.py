"""Which transactions go on behind the rows that were read."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from eventlog.sources.log.ends import TransactionEnds
from eventlog.sql.log import Log


class WaitingLog:
    """A log whose waiting transactions end at these numbers."""

    def __init__(self, ends: dict[int | None, int]) -> None:
        self.ends = ends
        self.asked = 0

    def query(self, name: str) -> str:
        return name

    def rows(self, _connection: object, query: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        if query == "still_waiting":
            return [(number,) for number in json.loads(parameters["ids"]) if number in self.ends.values()]
        assert query == "transaction_ends"
        self.asked += 1
        return list(self.ends.items())


@pytest.mark.parametrize(
    "ends, lasts, going_on",
    [
        ({7: 31}, {7: 31}, set()),
        ({7: 45}, {7: 31}, {7}),
        # Rows of 9, which were left for later, have higher numbers than all that waits of 7.
        ({7: 45, 9: 61}, {7: 31, 9: 61}, {7}),
        ({7: 45, 9: 61}, {7: 45, 9: 50}, {9}),
        ({None: 80, 7: 31}, {7: 31}, set()),
        ({9: 61}, {7: 31}, set()),  # nothing of 7 waits any more
    ],
)
def test_a_transaction_goes_on_where_it_has_rows_behind_its_own_last(
    ends: dict[int | None, int], lasts: dict[int, int], going_on: set[int]
) -> None:
    log = WaitingLog(ends)
    assert TransactionEnds(cast("Log", log)).behind(cast("Any", None), lasts, 1).keys() == going_on


def test_a_row_behind_that_waits_no_longer_hides_no_end() -> None:
    """Somebody requeued the first rows of a transaction: the others have their letters."""
    log = WaitingLog({7: 45})
    ends = TransactionEnds(cast("Log", log))
    assert ends.behind(cast("Any", None), {7: 31}, 1) == {7: 45}
    log.ends = {7: 12}
    assert ends.behind(cast("Any", None), {7: 12}, 1) == {}
