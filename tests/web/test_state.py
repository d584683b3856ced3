"""What stands beside every page: the state in title and icon, each output with its documents a second, and the first steps."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from eventlog.delivery.output import OutputState
from eventlog.sources.log.flow import Flow
from eventlog.web.first_steps import command_options, first_steps
from eventlog.web.navigation import ICONS, page_state
from eventlog.web.pages import draw_live_overview, draw_overview
from eventlog.web.reading import History, OutputSample, PageReading, Sample
from eventlog.web.server import PageServer
from eventlog.web.verdict import headline
from tests.integration.publishing import until
from tests.web.states import EMPTY, FACTS, LOOK, NOW, PLACE, QUICK, READING, STATES, triggers
from tests.web.visiting import Visit

KINDS = {
    "empty": ("new", "calm"),
    "flowing": ("flowing", "good"),
    "lagging": ("lagging", "warn"),
    "dead": ("failing", "bad"),
    "held": ("held", "warn"),
    "no right": ("suspended", "warn"),
    "publisher gone": ("no publisher", "bad"),
    "slow": ("slow", "warn"),
}


@pytest.mark.parametrize("name", STATES)
def test_title_and_icon_say_the_state(name: str) -> None:
    state = page_state(STATES[name])
    assert state.word is not None
    assert (state.word.text, state.word.kind) == KINDS[name]
    assert state.icon == ICONS[state.word.kind]
    drawn = draw_overview(STATES[name], replace(LOOK, state=state))
    assert f"<title>{state.word.text.capitalize()} · Overview · event_log</title>" in drawn


@pytest.mark.parametrize("name", STATES)
def test_the_state_is_said_once(name: str) -> None:
    drawn = draw_live_overview(STATES[name])
    assert drawn.count('class="verdict') + drawn.count('class="banner') + drawn.count('class="steps"') == 1


def test_icons_differ_also_without_colours() -> None:
    shapes = {unquote(icon).partition("<svg")[2].replace("#", "") for icon in ICONS.values()}
    assert len(shapes) == len(ICONS)
    assert all(icon.startswith("data:image/svg+xml,") and "<" not in icon for icon in ICONS.values())


def test_each_output_has_its_documents_a_second_on_one_scale() -> None:
    samples = History()
    for step in range(10):
        rates = {PLACE.noted: OutputSample(rate=1.0), QUICK.noted: OutputSample(rate=10.0)}
        at = NOW - 600 + 60 * step
        samples = samples.with_sample(Sample(at=at, waiting=0, oldest=None, lag=0.0, rate=1.0, outputs=rates))
    reading = replace(READING, history=samples, places=(replace(PLACE, rate=1.0), replace(QUICK, rate=1234.5)))
    slow, quick = page_state(reading).outputs
    assert (slow.rate, quick.rate) == ("1/s", "1,234/s")
    heights = [float(link.points.split()[-1].partition(",")[2]) for link in (slow, quick)]
    assert heights[0] > 15
    assert heights[1] < 2


def test_a_first_visit_is_three_steps_that_are_ticked() -> None:
    assert [step.is_done for step in first_steps(EMPTY)] == [False, False, False]
    tracked = replace(EMPTY, triggers=triggers({"t": "CURRENT"}))
    assert [step.is_done for step in first_steps(tracked)] == [True, False, False]
    assert first_steps(tracked)[2].command == "eventlog refresh usr"
    works = replace(tracked, flow=Flow(publishing=True))
    assert [step.is_done for step in first_steps(works)] == [True, True, False]


@pytest.mark.parametrize(
    "changes",
    [
        {"facts": replace(FACTS, rows={"S": 1})},
        {"flow": Flow(finished=1)},
        {"places": (replace(PLACE, state=OutputState(document="1", position=(1,))),)},
        {"commands": None},
        {"facts": None},
        {"trouble": "it is gone."},
    ],
)
def test_there_are_no_steps_once_something_was_published_or_nobody_knows(changes: dict[str, object]) -> None:
    reading: PageReading = replace(EMPTY, **changes)
    assert first_steps(reading) == ()


def test_what_is_broken_comes_before_the_first_steps() -> None:
    fails = OutputState(error="no route", failed_at=NOW, failing_since=NOW - 60)
    assert headline(replace(EMPTY, places=(replace(PLACE, state=fails),))).state == "failing"


def test_commands_find_the_database_from_where_the_page_runs(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert command_options("sqlite:///a b.db", "sqlite:///a b.db", {}) == " --database 'sqlite:///a b.db'"
    assert command_options("postgresql://u:p@h/d", "postgresql://u:***@h/d", {}) == ""
    assert command_options("sqlite:///a.db", "sqlite:///a.db", {"EVENTLOG_DATABASE": "x"}) == ""


def test_pages_that_stand_still_ask_for_the_state(page: PageServer) -> None:
    visit = Visit(page)
    until(lambda: 'href="/output?name=files+' in visit.get("/state").body, "the log was looked at")
    assert 'data-state="No publisher"' in visit.get("/state").body
    assert 'id="state"' in visit.get("/rows").body
