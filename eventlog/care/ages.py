"""Spans of time as people write them, such as `6h`, and moments in words and in JSON. Pure."""

from __future__ import annotations

import datetime as dt
import re

_age = re.compile(r"([0-9]{1,9})\s*([smhdw])").fullmatch
_unit_seconds = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def seconds_of(text: str) -> int | None:
    """Convert `30d`, `12h`, `90m`, `45s` or `2w` to seconds; None for anything else."""
    match = _age(text.strip())
    if match is None:
        return None
    return int(match[1]) * _unit_seconds[match[2]]


def utc_text(seconds: float | None) -> str | None:
    """Write a moment, in seconds since 1970, for people: `2026-11-27 02:49:08`, in UTC."""
    if seconds is None:
        return None
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def utc_json(moment: float | str | None) -> str | None:
    """Write a moment for JSON, in ISO 8601; given as seconds since 1970, or in the form for people."""
    if moment is None:
        return None
    if isinstance(moment, str):
        return f"{moment.replace(' ', 'T', 1)}Z"
    at = dt.datetime.fromtimestamp(moment, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_json(time: str | None) -> str | None:
    """Write a time of a log for JSON, in ISO 8601; other texts of a log stay as they are."""
    return time and re.sub(r"^(\d{4}-\d\d-\d\d) (?=\d\d:)", r"\1T", time)
