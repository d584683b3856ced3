"""How many examples a property has that cannot have as many as others, because each is dear, or needs more than they."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def examples(hundredths: int, **others: Any) -> settings:
    """Set the share of the run's examples, in hundredths: fewer with --quick, more with --long."""
    return settings(max_examples=max(2, settings().max_examples * hundredths // 100), **others)
