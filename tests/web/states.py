"""Every page in the states that it can be in, and what a person reads there, which is kept in pages.txt.

`python -m tests.web.states` writes pages.txt anew; what has changed in it is read before it is committed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from math import sin
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from eventlog.capture.installed import TriggerCondition, TriggerState
from eventlog.care.flow import Rate
from eventlog.care.listing import Cursor, Filters, Listing
from eventlog.care.rows import LogRow
from eventlog.care.status import Facts, LastError, Publishing
from eventlog.config.settings import Config
from eventlog.core.plugins import PageOrder
from eventlog.core.registry import load_offer, offers
from eventlog.daemon.health import VitalsReading
from eventlog.delivery.output import OutputState
from eventlog.explain.rows import ExplainedRow, Explanation, FormerDocument
from eventlog.explain.states import RowStage
from eventlog.sources.log.flow import WINDOW_SECONDS, Flow, OutputLag, WaitingParts
from eventlog.tracked.options import Style
from eventlog.version import VERSION
from eventlog.web.actions import OutputAct, RowsAct
from eventlog.web.differences import compare_documents
from eventlog.web.drawing import SHOWN_CHARACTERS, Viewer
from eventlog.web.life_line import life_line
from eventlog.web.navigation import page_state
from eventlog.web.pages import (
    NEAR_ROWS,
    ask_output,
    ask_rows,
    draw_document,
    draw_guide,
    draw_login,
    draw_message,
    draw_output,
    draw_overview,
    draw_row,
    draw_rows,
    draw_table,
    draw_tables,
)
from eventlog.web.reading import (
    RANGES,
    History,
    OutputSample,
    OutputView,
    PagePart,
    PageReading,
    ReasonCount,
    Sample,
    UnreadTable,
)

NOW = 1_800_000_000.0
LOOK = Viewer(log="event_log", visitor="ada", acts=True, style="", script="/l.js", proof="p")
READS = replace(LOOK, acts=False)
SAMPLE = Sample(at=NOW, waiting=3, oldest=7, lag=2.5, rate=10.0)
FACTS = Facts(
    log="event_log",
    rows={"N": 3, "S": 5, "W": 0, "E": 0, "F": 0},
    ignored={},
    oldest_waiting=7,
    lag_seconds=2.5,
    rate=Rate(rows=600, seconds=60, per_second=10.0),
    last_error=None,
    triggers={},
)
FLOW = Flow(parts=WaitingParts(ready=3), oldest=7, lag=2.5, ready_lag=2.5, publishing=True, finished=600)
READING = PageReading(
    log="event_log",
    database="sqlite:///app.db",
    now=NOW,
    history=History().with_sample(SAMPLE),
    facts=FACTS,
    counted=NOW - 5,
    flow=FLOW,
    places=(OutputView(name="files out", noted="files /srv/out", format="xds"),),
)
ROW = LogRow(
    record_id=7,
    status="N",
    event_type="2",
    event_time="2025-03-23 10:57:19",
    perpetrator="app",
    table_name="usr",
    table_key="idu=1",
    column_name="fname",
    old_value="Jack",
    new_value="John",
    reason=None,
    note=None,
    attempts=None,
    next_attempt=None,
)


def triggers(states: Mapping[str, str]) -> tuple[TriggerState, ...]:
    return tuple(
        TriggerState(name=name, table="usr", owner="usr", state=TriggerCondition(state), style=Style.FIELD)
        for name, state in states.items()
    )


def explained(row: LogRow, count: int, document: str | None = "<modify/>") -> Explanation:
    rows = tuple(
        ExplainedRow(
            record_id=row.record_id + at,
            event_type=None if at == 1 else 2,
            column=None if at == 1 else "fname",
            old="x" * 200,
            new=None,
            status="S",
            reason="published",
            note="so" if at == 2 else None,
        )
        for at in range(count)
    )
    return Explanation(record_id=row.record_id, status="N", recorded="It waits.", rows=rows, document=document)


def tables_part(states: Mapping[str, str]) -> tuple[PagePart, ...]:
    """The part that eventlog brings itself, by the door that others have."""
    ours = next(offer for offer in offers("page") if offer.is_ours)
    return (
        PagePart(
            title="Tables",
            table=load_offer(ours).part(PageOrder(config=Config(), engine=None, triggers=triggers(states))),
        ),
    )


[PLACE] = READING.places
DEAD = replace(
    PLACE,
    state=OutputState(
        document="0042",
        position=(42,),
        at=NOW - 10_900,
        error="hr.example.net:8443 refused the connection. It is tried again.",
        failed_at=NOW - 12,
        failing_since=NOW - 10_800,
    ),
    rate=0.0,
)
TAKES = OutputState(document="0042", position=(42,), at=NOW - 5)
SLOW = replace(PLACE, rate=2.5, state=TAKES)
QUICK = replace(PLACE, name="hr", noted="hr", rate=9.8, state=TAKES)
LATE = replace(FLOW, oldest=7, lag=10_800.0, ready_lag=10_800.0, finished=0)
"""Nothing was published for three hours."""


def with_an_hour(reading: PageReading) -> PageReading:
    """Give a reading the samples of an hour that ended as its flow says: rows that wait now came one after the other."""
    flow = reading.flow
    assert flow is not None
    history, rate = History(), flow.finished / WINDOW_SECONDS
    for minute in range(61):
        since = 60 * (60 - minute)
        part, pace = minute / 60, 1.0 - 0.1 * sin(since / 240) ** 2
        outputs = {
            output.noted: OutputSample(
                behind=round(part * lag.rows) if (lag := flow.lags.get(output.noted)) else 0,
                rate=pace * (output.rate or 0.0),
            )
            for output in reading.places
        }
        sample = Sample(
            at=NOW - since,
            waiting=round(part * flow.parts.total),
            oldest=flow.oldest,
            lag=flow.lag and (flow.lag - since if flow.lag > since else part * flow.lag),
            rate=pace * rate,
            outputs=outputs,
        )
        history = history.with_sample(sample)
    published = round(3600 * rate) or FACTS.rows["S"]
    return replace(reading, history=history, facts=replace(FACTS, rows={**FACTS.rows, "S": published}))


GONE = Publishing(host="db1", pid=812, since=None, lease_until="2027-01-15 05:00:12.345", expired=True)
ACCIDENTS = {
    "dead output": replace(READING, places=(DEAD,), flow=replace(LATE, failing=True)),
    "held rows": replace(
        READING,
        flow=replace(FLOW, parts=WaitingParts(held=2000), first_held=9, oldest=None, lag=0.0, ready_lag=0.0),
        held="held since 2027-01-14 17:00:00 UTC by ann: their database moves",
    ),
    "no right": replace(
        READING,
        flow=replace(FLOW, parts=WaitingParts(suspended=3), unread_tables={"no right": 1}, lag=10_800.0, ready_lag=0.0),
        unread={"usr": UnreadTable(note="permission denied for table usr", row=7, time="2027-01-15 05:00:00")},
    ),
    "publisher gone": replace(READING, flow=replace(LATE, publishing=False), gone=GONE),
    "slow receiver": replace(
        READING,
        places=(SLOW, QUICK),
        flow=replace(
            FLOW,
            parts=WaitingParts(ready=3, lagging=13_500),
            lag=5400.0,
            lags={PLACE.noted: OutputLag(rows=13_500, first=7, seconds=5400.0)},
        ),
    ),
}
ACCIDENTS = {name: with_an_hour(reading) for name, reading in ACCIDENTS.items()}

EMPTY = replace(READING, history=History(), flow=Flow(), places=(PLACE,), commands="", facts=replace(FACTS, rows={}))
"""A log that was installed just now."""

STATES: Final[Mapping[str, PageReading]] = {
    "empty": EMPTY,
    "flowing": with_an_hour(
        replace(
            READING,
            triggers=triggers({"usr_insert": "CURRENT"}),
            flow=replace(FLOW, parts=WaitingParts(), oldest=None, lag=0.0, ready_lag=0.0),
            places=(QUICK, SLOW),
        )
    ),
    "lagging": ACCIDENTS["slow receiver"],
    "dead": ACCIDENTS["dead output"],
    "held": ACCIDENTS["held rows"],
    "no right": ACCIDENTS["no right"],
    "publisher gone": ACCIDENTS["publisher gone"],
    "slow": with_an_hour(
        replace(READING, places=(SLOW,), flow=replace(LATE, parts=WaitingParts(ready=27_000), finished=150))
    ),
}
"""The eight states in which a log is looked at."""

OUTPUTS = (
    OutputView(name="vault", noted="vault", format="xds"),
    OutputView(name="archive", noted="archive", format="xds"),
    OutputView(name="warehouse", noted="warehouse", format="change-tables"),
)
STAGES = (
    RowStage(output="vault", stage="over"),
    RowStage(output="archive", stage="parked", reason="behind", behind=5),
    RowStage(
        output="warehouse", stage="parked", reason="retry", attempts=6, due=int(NOW * 1000), note="no route to host"
    ),
)
ENDED: Final = "2027-01-15 05:00:02"
ANSWERS = (
    RowStage(output="vault", stage="over", status="S", reason="published"),
    RowStage(output="archive", stage="over", status="W", reason="published", note="cut to 64 characters"),
    RowStage(output="warehouse", stage="over", status="E", reason="refused", note="no such department"),
)
"""What the outputs answered for a row that one of them refused."""

BEFORE, AFTER = (
    f"""<modify class-name="usr" event-id="{number}">
  <association>idu=1,table=usr</association>
  <modify-attr attr-name="fname"><remove-all-values/><add-value><value type="string">{name}</value></add-value></modify-attr>
</modify>"""
    for number, name in ((3, "Jack"), (7, "John"))
)
DIFFERENCE = compare_documents(FormerDocument(record_id=3, document=BEFORE), AFTER)

WIDE: Final = "rows that are wide or empty, of who only reads"
"""On a small screen this table is scrolled sideways."""


def _rows() -> dict[str, str]:
    """Lists of rows, rows, documents, and what is asked before an act."""
    held = replace(ROW, record_id=9, reason="held", note="held since 2027-01-14 17:00:00 UTC by ann: they move.")
    behind = replace(ROW, record_id=12, reason="held", note="row 9 of the same object comes first.")
    refused = replace(ROW, record_id=8, status="E", reason="refused", table_key="idu=4", note="no such department")
    long = replace(ROW, new_value="W" * 400)
    names = ("status", "column_name", "old_value", "new_value", "table_key", "perpetrator")
    empty = replace(ROW, record_id=6, **dict.fromkeys(names))
    denied = replace(ROW, reason="no right", note="permission denied for table usr")
    much = replace(ROW, new_value="y" * (SHOWN_CHARACTERS + 5), reason="vanished", next_attempt="soon", attempts=2)
    nothing = Listing(rows=(), further=None)
    unordered = Listing(rows=(), further=Cursor(block=9), ordered=False)
    some = Listing(rows=(behind, held, refused, ROW), further=Cursor(before=6))
    every = RowsAct(action="hold", filters=Filters(statuses="N", table="usr"))
    return {
        "rows": draw_rows(some, Filters(statuses="NX"), LOOK, first=False),
        WIDE: draw_rows(Listing(rows=(long, empty), further=None), Filters(), READS, first=True),
        "rows of a key in a log without an index": draw_rows(unordered, Filters(key="k"), LOOK, first=True),
        "no rows": draw_rows(nothing, Filters(), LOOK, first=True),
        "no errors": draw_rows(nothing, Filters(statuses="EF"), LOOK, first=True),
        "row that is held": draw_row(held, explained(held, 2), LOOK, life=life_line(held, [], OUTPUTS, None)),
        "row at three outputs": draw_row(
            ROW, explained(ROW, 1, AFTER), LOOK, life=life_line(ROW, STAGES, OUTPUTS, None), difference=DIFFERENCE
        ),
        "row at three outputs, of who only reads": draw_row(
            ROW, explained(ROW, 1, AFTER), READS, life=life_line(ROW, STAGES, OUTPUTS, None)
        ),
        "row that was refused": draw_row(
            refused,
            replace(explained(refused, 1, None), status="E", recorded=f"Recorded at {ENDED}: E refused."),
            replace(LOOK, state=page_state(replace(READING, places=OUTPUTS))),
            life=life_line(refused, ANSWERS, OUTPUTS, f"{ENDED}.5"),
        ),
        "row that is published": draw_row(
            replace(ROW, status="S"),
            explained(ROW, 1),
            LOOK,
            life=life_line(replace(ROW, status="S"), [], OUTPUTS, None),
        ),
        "row that waits for a right": draw_row(denied, explained(denied, 1, None), READS),
        "row with much about it": draw_row(much, explained(much, 3 * NEAR_ROWS, None), LOOK, done="1 row is held now."),
        "document": draw_document(9, explained(held, 2), LOOK),
        "document beside the last one": draw_document(9, explained(held, 2, AFTER), LOOK, DIFFERENCE),
        "rows of a search that goes on": draw_rows(
            Listing(rows=(ROW,), further=Cursor(before=430_000), searches=True), Filters(key="idu=1"), LOOK, first=True
        ),
        "timeline near a row": draw_rows(some, Filters(table="usr", key="idu=1"), READS, first=False, around=7),
        "rows that were counted": draw_rows(some, Filters(statuses="S"), LOOK, first=True, total=1_000_000),
        "question about two rows": ask_rows(RowsAct(action="requeue", numbers=(3, 4)), [3, 4], LOOK),
        "question about thirty rows": ask_rows(RowsAct(action="hold", numbers=(*range(30),)), range(30), LOOK),
        "question about a filter": ask_rows(every, range(1, 2001), LOOK),
    }


def _outputs() -> dict[str, str]:
    """Pages of one output."""
    place = replace(PLACE, rate=2.5, state=OutputState(error="no route", failed_at=NOW - 9, at=NOW))
    samples = replace(SAMPLE, outputs={place.noted: OutputSample(behind=7, rate=2.5)})
    reading = replace(READING, history=History().with_sample(samples))
    paused = replace(place, paused="since 2026-11-22 10:30:00 UTC by ann: their database moves.")
    behind = replace(reading, flow=Flow(lags={place.noted: OutputLag(rows=12, first=3, seconds=90.0)}))
    resumed = replace(reading, flow=Flow(lags={place.noted: OutputLag(rows=0, first=None, seconds=None)}))
    dead = ACCIDENTS["dead output"]
    return {
        "output": draw_output(reading, place, LOOK, RANGES[1], "It is paused now."),
        "output, of who only reads": draw_output(reading, place, READS, RANGES[0]),
        "output that is paused": draw_output(reading, paused, LOOK, RANGES[0]),
        "output that is behind": draw_output(behind, place, LOOK, RANGES[0]),
        "output that was resumed": draw_output(resumed, place, LOOK, RANGES[0]),
        "output that is dead": draw_output(dead, DEAD, LOOK, RANGES[0]),
        "output that is dead, of who only reads": draw_output(dead, DEAD, READS, RANGES[0]),
        "output that is slow": draw_output(ACCIDENTS["slow receiver"], SLOW, LOOK, RANGES[0]),
        "question about an output": ask_output(OutputAct(action="pause", output=PLACE.noted), PLACE.name, LOOK),
    }


def _tables() -> dict[str, str]:
    """All tables, and pages of one."""
    found = triggers({"usr_insert": "CURRENT", "usr_update": "OUTDATED"})
    fails = replace(found[0], fails=True, asked="--events field", owner="grp", note="said")
    unread = ACCIDENTS["no right"].unread["usr"]
    away = replace(READING, counted=None, trouble="the disk is gone.")
    return {
        "tables": draw_tables(replace(READING, triggers=found), LOOK),
        "no tables": draw_tables(READING, LOOK),
        "tables that are being read": draw_tables(replace(READING, counted=None), LOOK),
        "tables that cannot be read": draw_tables(away, LOOK),
        "table whose triggers fail": draw_table((None, "usr"), (fails,), (ROW,), LOOK),
        "table without a right": draw_table((None, "usr"), found, (ROW,), LOOK, unread=unread),
        "table that nobody names": draw_table((None, "usr"), (), (), LOOK),
    }


def _overviews() -> dict[str, str]:
    """The first page, when all is well and in accidents."""
    stood = OutputState(document="0042", position=(42,), at=NOW - 5, error="no route", failed_at=NOW - 90)
    stream = OutputState(document="a", position=(4, 2), error="e" * 999)
    views = (
        replace(PLACE, state=stood),
        OutputView(name="b", noted="b", format="xds", state=stream, on_the_way=3),
        *(OutputView(name=name, noted=name, format="xds") for name in "cd"),
    )
    lags = {"c": OutputLag(rows=1, first=7, seconds=90.0), "d": OutputLag(rows=2000, paused=True)}
    parts = WaitingParts(ready=1, held=2000, not_due=3)
    outputs = replace(FLOW, parts=parts, first_held=9, lags=lags | {"gone": OutputLag(rows=5)})
    error = LastError(record_id=9, status="E", reason="refused", note=None, at="2025-03-23 10:57:19")
    full = replace(
        READING,
        facts=replace(FACTS, ignored={"X": 2}, last_error=error),
        reasons=(ReasonCount(status="E", reason="refused", rows=4), ReasonCount(status="N", reason=None, rows=1)),
        parts=tables_part({"usr_insert": "CURRENT", "usr_update": "OUTDATED"}),
        on_the_way=10,
        loop=VitalsReading(state="publishing", error=None, documents=1, last_document=NOW),
    )
    new = replace(READING, history=History(), flow=Flow(), parts=tables_part({}))
    accidents = {
        name: draw_overview(reading, replace(LOOK, state=page_state(reading))) for name, reading in ACCIDENTS.items()
    }
    begun = replace(EMPTY, triggers=triggers({"usr_insert": "CURRENT"}), flow=Flow(publishing=True))
    return accidents | {
        "overview of a first visit": draw_overview(EMPTY, LOOK),
        "overview of a first visit, two steps further": draw_overview(begun, LOOK),
        "overview": draw_overview(full, replace(LOOK, leaves=True)),
        "overview of a new log, of who only reads": draw_overview(new, READS),
        "overview with outputs that differ": draw_overview(replace(READING, places=views, flow=outputs), LOOK),
    }


PAGES: Final[Mapping[str, str]] = (
    _overviews()
    | _outputs()
    | _rows()
    | _tables()
    | {
        "guide": draw_guide(LOOK),
        "message": draw_message("Oh", "no", LOOK),
        "login": draw_login(LOOK, wrong=False),
        "login, again": draw_login(LOOK, wrong=True),
    }
)

LINES: Final = frozenset(
    ("blockquote", "caption", "dd", "div", "dt", "figure", "footer", "form", "h1", "h2", "h3")
    + ("header", "li", "main", "nav", "p", "pre", "svg", "tr")
)
"""Elements that begin a line."""

REPEATED: Final = re.compile(r"(\w)\1{19,}")
COLOURS: Final = frozenset(("good", "warn", "bad", "calm"))


class Told(HTMLParser):
    """A page as a person reads it: where links go and buttons lead, and in which colour something stands."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.said, self.on_axis = "", False
        self.feed(page.replace(f"eventlog {VERSION}", "eventlog"))
        self.close()
        short = REPEATED.sub(lambda found: f"{found[1]}×{len(found[0])}", self.said)
        lines = [" ".join(line.split()) for line in short.split("\n")]
        self.lines = [line for line in lines if line]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "ol":
            self.on_axis = given.get("class") in ("heights", "moments")
        begin = "\n" if tag in LINES and not (tag == "li" and self.on_axis) else " | " if tag in ("td", "th") else ""
        marks = [f"{colour}:" for colour in given.get("class", "").split() if colour in COLOURS]
        marks += [f"[{given['href']}]"] if tag == "a" else []
        marks += [f"({tag} {given.get('name', '')}={given.get('value', '')})"] if tag in ("input", "button") else []
        marks += [word for word in ("selected", "aria-current") if word in given]
        self.said += begin + " ".join([*marks, ""])

    def handle_data(self, data: str) -> None:
        self.said += data.replace("\n", " ")


KEPT: Final = Path(__file__).with_name("pages.txt")


def kept() -> dict[str, list[str]]:
    """What the pages said when somebody looked last."""
    pages = KEPT.read_text(encoding="utf-8").split("\n== ")[1:]
    return {name: lines for name, *lines in (page.rstrip("\n").split("\n") for page in pages)}


def main() -> None:
    pages = [f"\n== {name}\n" + "\n".join(Told(page).lines) + "\n" for name, page in PAGES.items()]
    KEPT.write_text("".join(pages), encoding="utf-8")


if __name__ == "__main__":
    main()
