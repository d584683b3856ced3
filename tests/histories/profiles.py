"""Profiles: which accidents a run of histories has, and what today's heart survives of them.

A heart that is finished survives `everything`; then `today` and `held` go, and the faults of
`test_known_faults.py` with them.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tests.histories.accidents import CALM, EVERYTHING
from tests.histories.world import Profile

RECORDS: Final = r"its record says|outlives its row"
"""What is found of records that contradict letters, or outlive their rows."""

TODAY: Final = replace(
    EVERYTHING,
    **dict.fromkeys(("retry", "partial_retry", "unreadable", "unreadable_taken", "cut_off", "cut_off_taken"), 0.0),
    **dict.fromkeys(("holds", "setbacks", "deletes", "letters", "renames", "removals"), 0.0),
)
"""Deaths, errors, ambiguous commits and takeovers, with rows that nobody touches meanwhile and
answers that can be read.
"""

HELD: Final = replace(CALM, interruptions=0.03, holds=0.08, pauses=0.02, restarts=0.01, holes=0.05, filters=0.3)
"""Rows are held and released and outputs paused at any moment, while nothing fails."""

PROFILES: Final = {
    "calm": Profile(accidents=CALM),
    "everything": Profile(),
    "held": Profile(accidents=HELD, forgives=RECORDS),
    "today": Profile(accidents=TODAY),
}
