"""How far an output may lag, and how far one that was resumed may until it has caught up."""

from __future__ import annotations

import pytest

from eventlog.core.outputs import OutputKeys
from eventlog.daemon.lag_limits import is_too_far_behind, pauses_at
from eventlog.sources.log.flow import OutputLag, Resumed

ROWS = OutputKeys(max_behind_rows=10, when_behind="pause")
SECONDS = OutputKeys(max_behind_seconds=60, when_behind="pause")


@pytest.mark.parametrize(
    "output, lag, passed, paused",
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
        (OutputKeys(max_behind_rows=10, when_behind="wait"), OutputLag(rows=11), True, False),
        (OutputKeys(), OutputLag(rows=11, seconds=1e9), False, False),
    ],
)
def test_a_bound_counts_anew_from_where_an_output_was_resumed(
    output: OutputKeys, lag: OutputLag, passed: bool, paused: bool
) -> None:
    assert (is_too_far_behind(output, lag), pauses_at(output, lag)) == (passed, paused)
