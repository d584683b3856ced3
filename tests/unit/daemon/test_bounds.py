"""How far an output may lag, and how far one that was resumed may until it has caught up."""

from __future__ import annotations

import pytest

from eventlog.daemon.lag_limits import MostBehind
from eventlog.sources.log.flow import OutputLag, Resumed

ROWS = MostBehind(rows=10, pause=True)
SECONDS = MostBehind(seconds=60, pause=True)


@pytest.mark.parametrize(
    "most, lag, passed, paused",
    [
        (ROWS, OutputLag(rows=10), False, False),
        (ROWS, OutputLag(rows=11), True, True),
        (ROWS, OutputLag(rows=11, seconds=1e9), True, True),
        (ROWS, OutputLag(rows=30, resumed=Resumed(rows=30)), True, False),
        (ROWS, OutputLag(rows=40, resumed=Resumed(rows=30)), True, False),
        (ROWS, OutputLag(rows=41, resumed=Resumed(rows=30)), True, True),
        (ROWS, OutputLag(rows=9, resumed=Resumed(rows=30)), False, False),
        (SECONDS, OutputLag(rows=1), False, False),
        (SECONDS, OutputLag(rows=1, seconds=61.0), True, True),
        (SECONDS, OutputLag(rows=1, seconds=3600.0, resumed=Resumed(rows=1, seconds=3590.0)), True, False),
        (SECONDS, OutputLag(rows=1, seconds=3651.0, resumed=Resumed(rows=1, seconds=3590.0)), True, True),
        (MostBehind(rows=10), OutputLag(rows=11), True, False),
        (MostBehind(), OutputLag(rows=11, seconds=1e9), False, False),
    ],
)
def test_a_bound_counts_anew_from_where_an_output_was_resumed(
    most: MostBehind, lag: OutputLag, passed: bool, paused: bool
) -> None:
    assert (most.is_passed(lag), most.is_paused_at(lag)) == (passed, paused)
