"""The first page: does it flow, what is stuck and why. Pure: a reading in, what its template shows out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from eventlog.web.chart import Chart, curve
from eventlog.web.reading import PageReading, Sample
from eventlog.web.words import address, counted, duration

LATE_SECONDS: Final = 300.0
"""Of lag from which on somebody should look."""

LONGEST_ERROR_CHARACTERS: Final = 300
"""In the table of outputs."""

CHART_VALUES: Final = 240
"""As many as a chart can show: a page stays small."""

_words: Final = {"good": "Flowing.", "warn": "Look here.", "bad": "Stuck."}


class Verdict(Struct, frozen=True, kw_only=True):
    """One sentence for whoever is on call; a part of it may be a link."""

    kind: str
    before: str = ""
    link: str = ""
    to: str = ""
    after: str = ""

    @property
    def word(self) -> str:
        return _words[self.kind]


def facts_of(reading: PageReading) -> Mapping[str, Any]:
    """What the template of the live part shows."""
    facts = reading.facts
    return {
        "reading": reading,
        "latest": reading.latest,
        "verdict": verdict(reading),
        "publisher": _publisher(reading),
        "curves": _curves(reading),
        "facts": facts,
        "every": 0 if facts is None else sum(facts.rows.values()) + sum(facts.ignored.values()),
        "reasons": sorted(reading.reasons, key=lambda one: (one.status or "", one.reason or "")),
        "clock": dt.datetime.fromtimestamp(reading.now, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def verdict(reading: PageReading) -> Verdict:
    """Whether it flows; the first that is wrong is said."""
    latest, loop, facts = reading.latest, reading.loop, reading.facts
    if reading.trouble:
        return Verdict(kind="bad", before=f"The log cannot be read: {reading.trouble}")
    if facts is not None and facts.failing:
        tables = ", ".join(dict.fromkeys(facts.failing.values()))
        said = (
            f"Every write to {tables} fails: a trigger names a column that is gone. `eventlog check` says what to do."
        )
        return Verdict(kind="bad", before=said)
    if loop is not None and loop.state == "failing":
        return Verdict(kind="bad", before=f"The publisher fails: {loop.error or 'it does not say why.'}")
    if latest is None:
        return Verdict(kind="warn", before="Nothing has been measured yet.")
    if latest.oldest is not None and (latest.lag is None or latest.lag > LATE_SECONDS):
        nobody = "" if reading.publisher else " No publisher works on this log."
        after = f", has waited for {duration(latest.lag)}.{nobody}"
        row = f"row {latest.oldest}"
        return Verdict(kind="bad", before="The oldest, ", link=row, to=address("rows", latest.oldest), after=after)
    if reading.publisher is None and latest.waiting:
        return Verdict(kind="warn", before="Rows wait, and no publisher works on this log.")
    failed = 0 if facts is None else sum(facts.rows.get(letter, 0) for letter in "EF")
    if failed:
        return Verdict(kind="warn", link=f"Not published: {counted(failed)}.", to=address("rows", status="EF"))
    stale = 0 if facts is None else len(facts.triggers)
    if stale:
        return Verdict(kind="warn", before=f"Not current: {counted(stale, 'trigger')}.")
    return Verdict(kind="good", before="Nothing is stuck.")


def _publisher(reading: PageReading) -> str:
    if reading.loop is not None:
        return reading.loop.state
    return "works elsewhere" if reading.publisher else "none works on this log"


def _curves(reading: PageReading) -> list[Chart]:
    def points(of: str) -> list[tuple[float, float]]:
        return [(one.at, float(found)) for one in _thinned(reading) if (found := getattr(one, of)) is not None]

    return [
        curve("Waiting rows", "rows", points("waiting"), reading.now),
        curve("Lag", "s", points("lag"), reading.now),
        curve("Settled", "rows/s", points("rate"), reading.now),
    ]


def _thinned(reading: PageReading) -> Iterator[Sample]:
    """As many samples as a chart can show, the last one always."""
    every = max(1, len(reading.samples) // CHART_VALUES)
    last = len(reading.samples) - 1
    return (one for place, one in enumerate(reading.samples) if place == last or place % every == 0)
