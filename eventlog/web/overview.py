"""The first page: does it flow, what is stuck and why. Pure: a reading in, HTML out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from eventlog.admin.status import MEANINGS, Facts
from eventlog.core.errors import shortened
from eventlog.core.model import written
from eventlog.core.rules.meaning import EXPLANATION
from eventlog.web.chart import bar, curve
from eventlog.web.html import Content, Markup, address, counted, element, link, table, value
from eventlog.web.reading import Place, Reading, Sample

LATE = 300.0
LONGEST = 300
"""Characters of an error in the table of outputs."""

"""Seconds of lag from which on somebody should look."""


def overview(reading: Reading) -> Markup:
    """Everything that changes while one looks."""
    parts = (_verdict(reading), _figures(reading), _curves(reading), _outcomes(reading), _outputs(reading))
    return element("div", parts, _triggers(reading), _when(reading), id="live")


def duration(seconds: float | None) -> str:
    """A time as people say it."""
    if seconds is None:
        return "unknown"
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _verdict(reading: Reading) -> Markup:
    """One sentence for whoever is on call."""
    kind, said = _said(reading)
    return element(
        "p",
        element("strong", {"good": "Flowing.", "warn": "Look here.", "bad": "Stuck."}[kind]),
        " ",
        said,
        class_=f"verdict {kind}",
        role="status",
    )


def _said(reading: Reading) -> tuple[str, Content]:
    latest, loop = reading.latest, reading.loop
    if reading.trouble:
        return "bad", f"The log cannot be read: {reading.trouble}"
    if loop is not None and loop.state == "failing":
        return "bad", f"The publisher fails: {loop.error or 'it does not say why.'}"
    if latest is None:
        return "warn", "Nothing has been measured yet."
    if latest.oldest is not None and (latest.lag is None or latest.lag > LATE):
        waits = link(f"row {latest.oldest}", address("rows", latest.oldest))
        return "bad", ["The oldest, ", waits, f", has waited for {duration(latest.lag)}.", _nobody(reading)]
    if reading.publisher is None and latest.waiting:
        return "warn", "Rows wait, and no publisher works on this log."
    failed = 0 if reading.facts is None else sum(reading.facts.rows.get(letter, 0) for letter in "EF")
    if failed:
        return "warn", link(f"Not published: {counted(failed)}.", address("rows", status="EF"))
    stale = 0 if reading.facts is None else len(reading.facts.triggers)
    return ("warn", f"Not current: {counted(stale, 'trigger')}.") if stale else ("good", "Nothing is stuck.")


def _nobody(reading: Reading) -> str:
    return "" if reading.publisher else " No publisher works on this log."


def _figures(reading: Reading) -> Markup:
    latest = reading.latest
    shown: list[tuple[str, Content]] = [("Waiting", "…"), ("Lag", "…"), ("Settled", "…")]
    if latest is not None:
        oldest = None if latest.oldest is None else link(f"row {latest.oldest}", address("rows", latest.oldest))
        shown = [
            ("Waiting", link(counted(latest.waiting), address("rows", status="N"))),
            ("Lag", [duration(latest.lag), " · " if oldest else None, oldest]),
            ("Settled", f"{latest.rate:,.1f} rows/s"),
        ]
    shown += [("Publisher", _publisher(reading)), ("Batch in hand", reading.in_hand or "none")]
    return element(
        "dl", [element("div", element("dt", name), element("dd", said)) for name, said in shown], class_="figures"
    )


def _publisher(reading: Reading) -> str:
    if reading.loop is not None:
        return reading.loop.state
    return "works elsewhere" if reading.publisher else "none works on this log"


def _curves(reading: Reading) -> Markup:
    def points(of: str) -> list[tuple[float, float]]:
        return [(one.at, float(found)) for one in _thinned(reading) if (found := getattr(one, of)) is not None]

    charts = (
        curve("Waiting rows", "rows", points("waiting"), reading.now),
        curve("Lag", "s", points("lag"), reading.now),
        curve("Settled", "rows/s", points("rate"), reading.now),
    )
    return element("section", element("h2", "The last hour"), element("div", charts, class_="charts"))


def _thinned(reading: Reading) -> Iterator[Sample]:
    """As many samples as a chart can show, the last one always: a page stays small."""
    every = max(1, len(reading.samples) // 240)
    last = len(reading.samples) - 1
    return (one for place, one in enumerate(reading.samples) if place == last or place % every == 0)


def _outcomes(reading: Reading) -> Markup:
    title = element("h2", "Rows by status and reason")
    if reading.facts is None:
        return element("section", title, element("p", "They are being counted.", class_="quiet"))
    tables = (_by_status(reading.facts), _by_reason(reading))
    return element("section", title, element("div", tables, class_="pair"), _last_error(reading.facts))


def _by_status(facts: Facts) -> Markup:
    every = sum(facts.rows.values()) + sum(facts.ignored.values())
    rows = [
        (link(letter, address("rows", status=letter)), f"{count:,}", bar(count / every if every else 0), meaning)
        for letter, count, meaning in facts.lines()
        if letter in MEANINGS
    ]
    rows += [
        (value(letter), f"{count:,}", bar(count / every), "ignored: only N is picked up")
        for letter, count in facts.ignored.items()
    ]
    return table("By status", ("status", "rows", "part", "meaning"), rows, class_="counts")


def _by_reason(reading: Reading) -> Markup:
    meanings = {reason.value: said for reason, said in EXPLANATION.items()}
    rows = [
        (
            link(one.reason or "none", address("rows", status=one.status, reason=one.reason)),
            one.status,
            f"{one.rows:,}",
            meanings.get(one.reason or "", ""),
        )
        for one in sorted(reading.reasons, key=lambda one: (one.status or "", one.reason or ""))
    ]
    return table("By recorded reason", ("reason", "status", "rows", "meaning"), rows)


def _last_error(facts: Facts) -> Markup | None:
    error = facts.last_error
    if error is None:
        return None
    said = [link(f"row {error.record_id}", address("rows", error.record_id)), ": ", value(error.note or error.reason)]
    return element("p", "The last error: ", said, f" ({error.at})" if error.at else None)


def _outputs(reading: Reading) -> Markup:
    rows = [
        (value(place.name), place.format, _far(place), _last(place, reading.now), _trouble(place, reading.now))
        for place in reading.places
    ]
    return element(
        "section",
        element("h2", "Outputs"),
        table("Where documents go", ("output", "format", "position", "last document", "last error"), rows),
    )


def _far(place: Place) -> Content:
    """Up to where it has everything, and what is on its way to it."""
    position = place.standing.position
    said: Content = "nothing yet"
    if position is not None:
        number = written(position)
        said = ["row ", link(number, address("rows", position[0]))] if len(position) == 1 else number
    return [said, f", {counted(place.on_the_way, 'document')} on the way" if place.on_the_way else None]


def _last(place: Place, now: float) -> Content:
    standing = place.standing
    return [value(standing.document), " ", _ago(standing.at, now)] if standing.document else "none"


def _trouble(place: Place, now: float) -> Content:
    standing = place.standing
    if standing.error is None:
        return "none"
    return [value(shortened(standing.error, LONGEST)), " ", _ago(standing.failed_at, now)]


def _ago(at: float | None, now: float) -> Markup | None:
    return None if at is None else element("span", f"{duration(max(0.0, now - at))} ago", class_="quiet")


def _triggers(reading: Reading) -> Markup | None:
    if reading.facts is None:
        return None
    rows = [
        (value(name), element("span", state, class_="good" if state == "CURRENT" else "warn"))
        for name, state in sorted(reading.states.items())
    ]
    content = (
        table("Triggers of tracked tables", ("trigger", "state"), rows)
        if rows
        else element("p", "No table is tracked.", class_="quiet")
    )
    return element("section", element("h2", "Triggers"), content)


def _when(reading: Reading) -> Markup:
    counted = "not yet" if reading.counted is None else f"{duration(reading.now - reading.counted)} ago"
    now = dt.datetime.fromtimestamp(reading.now, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return element(
        "p",
        f"{now}. Rows by status, reasons and triggers were counted {counted}. ",
        value(reading.database),
        class_="quiet",
    )
