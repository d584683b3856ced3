"""Pages as functions: what a reading, a list or a row says in words, for every state that it can be in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.admin.listing import Cursor, Filters, Listing
from eventlog.admin.rows import LogRow
from eventlog.admin.status import Facts, LastError
from eventlog.capture.installed import TriggerCondition, TriggerState
from eventlog.capture.plan import Style
from eventlog.config.settings import Config
from eventlog.core.plugins import PageOrder
from eventlog.core.plural import duration
from eventlog.core.registry import loaded, offers
from eventlog.daemon.vitals import State, VitalsReading
from eventlog.delivery.output import OutputState
from eventlog.explain.rows import ExplainedRow, Explanation
from eventlog.sources.log.backlog import Rate
from eventlog.sources.log.flow import Flow, OutputLag, WaitingParts
from eventlog.web.acts import OutputAct, RowsAct, possible, said_of
from eventlog.web.collector import parts_of
from eventlog.web.pages import (
    NEAR_ROWS,
    SHOWN_CHARACTERS,
    Viewer,
    kind_name,
    live,
    live_output,
    live_table,
    login_page,
    message_page,
    output_page,
    output_question,
    overview_page,
    row_page,
    rows_page,
    rows_question,
    table_page,
    tables_page,
)
from eventlog.web.reading import RANGES, History, OutputSample, OutputView, PagePart, PageReading, ReasonCount, Sample
from tests.support.plugins import Site, site
from tests.web.visiting import bare

__all__ = ["site"]

NOW = 1_800_000_000.0
LOOK = Viewer(log="event_log", visitor="ada", acts=True, style="/s.css", script="/l.js", proof="p")
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
FLOW = Flow(parts=WaitingParts(ready=3), oldest=7, lag=2.5, ready_lag=2.5, publishing=True, settled=600)
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
    document=None,
)


def triggers(states: Mapping[str, str]) -> tuple[TriggerState, ...]:
    return tuple(
        TriggerState(name=name, table="usr", owner="usr", state=TriggerCondition(state), style=Style.FIELD)
        for name, state in states.items()
    )


def loop(state: State, error: str | None = None) -> VitalsReading:
    return VitalsReading(state=state, error=error, documents=1, last_document=NOW)


EMPTY = Flow(publishing=True)
HELD = replace(EMPTY, parts=WaitingParts(held=2), first_held=9)
TRIED = replace(EMPTY, parts=WaitingParts(retrying=1), oldest=4, lag=20.0)
NOBODY = replace(EMPTY, publishing=False)
TRACKED = triggers({"t": "CURRENT"})


@pytest.mark.parametrize(
    "changes, kind, said",
    [
        ({}, "good", "Nothing is stuck."),
        ({"history": History(), "flow": None}, "warn", "Nothing has been measured yet."),
        ({"trouble": "the disk is gone."}, "bad", "The log cannot be read: the disk is gone."),
        ({"trouble": "it is gone.", "now": NOW + 60}, "bad", "it is gone. The figures below are 60 s old."),
        ({"loop": loop("failing", "no route")}, "bad", "The publisher fails: no route"),
        ({"loop": loop("failing")}, "bad", "it does not say why"),
        ({"flow": replace(FLOW, lag=900.0, ready_lag=900.0)}, "bad", "has waited for 15 min."),
        ({"flow": replace(FLOW, lag=None, ready_lag=None, publishing=False)}, "bad", "No publisher works on this log."),
        ({"flow": replace(FLOW, publishing=False)}, "calm", "Rows wait. No publisher works on this log."),
        ({"facts": replace(FACTS, rows={"E": 1, "F": 1})}, "warn", "Not published: 2 rows."),
        ({"facts": replace(FACTS, triggers={"t": "MISSING"})}, "warn", "Not current: 1 trigger."),
        ({"facts": replace(FACTS, failing={"t": "usr", "u": "usr"})}, "bad", "Every write to usr fails"),
        ({"facts": None, "counted": None}, "good", "Nothing is stuck."),
        ({"flow": EMPTY, "triggers": TRACKED}, "good", "<strong>Flowing.</strong> Nothing is stuck."),
        ({"flow": EMPTY}, "warn", "<strong>Not tracked.</strong> No trigger of eventlog writes this log"),
        ({"flow": replace(EMPTY, settled=5)}, "good", "<strong>Flowing.</strong>"),
        ({"flow": NOBODY, "triggers": TRACKED}, "warn", "<strong>No publisher.</strong>"),
        ({"flow": HELD}, "warn", "2 rows are held or behind held ones; row 9 is the first."),
        ({"flow": TRIED}, "warn", "1 row is offered again"),
        ({"flow": replace(TRIED, lag=900.0)}, "warn", 'The oldest, <a href="/rows/4">row 4</a>, has'),
        ({"flow": replace(EMPTY, parts=WaitingParts(suspended=3))}, "warn", "may read their table"),
        (
            {"flow": replace(EMPTY, parts=WaitingParts(not_due=1)), "triggers": TRACKED},
            "calm",
            "until their time comes",
        ),
    ],
)
def test_one_sentence_says_whether_it_flows(changes: dict[str, Any], kind: str, said: str) -> None:
    drawn = " ".join(live(replace(READING, **changes)).split())
    assert f'class="verdict {kind}"' in drawn
    assert said in drawn


def test_the_page_says_what_rows_wait_for() -> None:
    parts = WaitingParts(ready=1, held=2000, not_due=3)
    assert (
        '2,004 rows</a>: 1&nbsp;<span class="calm">ready</span>'
        ' · <a href="/rows?status=N&amp;reason=held">2,000&nbsp;<span class="warn">held</span></a>'
        ' · 3&nbsp;<span class="calm">not due</span></dd>'
    ) in live(replace(READING, flow=replace(FLOW, parts=parts)))
    nobody = live(replace(READING, history=History(), flow=replace(EMPTY, publishing=False)))
    assert '<dd><span class="warn">no publisher</span></dd>' in nobody
    assert "Flowing" not in nobody


def test_letters_reasons_outputs_and_triggers_are_told() -> None:
    error = LastError(record_id=9, status="E", reason="refused", note=None, at="2025-03-23 10:57:19")
    drawn = live(
        replace(
            READING,
            facts=replace(FACTS, ignored={"X": 2}, last_error=error),
            reasons=(ReasonCount(status="E", reason="refused", rows=4), ReasonCount(status="N", reason=None, rows=1)),
            parts=tables_part({"usr_insert": "CURRENT", "usr_update": "OUTDATED"}),
            on_the_way=10,
            loop=loop("publishing"),
        )
    )
    for said in ("ignored: only N", "the format or the receiver did not take it", "OUTDATED", "<dd>10 rows</dd>"):
        assert said in drawn
    assert '<a href="/rows/9">row 9</a>' in drawn
    assert "The last error" in drawn
    assert "publishing" in drawn
    assert "No table is tracked." in live(replace(READING, parts=tables_part({})))


def tables_part(states: Mapping[str, str]) -> tuple[PagePart, ...]:
    """The part that eventlog brings itself, by the door that others have."""
    ours = next(offer for offer in offers("page") if offer.is_ours)
    return (
        PagePart(
            title="Tables", table=loaded(ours).part(PageOrder(config=Config(), engine=None, triggers=triggers(states)))
        ),
    )


STRANGERS = """
from eventlog.plugins import PageCell, PagePlugin, PageTable

def part(order):
    cells = (PageCell(text="<b>", to="javascript:alert(1)"), PageCell(text="ok", to="https://a.example/?<", look="good"))
    return PageTable(caption="Queues", columns=("queue", "state"), rows=(cells,))

def failing(order):
    raise ValueError("no route")

PART = PagePlugin(title="Queues", part=part)
FAILING = PagePlugin(title="Broken", part=failing)
NOTHING = PagePlugin(title="Idle", part=lambda order: PageTable(caption="", columns=(), rows=(), empty="No jobs."))
"""


def test_a_part_of_another_package_is_drawn_as_text_and_its_fault_stays_in_its_place(site: Site) -> None:
    points = {name: f"eventlog_queues:{name.upper()}" for name in ("part", "failing", "nothing")}
    site.install("eventlog-queues", {"page": points | {"odd": "eventlog_queues:STRANGE"}}, STRANGERS)
    parts = tuple(parts_of(PageOrder(config=Config(), engine=None, triggers=())))
    assert [part.title for part in parts] == ["Tables", "Broken", "Idle", "odd", "Queues"]
    drawn = live(replace(READING, parts=parts))
    assert '<th scope="row"><bdi>&lt;b&gt;</bdi></th>' in drawn, "what runs in a browser is no link"
    assert '<span class="good"><a href="https://a.example/?&lt;"><bdi>ok</bdi></a></span>' in drawn
    assert "failing of the package eventlog-queues 1.0 failed: ValueError: no route" in drawn
    assert "odd of the package eventlog-queues 1.0 cannot be loaded" in drawn
    assert "No jobs." in drawn


STOOD = OutputState(document="0042", position=(42,), at=NOW - 5, error="no route", failed_at=NOW - 90)
STREAM = OutputState(document="a", position=(4, 2), error="e" * 999)
[PLACE] = READING.places


@pytest.mark.parametrize(
    "place, lag, said",
    [
        (PLACE, None, ["<td>nothing yet</td><td>none</td><td>none</td>"]),
        (
            PLACE,
            OutputLag(rows=1, first=7, seconds=90.0),
            ['<span class="warn">lagging</span>, 1 row behind, 90 s</td>'],
        ),
        (PLACE, OutputLag(rows=2000, paused=True), ['<span class="warn">paused</span>, 2,000 rows behind</td>']),
        (
            replace(PLACE, standing=STOOD),
            None,
            [
                '<a href="/rows/42">row 42</a></td>',
                '<bdi>0042</bdi> <span class="quiet word">5.0 s ago</span>',
                '<bdi>no route</bdi> <span class="quiet word">90 s ago</span>',
            ],
        ),
        (
            replace(PLACE, standing=STREAM, on_the_way=3),
            None,
            ["<td>4.2, 3 rows on the way</td><td><bdi>a</bdi> </td>", f"<bdi>{'e' * 160}…</bdi>"],
        ),
    ],
)
def test_an_output_says_how_far_it_is_and_what_it_did_not_take(
    place: OutputView, lag: OutputLag | None, said: list[str]
) -> None:
    flow = FLOW if lag is None else Flow(lags={PLACE.noted: lag})
    drawn = bare(live(replace(READING, places=(place,), flow=flow)))
    assert [one for one in said if one not in drawn] == []


def test_an_hour_of_samples_makes_a_small_page() -> None:
    many = tuple(replace(SAMPLE, at=NOW - 3600 + 5 * step) for step in range(721))
    history = History(levels=(many, (), ()))
    assert len(live(replace(READING, history=history)).encode()) < 60_000


@pytest.mark.parametrize(
    "seconds, said",
    [(None, "unknown"), (0.04, "0.0 s"), (90, "90 s"), (600, "10 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_times_are_said_as_people_do(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


EMPTY_ROW = replace(
    ROW,
    record_id=6,
    **dict.fromkeys(("status", "column_name", "old_value", "new_value", "table_key", "perpetrator")),
)


@pytest.mark.parametrize(
    "listing, filters, said",
    [
        (
            Listing(rows=(ROW, EMPTY_ROW), further=Cursor(before=6)),
            Filters(letters="NX"),
            [
                "2 rows, the newest first",
                'href="/rows?status=NX&amp;before=6"',
                '<option value="NX" selected>NX</option>',
            ],
        ),
        (
            Listing(rows=(replace(ROW, new_value="W" * 400),), further=None),
            Filters(),
            [f"<bdi>{'W' * 100}…</bdi>", 'type="checkbox"', '<a href="/rows" aria-current="page">Rows</a>'],
        ),
        (
            Listing(rows=(), further=Cursor(place=9), ordered=False),
            Filters(key="k"),
            [
                "No such row in this part of the log.",
                "Look further back",
                "place=9",
                "has no index of its numbers",
                "The timeline of",
            ],
        ),
        (Listing(rows=(), further=None), Filters(), ["No such rows.", "<h1>Rows</h1>"]),
        (Listing(rows=(), further=None), Filters(letters="EF"), ["<h1>Errors</h1>"]),
        (Listing(rows=(), further=None), Filters(letters="E"), ["<h1>Rows</h1>"]),
    ],
)
def test_a_list_says_what_it_is_of_and_where_it_goes_on(listing: Listing, filters: Filters, said: list[str]) -> None:
    drawn = rows_page(listing, filters, LOOK, first=True)
    assert [one for one in said if one not in drawn] == []
    assert "checkbox" not in rows_page(listing, filters, READS, first=True)
    assert ">Newest</a>" in rows_page(listing, filters, LOOK, first=False)
    assert ("aria-current" in drawn) == (filters == Filters() or filters.letters == "EF")


@pytest.mark.parametrize(
    "changes, acts",
    [
        ({}, ["hold"]),
        ({"reason": "held"}, ["release"]),
        ({"reason": "held", "note": "held since 2026-01-01 00:00:00 UTC by ann."}, ["release"]),
        ({"reason": "held", "note": "row 3 of the same object comes first."}, ["hold", "release"]),
        ({"status": "E"}, ["requeue"]),
        ({"status": "X"}, []),
    ],
)
def test_what_can_be_done_depends_on_the_row(changes: dict[str, Any], acts: list[str]) -> None:
    row = replace(ROW, **changes)
    assert possible(row) == acts
    drawn = row_page(row, explained(row, 1), LOOK)
    assert [act for act in ("hold", "release", "requeue") if f'value="{act}"' in drawn] == acts
    assert "<button" not in row_page(row, explained(row, 1), READS)


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


def test_a_row_with_much_about_it_stays_a_page() -> None:
    row = replace(
        ROW, new_value="y" * (SHOWN_CHARACTERS + 5), reason="vanished", next_attempt="soon", attempts=2, table_key=None
    )
    drawn = row_page(row, explained(row, 3 * NEAR_ROWS, None), LOOK, "1 row is held now.")
    assert "and 5 characters more" in drawn
    assert "further away left out." in drawn
    assert "It makes no document." in drawn
    assert "the next at soon" in drawn
    assert "1 row is held now." in drawn
    assert drawn.count("<tr>") == NEAR_ROWS + 2


def test_an_act_is_asked_for_and_said() -> None:
    drawn = rows_question(RowsAct(action="requeue", numbers=(3, 4)), [3, 4], LOOK)
    assert "Requeue 2 rows" in drawn
    assert 'name="proof" value="p"' in drawn
    assert 'name="why"' not in drawn
    every = rows_question(RowsAct(action="hold", filters=Filters(letters="N", table="usr")), range(1, 2001), LOOK)
    assert "Hold 2,000 rows?" in every
    assert "all rows with status N, table usr" in every
    assert 'name="last" value="2000"' in every
    assert 'name="why"' in every
    assert "And 10 more." in rows_question(RowsAct(action="hold", numbers=tuple(range(30))), range(30), LOOK)
    assert [said_of(act, 2) for act in ("hold", "release", "requeue")] == [
        "2 rows are held now.",
        "2 rows are released now.",
        "2 rows are waiting again now.",
    ]
    assert said_of("release", 0) == "Nothing was done: none of these rows was held."


def test_an_output_has_a_page_with_its_curves_and_its_act() -> None:
    place = replace(READING.places[0], rate=2.5, standing=OutputState(error="no route", failed_at=NOW - 9, at=NOW))
    samples = replace(SAMPLE, outputs={place.noted: OutputSample(behind=7, rate=2.5)})
    reading = replace(READING, history=History().with_sample(samples))
    drawn = output_page(reading, place, LOOK, RANGES[1], "It is paused now.")
    assert "Up to date." in drawn
    assert "Documents, the last 24 hours: now 2.5 a second" in drawn
    assert "Rows behind, the last 24 hours: now 7 rows" in drawn
    assert 'aria-current="true">24h</a>' in drawn
    assert "It is paused now." in drawn
    assert "it has taken documents since" in drawn
    assert '<button name="action" value="pause"' in drawn
    assert "<button" not in output_page(reading, place, READS, RANGES[0])
    paused = replace(place, paused="since 2026-11-22 10:30:00 UTC by ann: their database moves.")
    asleep = output_page(reading, paused, LOOK, RANGES[0])
    assert (
        "</strong> <bdi>since 2026-11-22 10:30:00 UTC by ann: their database moves</bdi>. Nothing goes to it." in asleep
    )
    assert '<button name="action" value="resume"' in asleep
    behind = replace(reading, flow=Flow(lags={place.noted: OutputLag(rows=12, first=3, seconds=90.0)}))
    assert "It is 12 rows behind; other outputs continue. It takes 2.5 documents a second." in output_page(
        behind, place, LOOK, RANGES[0]
    )
    assert '12 · from <a href="/rows/3">row 3</a>' in live_output(behind, place, RANGES[0])
    resumed = replace(reading, flow=Flow(lags={place.noted: OutputLag(rows=0, first=None, seconds=None)}))
    assert "Resuming." in output_page(resumed, place, LOOK, RANGES[0])
    asked = output_question(OutputAct(action="pause", output=place.noted), place.name, LOOK)
    assert "Pause the output files out?" in asked
    assert 'name="why"' in asked


def test_an_output_that_is_not_configured_is_named_where_rows_are_kept_for_it() -> None:
    drawn = live(replace(READING, flow=Flow(lags={"gone": OutputLag(rows=5)})))
    assert "<bdi>gone</bdi>" in drawn
    assert "5 rows kept for it" in drawn


def test_tables_and_a_table_are_drawn() -> None:
    found = triggers({"usr_insert": "CURRENT", "usr_update": "OUTDATED"})
    drawn = bare(tables_page(replace(READING, triggers=found), LOOK))
    assert '<a href="/table?name=usr"><bdi>usr</bdi></a></th><td><bdi>field</bdi></td><td><bdi>2</bdi></td>' in drawn
    assert "No table is tracked." in tables_page(READING, LOOK)
    assert "are being read" in tables_page(replace(READING, counted=None), LOOK)
    broken = tables_page(replace(READING, counted=None, trouble="the disk is gone."), LOOK)
    assert "The triggers cannot be read: the disk is gone." in broken
    fails = replace(found[0], fails=True, asked="--events field", owner="grp", note="said")
    page = table_page("usr", (fails,), (ROW,), LOOK)
    for said in ("every write to the table fails", "--events field", 'href="/table?name=grp"', 'href="/rows/7"'):
        assert said in page
    assert "has no row that names it" in table_page("usr", (), (), LOOK)
    assert "/events?table=usr" in live_table("usr", None)


@pytest.mark.parametrize("number, said", [("8", "8 update field back"), ("9", "9 unknown"), (None, "None unknown")])
def test_event_types_have_names(number: str | None, said: str) -> None:
    assert kind_name(number) == said


def test_the_frame_says_where_one_is_and_who_one_is() -> None:
    drawn = overview_page(READING, replace(LOOK, leaves=True))
    assert '<a href="/" aria-current="page">Overview</a>' in drawn
    assert "<noscript><meta http-equiv=" in drawn
    assert "Log out" in drawn
    assert "read-only" in overview_page(READING, READS)
    assert "noscript" not in message_page("Oh", "no", LOOK)
    assert "That was not the token." in login_page(LOOK, wrong=True)
    assert "That was not the token." not in login_page(LOOK, wrong=False)
