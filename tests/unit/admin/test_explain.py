"""What was recorded of a row, in a sentence."""

from __future__ import annotations

import pytest

from eventlog.admin.explain import _recorded


@pytest.mark.parametrize(
    "row, said",
    [
        (
            ("N", "held", "held since 2026-11-22 by ann: moves", None, None, None, True, None),
            "held since 2026-11-22 by ann: moves.",
        ),
        (
            ("N", "held", "an earlier change comes first.", None, None, None, False, None),
            "held: an earlier change comes first.",
        ),
    ],
)
def test_what_is_recorded_of_a_held_row_is_said_once(row: tuple[object, ...], said: str) -> None:
    assert _recorded([row], "") == f"Recorded: N {said}"


def test_a_record_in_which_nothing_stands_is_none() -> None:
    assert _recorded([(None, None, None, None, None, None, False, None)], "It waits.") == "It waits."
