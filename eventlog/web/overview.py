"""What the overview and the page of an output show. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import asdict

from eventlog.core.model import Reason, Status
from eventlog.sources.log.flow import Flow
from eventlog.web.addresses import address
from eventlog.web.banners import of_output
from eventlog.web.chart import Chart, curve
from eventlog.web.reading import RANGES, ChartRange, OutputView, PageReading
from eventlog.web.verdict import headline
from eventlog.web.words import output_state, publisher_state


def overview_facts(reading: PageReading, span: ChartRange, *, acts: bool) -> dict[str, Any]:
    """Collect what the live part of the overview shows."""
    facts, head = reading.rows, headline(reading)
    samples = reading.history.of(span)
    figures = (("Waiting rows", "rows", "waiting"), ("Lag", "s", "lag"), ("Finished", "rows/s", "rate"))
    curves: list[Chart] = []
    for title, unit, name in figures:
        values = [(sample.at, getattr(sample, name)) for sample in samples]
        points = [(at, float(value)) for at, value in values if value is not None]
        curves.append(curve(title, unit, points, reading.now, span))
    known = {output.noted for output in reading.places}
    return {
        "stream": address("events", range=span.name),
        "reading": reading,
        "latest": reading.latest,
        "head": head,
        "acts": acts,
        "publisher": "not started" if head.steps and not reading.publishes else publisher_state(reading),
        "parts_waiting": list(_parts(reading.flow)),
        "span": span,
        "ranged": {choice.name: address(range=choice.name) for choice in RANGES},
        "curves": curves,
        "facts": facts,
        "unknown": {name: lag for name, lag in reading.lags.items() if name not in known},
        "every": 0 if facts is None else sum(facts.rows.values()) + sum(facts.ignored.values()),
        "reasons": sorted(reading.reasons, key=lambda count: (count.status or "", count.reason or "")),
        "measured": describe_age(reading),
    }


def output_facts(reading: PageReading, output: OutputView, span: ChartRange) -> dict[str, Any]:
    """Collect what the live part of an output's page shows."""
    name, samples = output.noted, reading.history.of(span)
    waiting = reading.waiting_for(output)
    seen = [(sample.at, sample.outputs[name]) for sample in samples if name in sample.outputs]
    return {
        "stream": address("events", output=name, range=span.name),
        "reading": reading,
        "place": output,
        "banners": list(of_output(reading, output)),
        "waiting": waiting,
        "stands": output_state(output, reading.flow),
        "span": span,
        "ranged": {choice.name: address("output", name=name, range=choice.name) for choice in RANGES},
        "curves": [
            curve("Documents", "a second", [(at, measure.rate) for at, measure in seen], reading.now, span),
            curve("Rows behind", "rows", [(at, float(measure.behind)) for at, measure in seen], reading.now, span),
        ],
        "measured": describe_age(reading),
    }


def describe_age(reading: PageReading) -> str:
    """Say how old the figures are: what takes long to measure is measured seldom."""
    if reading.latest is None:
        return "Nothing has been measured yet."
    at = dt.datetime.fromtimestamp(reading.latest.at, dt.UTC)
    return f"Measured at {at:%Y-%m-%d %H:%M:%S} UTC."


REASONS_OF_PARTS: Final[Mapping[str, Reason]] = {
    "held": Reason.HELD,
    "retrying": Reason.RETRY,
}
"""What rows wait for that have a reason by which the list finds them."""


def _parts(flow: Flow | None) -> Iterator[tuple[str, int, str]]:
    """Yield what rows wait for, how many, and where they are: together all that wait; nothing where all wait for
    their turn.
    """
    if flow is None:
        return
    rows_by_part = {name: rows for name, rows in asdict(flow.parts).items() if rows}
    if set(rows_by_part) == {"ready"}:
        return
    for name, rows in rows_by_part.items():
        reason = REASONS_OF_PARTS.get(name)
        # The list finds one reason at a time.
        if name == "suspended" and len(flow.unread_tables) == 1:
            [unread_reason] = flow.unread_tables
            reason = Reason(unread_reason)
        to = address("rows", status=Status.NEW, reason=reason) if reason is not None else ""
        yield name.replace("_", " "), rows, to
