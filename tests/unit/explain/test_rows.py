"""What was recorded of a row, in a sentence."""

from __future__ import annotations

import pytest

from eventlog.explain.rows import _describe_records

AT = "2026-11-22 10:00:00"


@pytest.mark.parametrize(
    "rows, waits, said",
    [
        (
            [("S", "superseded", "superseded by 22", AT)],
            "",
            f"Recorded at {AT}: S superseded by 22.",
        ),
        ([("E", "refused", "no such group.", None)], "", "Recorded: E refused: no such group."),
        ([("W", "skipped", None, None)], "It waits.", "Recorded: W skipped. It waits."),
        ([(None, None, None, None)], "It waits.", "It waits."),
        ([], "It is held since noon.", "It is held since noon."),
        ([], "", "Nothing more was recorded."),
    ],
)
def test_what_is_recorded_of_a_row_is_said_once(rows: list[tuple[object, ...]], waits: str, said: str) -> None:
    assert _describe_records(rows, waits) == said
