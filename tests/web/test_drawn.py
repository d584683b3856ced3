"""Pages as functions: pages.txt has what each says in every state that it can be in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.config.settings import Config
from eventlog.core.plugins import PageOrder
from eventlog.core.plural import duration
from eventlog.daemon.health import State, VitalsReading
from eventlog.sources.log.flow import Flow, WaitingParts
from eventlog.web.actions import describe_result, possible
from eventlog.web.collector import parts_of
from eventlog.web.drawing import kind_name
from eventlog.web.pages import (
    draw_live_output,
    draw_live_overview,
    draw_live_table,
    draw_output,
    draw_overview,
    draw_row,
)
from eventlog.web.reading import RANGES, History
from tests.support.plugins import Site, site
from tests.web.states import FACTS, FLOW, LOOK, NOW, PAGES, READING, READS, ROW, SAMPLE, Told, explained, kept, triggers
from tests.web.visiting import buttons

__all__ = ["site"]
ANEW = (
    "look at what the page says now: python -m tests.web.states writes pages.txt, and git diff shows what has changed"
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_pages_txt_has(name: str) -> None:
    assert Told(PAGES[name]).lines == kept().get(name), ANEW


def test_pages_txt_has_no_other_page() -> None:
    assert [*kept()] == [*PAGES], ANEW


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
        ({"loop": loop("failing", "no route")}, "bad", "<bdi>no route</bdi>"),
        ({"loop": loop("failing")}, "bad", "<bdi>the publisher</bdi>"),
        ({"flow": replace(FLOW, lag=900.0, ready_lag=900.0)}, "warn", "(15 min)"),
        ({"flow": replace(FLOW, lag=None, ready_lag=None, publishing=False)}, "bad", "<strong>No publisher:</strong>"),
        ({"flow": replace(FLOW, publishing=False)}, "warn", "<strong>No publisher:</strong>"),
        ({"facts": replace(FACTS, rows={"E": 1, "F": 1})}, "warn", "Not published: 2 rows."),
        ({"facts": replace(FACTS, triggers={"t": "MISSING"})}, "warn", "Not current: 1 trigger."),
        ({"facts": replace(FACTS, failing={"t": "usr", "u": "usr"})}, "bad", "Every write to usr fails"),
        ({"facts": None, "counted": None}, "good", "Nothing is stuck."),
        ({"flow": EMPTY, "triggers": TRACKED}, "good", "<strong>Flowing.</strong> Nothing is stuck."),
        ({"flow": EMPTY}, "warn", "<strong>Not tracked.</strong> No trigger of eventlog writes this log"),
        ({"flow": replace(EMPTY, finished=5)}, "good", "<strong>Flowing.</strong>"),
        ({"flow": NOBODY, "triggers": TRACKED}, "warn", "<strong>No publisher:</strong>"),
        ({"flow": HELD}, "warn", '2 rows</bdi></a>. <a href="/rows/9">Row 9</a> is the first.'),
        ({"flow": TRIED}, "warn", "1 row is offered again"),
        ({"flow": replace(TRIED, lag=900.0)}, "warn", 'The oldest, <a href="/rows/4">row 4</a>, has'),
        ({"flow": replace(EMPTY, parts=WaitingParts(suspended=3))}, "warn", "can read their table"),
        (
            {"flow": replace(EMPTY, parts=WaitingParts(not_due=1)), "triggers": TRACKED},
            "calm",
            "until their time comes",
        ),
    ],
)
def test_one_sentence_says_whether_it_flows(changes: dict[str, Any], kind: str, said: str) -> None:
    drawn = " ".join(draw_live_overview(replace(READING, **changes)).split())
    assert re.search(f'class="(verdict|banner) {kind}" role="status"', drawn)
    assert drawn.count('role="status"') == 1
    assert said in drawn


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
    drawn = draw_live_overview(replace(READING, parts=parts))
    assert '<th scope="row"><bdi>&lt;b&gt;</bdi></th>' in drawn, "what runs in a browser is no link"
    assert '<span class="good"><a href="https://a.example/?&lt;"><bdi>ok</bdi></a></span>' in drawn
    assert "failing of the package eventlog-queues 1.0 failed: ValueError: no route" in drawn
    assert "odd of the package eventlog-queues 1.0 cannot be loaded" in drawn
    assert "No jobs." in drawn


def test_an_hour_of_samples_makes_a_small_page() -> None:
    many = tuple(replace(SAMPLE, at=NOW - 3600 + 5 * step) for step in range(721))
    history = History(levels=(many, (), ()))
    assert len(draw_live_overview(replace(READING, history=history)).encode()) < 60_000


@pytest.mark.parametrize(
    "seconds, said",
    [(None, "unknown"), (0.04, "0.0 s"), (90, "90 s"), (600, "10 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_times_are_said_as_people_do(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


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
    drawn = draw_row(row, explained(row, 1), LOOK)
    assert [act for act in ("hold", "release", "requeue") if f'value="{act}"' in drawn] == acts
    assert buttons(draw_row(row, explained(row, 1), READS)) == []


@pytest.mark.parametrize(
    "act, rows, said",
    [
        ("hold", 2, "2 rows are held now."),
        ("release", 2, "2 rows are released now."),
        ("requeue", 2, "2 rows are waiting again now."),
        ("release", 0, "Nothing was done: none of these rows was held."),
    ],
)
def test_what_was_done_is_said(act: str, rows: int, said: str) -> None:
    assert describe_result(act, rows) == said


@pytest.mark.parametrize("number, said", [("8", "8 update field back"), ("9", "9 unknown"), (None, "NULL")])
def test_event_types_have_names(number: str | None, said: str) -> None:
    assert kind_name(number) == said


def test_a_page_stays_of_today_with_javascript_and_without() -> None:
    assert "<noscript><meta http-equiv=" in draw_overview(READING, LOOK)
    assert "/events?table=usr" in draw_live_table((None, "usr"), None)


@pytest.mark.parametrize("flow", [READING.flow, None])
def test_what_changes_on_an_outputs_page_is_a_part_of_the_page(flow: Flow | None) -> None:
    reading, place = replace(READING, flow=flow), READING.places[0]
    drawn = draw_output(reading, place, LOOK, RANGES[0])
    live, _, state = draw_live_output(reading, place, RANGES[0]).partition("<nav id=")
    assert live.strip() in drawn
    assert 'state"' in state
    assert "aria-current" in state
