"""What every test gets: Hypothesis profiles, and the database servers where their plug-in exists."""

from __future__ import annotations

import os
from importlib.util import find_spec

from hypothesis import HealthCheck, settings

SERVERS = tuple(f"tests.servers{one}" for one in ("", "_mysql", "_oracle", "_kafka", "_registry"))
pytest_plugins = [name for name in SERVERS if find_spec(name)]

# Shared machines stutter, so time limits per example would fail at random; the blob makes a failure repeatable elsewhere.
settings.register_profile(
    "local", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=False, database=None, max_examples=200)
settings.register_profile("quick", settings.get_profile("local"), max_examples=10)
settings.load_profile("ci" if os.environ.get("CI") else "local")
