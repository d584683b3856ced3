"""Spans of time as people write them: a whole number with its unit, such as `6h`. Pure."""

from __future__ import annotations

import re

_age = re.compile(r"([0-9]{1,9})\s*([smhdw])").fullmatch
_unit_seconds = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds_of(text: str) -> int | None:
    """`30d`, `12h`, `90m`, `45s` or `2w` in seconds; None for anything else."""
    match = _age(text.strip())
    if match is None:
        return None
    return int(match[1]) * _unit_seconds[match[2]]
