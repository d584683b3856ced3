"""The first page: does it flow, what is stuck and why. Pure: a reading in, what its template shows out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.plural import counted, duration
from eventlog.sources.log.flow import Flow, FlowState, said_of_parts, said_of_state
from eventlog.web.chart import Chart, curve
from eventlog.web.reading import RANGES, ChartRange, OutputView, PageReading, tables_of
from eventlog.web.words import address

WORDS: Final[Mapping[FlowState, tuple[str, str]]] = {
    "flowing": ("good", "Flowing."),
    "waiting": ("warn", "Waiting."),
    "held": ("warn", "Held."),
    "retrying": ("warn", "Retrying."),
    "lagging": ("warn", "Lagging."),
    "suspended": ("warn", "Suspended."),
    "stuck": ("bad", "Stuck."),
    "unpublished": ("warn", "Not published."),
    "untracked": ("warn", "Not tracked."),
}
"""How each state looks, and its word."""

LOOK_HERE: Final = "Look here."


class Verdict(Struct, frozen=True, kw_only=True):
    """One sentence for whoever is on call; a part of it may be a link."""

    kind: str
    word: str = LOOK_HERE
    before: str = ""
    link: str = ""
    to: str = ""
    after: str = ""


def facts_of(reading: PageReading, span: ChartRange) -> Mapping[str, Any]:
    """What the template of the live part shows."""
    facts = reading.facts
    lags = {} if reading.flow is None else reading.flow.lags
    known = {one.noted for one in reading.places}
    return {
        "stream": address("events", range=span.name),
        "reading": reading,
        "latest": reading.latest,
        "verdict": verdict(reading),
        "publisher": _publisher(reading),
        "parts_waiting": _parts(reading.flow),
        "span": span,
        "ranged": {one.name: address(range=one.name) for one in RANGES},
        "curves": _curves(reading, span),
        "facts": facts,
        "lags": lags,
        "unknown": {name: lag for name, lag in lags.items() if name not in known},
        "tables": tables_of(reading.triggers),
        "every": 0 if facts is None else sum(facts.rows.values()) + sum(facts.ignored.values()),
        "reasons": sorted(reading.reasons, key=lambda one: (one.status or "", one.reason or "")),
        "measured": measured(reading),
    }


def output_facts(reading: PageReading, place: OutputView, span: ChartRange) -> Mapping[str, Any]:
    """What the template of an output's page shows."""
    name, samples = place.noted, reading.history.of(span)
    seen = [(one.at, one.outputs[name]) for one in samples if name in one.outputs]
    return {
        "stream": address("events", output=name, range=span.name),
        "reading": reading,
        "place": place,
        "lag": None if reading.flow is None else reading.flow.lags.get(name),
        "span": span,
        "ranged": {one.name: address("output", name=name, range=one.name) for one in RANGES},
        "curves": [
            curve("Documents", "a second", [(at, one.rate) for at, one in seen], reading.now, span),
            curve("Rows behind", "rows", [(at, float(one.behind)) for at, one in seen], reading.now, span),
        ],
        "measured": measured(reading),
    }


def measured(reading: PageReading) -> str:
    """How old the figures are: what takes long to measure is measured seldom."""
    if reading.latest is None:
        return "Nothing has been measured yet."
    at = dt.datetime.fromtimestamp(reading.latest.at, dt.UTC)
    return f"Measured at {at:%Y-%m-%d %H:%M:%S} UTC."


def verdict(reading: PageReading) -> Verdict:
    """Whether it flows; the first that is wrong is said."""
    loop, facts, flow = reading.loop, reading.facts, reading.flow
    if reading.trouble:
        age = (
            "" if reading.latest is None else f" The figures below are {duration(reading.now - reading.latest.at)} old."
        )
        return Verdict(kind="bad", word="Not read.", before=f"The log cannot be read: {reading.trouble}{age}")
    if facts is not None and facts.failing:
        tables = ", ".join(dict.fromkeys(facts.failing.values()))
        said = (
            f"Every write to {tables} fails: a trigger names a column that is gone. `eventlog check` says what to do."
        )
        return Verdict(kind="bad", word="Failing.", before=said)
    if loop is not None and loop.state == "failing":
        return Verdict(
            kind="bad", word="Failing.", before=f"The publisher fails: {loop.error or 'it does not say why.'}"
        )
    if flow is None:
        return Verdict(kind="warn", before="Nothing has been measured yet.")
    flow = flow if facts is None else replace(flow, tracked=bool(reading.triggers))
    if flow.state != "flowing":
        return _of_flow(flow)
    failed = 0 if facts is None else sum(facts.rows.get(letter, 0) for letter in "EF")
    if failed:
        return Verdict(kind="warn", link=f"Not published: {counted(failed)}.", to=address("rows", status="EF"))
    stale = 0 if facts is None else len(facts.triggers)
    if stale:
        return Verdict(kind="warn", before=f"Not current: {counted(stale, 'trigger')}.")
    return _of_flow(flow)


def _of_flow(flow: Flow) -> Verdict:
    """The state in its word and in sentences; what has waited for long, and nobody holds, is named."""
    kind, word = WORDS[flow.state]
    if not flow.is_late:
        before = " ".join([said_of_state(flow), *said_of_parts(flow)])
        return Verdict(kind=kind, word=word, before=before)
    said = () if flow.state == "stuck" else (said_of_state(flow),)
    nobody = () if flow.publishing or said else ("No publisher works on this log.",)
    after = " ".join([f", has waited for {duration(flow.lag)}.", *nobody, *said_of_parts(flow)])
    row, to = f"row {flow.oldest}", address("rows", flow.oldest or 0)
    return Verdict(kind="bad", word=word, before=" ".join([*said, "The oldest, "]), link=row, to=to, after=after)


def _parts(flow: Flow | None) -> list[str]:
    """What rows wait for, but for their turn."""
    if flow is None:
        return []
    return [f"{number:,} {name.replace('_', ' ')}" for name, number in flow.parts.by_name().items() if number][
        flow.parts.ready > 0 :
    ]


def _publisher(reading: PageReading) -> str:
    if reading.loop is not None:
        return reading.loop.state
    return "works elsewhere" if reading.flow is not None and reading.flow.publishing else "none works on this log"


def _curves(reading: PageReading, span: ChartRange) -> list[Chart]:
    samples = reading.history.of(span)

    def points(of: str) -> list[tuple[float, float]]:
        return [(one.at, float(found)) for one in samples if (found := getattr(one, of)) is not None]

    return [
        curve("Waiting rows", "rows", points("waiting"), reading.now, span),
        curve("Lag", "s", points("lag"), reading.now, span),
        curve("Settled", "rows/s", points("rate"), reading.now, span),
    ]
