"""Profiles: which accidents a run of histories has."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tests.histories.accidents import CALM
from tests.histories.world import Profile

HELD: Final = replace(CALM, interruptions=0.03, holds=0.08, pauses=0.02, restarts=0.01, holes=0.05, filters=0.3)
"""Rows are held and released and outputs paused at any moment, while nothing fails."""

PROFILES: Final = {
    "calm": Profile(accidents=CALM),
    "everything": Profile(),
    "held": Profile(accidents=HELD),
}
