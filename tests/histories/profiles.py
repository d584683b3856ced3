"""Profiles: which accidents a run of histories has."""

from __future__ import annotations

from typing import Final

from tests.histories.accidents import CALM, EVERYTHING
from tests.histories.world import Profile

PROFILES: Final = {
    "calm": Profile(accidents=CALM),
    "everything": Profile(accidents=EVERYTHING),
}
