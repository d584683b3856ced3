"""Answers to health checks, from what the publisher has counted. Pure."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from eventlog.daemon.vitals import VitalsReading

SILENCE_SECONDS: Final = 300.0
"""Seconds after which a loop that has not moved is taken for dead: longer than a request or a statement may take."""

READY: Final = frozenset({"standby", "publishing"})


class HealthAnswer(Struct, frozen=True, kw_only=True):
    """What a check is told: an HTTP status and a body. Anybody may ask, so it has no text of an error."""

    status: int
    body: bytes


def health(reading: VitalsReading) -> HealthAnswer:
    """Whether the process is worth keeping alive."""
    return _answer(reading, good=reading.silent < SILENCE_SECONDS)


def ready(reading: VitalsReading) -> HealthAnswer:
    """Whether it publishes, or would as soon as the one before it ends."""
    return _answer(reading, good=reading.state in READY and reading.silent < SILENCE_SECONDS)


def _answer(reading: VitalsReading, *, good: bool) -> HealthAnswer:
    body: dict[str, object] = {"state": reading.state, "silent_seconds": round(reading.silent, 1)}
    if reading.standby is not None:  # figures only: anybody may ask, and which host has the lock is not for anybody
        standby = reading.standby
        body["standby"] = {"waiting": standby.waiting, "stalled_seconds": standby.stalled_seconds}
    return HealthAnswer(status=200 if good else 503, body=msgspec.json.encode(body) + b"\n")
