"""Vitals as others read them: the text format of Prometheus, and answers to health checks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from eventlog.daemon.vitals import Reading
from eventlog.version import VERSION

SILENCE: Final = 300.0
"""Seconds after which a loop that has not moved is taken for dead: longer than a request or a statement may take."""

STATES: Final = ("starting", "standby", "publishing", "failing", "stopping")
READY: Final = frozenset({"standby", "publishing"})
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Answer(Struct, frozen=True, kw_only=True):
    """What a check is told: an HTTP status and a body. Anybody may ask, so it has no text of an error."""

    status: int
    body: bytes


def health(reading: Reading) -> Answer:
    """Whether the process is worth keeping alive."""
    return _answer(reading, good=reading.silent < SILENCE)


def ready(reading: Reading) -> Answer:
    """Whether it publishes, or would as soon as the one before it ends."""
    return _answer(reading, good=reading.state in READY and reading.silent < SILENCE)


def metrics(reading: Reading) -> bytes:
    """Every figure, in the text format of Prometheus."""
    return "".join(line + "\n" for line in _lines(reading)).encode()


def _answer(reading: Reading, *, good: bool) -> Answer:
    body: dict[str, object] = {"state": reading.state, "silent_seconds": round(reading.silent, 1)}
    if reading.standby is not None:  # figures only: anybody may ask, and which host has the lock is not for anybody
        standby = reading.standby
        body["standby"] = {"waiting": standby.waiting, "stalled_seconds": standby.stalled_seconds}
    return Answer(status=200 if good else 503, body=msgspec.json.encode(body) + b"\n")


def _lines(reading: Reading) -> Iterator[str]:
    yield from _metric("info", "gauge", "Version of eventlog.", {f'version="{VERSION}"': 1})
    yield from _metric(
        "state",
        "gauge",
        "1 for what the publisher is about.",
        {f'state="{s}"': int(s == reading.state) for s in STATES},
    )
    rows = {f'status="{letter}"': reading.rows.get(letter, 0) for letter in "SWEF"}
    yield from _metric("rows_total", "counter", "Rows settled, by status letter.", rows)
    yield from _metric("changes_total", "counter", "Changes published.", {"": reading.changes})
    yield from _metric("documents_total", "counter", "Documents written, over all outputs.", {"": reading.documents})
    yield from _metric("heartbeats_total", "counter", "Heartbeats published.", {"": reading.heartbeats})
    yield from _metric("cycles_total", "counter", "Cycles that came to their end.", {"": reading.cycles})
    yield from _metric("active_cycles_total", "counter", "Cycles that published.", {"": reading.active_cycles})
    yield from _metric("cycle_seconds_total", "counter", "Time spent in cycles.", {"": reading.seconds})
    failures = {f'blame="{blame}"': reading.failures.get(blame, 0) for blame in ("source", "sink", "other")}
    yield from _metric("failures_total", "counter", "Cycles that failed, by whose fault it was.", failures)
    yield from _metric("last_cycle_timestamp_seconds", "gauge", "End of the last cycle.", {"": reading.last_cycle})
    yield from _metric(
        "last_document_timestamp_seconds", "gauge", "Time of the last document.", {"": reading.last_document}
    )
    yield from _metric("waiting_rows", "gauge", "Rows that wait to be published.", {"": reading.waiting})
    yield from _metric("lag_seconds", "gauge", "Age of the row that waits longest.", {"": reading.lag})
    standby = reading.standby
    yield from _metric(
        "standby_waiting_rows",
        "gauge",
        "Rows that wait while this publisher stands by, counted up to 1000.",
        {"": None if standby is None else standby.waiting},
    )
    yield from _metric(
        "standby_stalled_seconds",
        "gauge",
        "Time for which rows have waited while the publisher that has the lock settled nothing.",
        {"": None if standby is None else standby.stalled_seconds},
    )
    yield from _metric("silent_seconds", "gauge", "Time since the loop last moved.", {"": reading.silent})


def _metric(name: str, kind: str, meaning: str, values: Mapping[str, float | None]) -> Iterator[str]:
    """One metric; a value that nobody knows yet is left out."""
    yield f"# HELP eventlog_{name} {meaning}"
    yield f"# TYPE eventlog_{name} {kind}"
    for label, value in values.items():
        if value is not None:
            yield f"eventlog_{name}{f'{{{label}}}' if label else ''} {value}"
