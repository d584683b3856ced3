"""What the page says at three in the morning, and the states of all pages by one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track
from eventlog.care.status import Publishing
from eventlog.core.model import Status
from eventlog.daemon.health import PublisherHealth, VitalsReading, stands
from eventlog.delivery.output import OutputState
from eventlog.publisher.flow import shares_of
from eventlog.publisher.turn_report import Turn
from eventlog.sources.log.flow import STATES as FLOW_STATES
from eventlog.sources.log.flow import Flow, OutputLag, WaitingParts
from eventlog.web.banners import ADVICE, GUIDE, banners
from eventlog.web.drawing import environment
from eventlog.web.pages import draw_live_overview
from eventlog.web.reading import History
from eventlog.web.texts import short_id
from eventlog.web.words import STATES, STATUS_WORDS, status_word, trigger_state, word_of
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.web.states import ACCIDENTS, DEAD, FACTS, FLOW, NOW, PLACE, READING, SAMPLE, triggers
from tests.web.test_html import Reader
from tests.web.visiting import Visit, bare, opened, watched

GUIDE_PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/runbook.md"


def said(drawn: str) -> list[str]:
    """The banners of a page, as they are read."""
    found = re.findall(r'<div class="banner \w+"(?: role="status")?>(.*?)\n  </div>', drawn, re.DOTALL)
    return [" ".join(Reader(re.sub("<(p|button|blockquote)", r" <\1", one)).text.split()) for one in found]


TAKEN = replace(PLACE, state=OutputState(document="1", position=(1,), at=NOW - 600))
UNKNOWN = Publishing(host=None, pid=None, since=None, lease_until=None, expired=True)
FAILING = VitalsReading(state="failing", error="no route to the database", last_cycle=NOW - 60)
BY_OUTPUT = VitalsReading(state="failing", error=DEAD.state.error)
SLOW_FLOW = replace(FLOW, lag=900.0, ready_lag=900.0)
UNMEASURED = replace(FLOW, lag=None, ready_lag=None)
BEHIND = replace(FLOW, lags={PLACE.noted: OutputLag(rows=2)})


@pytest.mark.parametrize(
    "changes, begin",
    [
        (
            {"places": (TAKEN,), "flow": Flow(parts=WaitingParts(ready=1))},
            "No publisher: this log, since the last document, 2027-01-15 07:50:00 UTC (10 min). 1 row waits.",
        ),
        ({"flow": Flow()}, "No publisher: this log. 0 rows wait. It has given its lock back, or none has worked"),
        ({"flow": Flow(), "gone": UNKNOWN}, "No publisher: this log. 0 rows wait. Somebody published the log"),
        ({"loop": FAILING}, "Failing: the publisher, since 2027-01-15 07:59:00 UTC (60 s). Rows wait. no route"),
        ({"loop": VitalsReading(state="failing")}, "Failing: the publisher. Rows"),
        ({"loop": BY_OUTPUT, "places": (DEAD,)}, "Failing: files out, since 2027-01-15 05:00:00 UTC (3 h)."),
        (
            {"flow": SLOW_FLOW},
            "Slow: files out, since 2027-01-15 07:45:00 UTC (15 min). 3 rows wait, and 10.0 rows a second",
        ),
        (
            {"flow": UNMEASURED, "history": History()},
            "Slow: files out. 3 rows wait, and 0.0 rows a second",
        ),
        ({"flow": SLOW_FLOW, "places": (PLACE, replace(PLACE, noted="b"))}, "Slow: all outputs, since"),
        ({"flow": BEHIND}, "Lagging: files out. It is 2 rows behind; other outputs continue. Do"),
    ],
)
def test_a_banner_says_what_since_when_and_why(changes: dict[str, Any], begin: str) -> None:
    """The banners of accidents stand in pages.txt, word for word."""
    [words] = said(draw_live_overview(replace(READING, **changes)))
    assert words.startswith(begin)


@pytest.mark.parametrize("changes", [{}, {"places": (replace(DEAD, paused="since then by ann"),)}])
def test_what_needs_nobody_has_no_banner(changes: dict[str, Any]) -> None:
    assert said(draw_live_overview(replace(READING, **changes))) == []


def test_what_to_do_is_what_the_guide_says() -> None:
    guide = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", GUIDE_PAGE.read_text(encoding="utf-8"))
    assert guide.startswith(f"# {GUIDE}\n")
    for section, do in ADVICE.items():
        found = guide.partition(f"## {section}\n")[2].partition("\n## ")[0]
        assert f"**Do** {do}" in " ".join(found.split()), section


def test_every_state_has_a_word_and_a_colour_on_all_pages() -> None:
    assert set(FLOW_STATES) <= set(STATES)
    assert {str(condition) for condition in TriggerCondition} <= set(STATES)
    assert set(STATUS_WORDS) == set(Status)
    assert [one.kind for one in STATES.values() if not one.kind] == []
    assert word_of("unheard of").text == "unheard of"
    assert status_word("X").text == "ignored"
    [good, broken] = triggers({"a": "CURRENT", "b": "OUTDATED"})
    assert (trigger_state(good), trigger_state(replace(broken, fails=True))) == ("CURRENT", "failing")


def test_an_output_fails_since_its_first_error_behind_its_last_document() -> None:
    failed, again = (Turn(complaint="no route"), Turn(complaint="still none"))
    fails = stands(OutputState(document="1", at=5.0), failed, 10.0)
    assert (fails.began_to_fail, stands(fails, again, 20.0).began_to_fail) == (10.0, 10.0)
    took = stands(fails, Turn(documents=1, last=("2", (2,))), 30.0)
    assert (took.is_failing, took.began_to_fail) == (False, None)
    assert stands(took, failed, 40.0).began_to_fail == 40.0


def test_an_output_that_took_documents_and_then_failed_fails() -> None:
    took = Turn(documents=3, last=("3", (3,)), complaint="503")
    fails = stands(OutputState(), took, 10.0, failed=True)
    assert fails.is_failing
    assert not stands(OutputState(), took, 10.0).is_failing, "a receiver that had something against one row goes on"


def test_a_publisher_that_begins_anew_goes_on_failing_since_then() -> None:
    fails = OutputState(document="1", at=5.0, error="no route", failed_at=20.0, failing_since=10.0, documents=7)
    vitals = PublisherHealth()
    vitals.serves(["a"])
    vitals.restore({"a": fails, "gone": fails})
    assert vitals.reading().outputs == {"a": replace(fails, documents=0)}
    vitals.note_turn("a", Turn(complaint="still none"), failed=True)
    assert vitals.reading().outputs["a"].began_to_fail == 10.0
    newer = vitals.reading().outputs
    vitals.restore({"a": fails})
    assert vitals.reading().outputs == newer, "what is known here is newer"


def test_the_page_of_a_table_has_the_banner_of_its_missing_right(sqlite: Engine) -> None:
    install(sqlite)
    log = LogTable(sqlite)
    log.run("CREATE TABLE usr (idu INTEGER PRIMARY KEY)")
    track(sqlite, ["usr"])
    log.run("INSERT INTO usr VALUES (1)")
    log.run(
        "INSERT INTO event_log_parked (record_id, output, object, reason, note, attempts, due)"
        " VALUES (1, 'a', 'x', 'no right', 'permission denied for table usr', 0, 4102444800000)"
    )
    with opened(sqlite) as page:
        visit = Visit(page)
        until(lambda: "Suspended:" in visit.get("/").body, "the log was read")
        [words] = said(visit.get("/table?name=usr").body)
    assert words.startswith("Suspended: the table usr, since row 1")


FIGURE = re.compile(r"[0-9][0-9,]*")


def figures(piece: str) -> list[int]:
    return [int(one.replace(",", "")) for one in FIGURE.findall(Reader(piece).text)]


def test_the_figures_of_a_page_are_of_one_reading() -> None:
    """What waits is one figure, whenever rows by status were counted, and its parts are all of it."""
    parts = WaitingParts(ready=4000, held=700, retrying=20, suspended=3, lagging=1, not_due=0)
    reading = replace(READING, flow=replace(FLOW, parts=parts), facts=replace(FACTS, rows={"N": 9999, "S": 442}))
    drawn = draw_live_overview(reading)
    [waiting] = re.findall(r"<dt>Waiting</dt><dd>(.*?)</dd>", drawn)
    total, *of_parts = figures(waiting)
    assert (total, sum(of_parts), of_parts) == (4724, 4724, [4000, 700, 20, 3, 1])
    table = bare(drawn).partition("<caption>By status")[2].partition("</table>")[0]
    counted = dict(re.findall(r"<b>(.)</b>.*?</th><td>([0-9,]+)</td>", table))
    assert counted == {"N": "4,724", "S": "442", "W": "0", "E": "0", "F": "0"}
    assert f'width="{round(100 * 442 / (442 + 4724), 2)}"' in table
    assert replace(reading, flow=None).waiting == SAMPLE.waiting
    assert replace(reading, flow=None, history=History()).waiting == 0
    assert replace(reading, flow=None).rows == reading.facts


@pytest.mark.parametrize(
    "total, counts, fit, left",
    [(10, (3, 2), [3, 2], 5), (4, (3, 2, 1), [3, 1, 0], 0), (0, (7,), [0], 0)],
)
def test_what_waits_is_never_more_than_the_log_has(
    total: int, counts: tuple[int, ...], fit: list[int], left: int
) -> None:
    assert shares_of(total, counts) == (fit, left)


@pytest.mark.parametrize(
    "text, short",
    [
        (42, "42"),
        ("00000000000000004724", "…4724"),
        ("0" * 20, "…0"),
        (7_123_456_789_012_345_678, "…12345678"),
        ("a-document-of-a-stream", "a-document-of-a-stream"),
    ],
)
def test_a_number_of_twenty_digits_has_a_short_form(text: str | int, short: str) -> None:
    assert short_id(text) == short
    made = environment().from_string("{{ text | ident }}").render(text=text)
    assert made.strip() == (str(text) if short == str(text) else f'<span class="word" title="{text}">{short}</span>')


def test_rows_that_wait_since_a_restore_are_given_to_no_person() -> None:
    flow = replace(FLOW, parts=WaitingParts(held=2), first_held=None)
    [banner] = banners(replace(READING, flow=flow))
    assert banner.to == ("rows", {"status": "N", "reason": "restored"})
    assert "outputs resume" in banner.do
    assert banner.choose == {}


def test_held_rows_and_a_missing_right_are_read_from_the_log(sqlite: Engine) -> None:
    log = watched(sqlite)
    log.write(5, "idu=2")
    log.run("INSERT INTO event_log_hold (record_id, note) VALUES (2, 'held since now by ann.')")
    log.run(
        "INSERT INTO event_log_parked (record_id, output, object, reason, note, attempts, due)"
        " VALUES (5, 'a', 'x', 'no right', 'permission denied for table usr', 0, 4102444800000)"
    )
    with opened(log.engine) as page:
        visit = Visit(page)
        until(lambda: "<caption>By status" in visit.get("/").body, "rows are counted")
        drawn = visit.get("/").body
    words = said(drawn)
    assert [one.partition(":")[0] for one in words] == ["No publisher", "Suspended", "Held"]
    assert "the table usr, since row 5" in words[1]
    assert "permission denied for table usr" in words[1]
    assert "held since now by ann." in words[2]
    [waiting] = re.findall(r"<dt>Waiting</dt><dd>(.*?)</dd>", drawn)
    assert figures(waiting) == [2, 1, 1]
    assert "<b>N</b> waits</span></a></th><td>2</td>" in bare(" ".join(drawn.split()))


def test_what_a_banner_links_to_is_there(log: LogTable) -> None:
    with opened(log.engine) as server:
        guide = Visit(server).get("/guide").body
    assert [section for section in ADVICE if f'<section id="{section}">' not in guide] == []
    assert "](" not in guide, "links of the docs lead nowhere here"
    for reading in ACCIDENTS.values():
        for banner in banners(reading):
            assert f'href="/guide#{banner.section}"' in draw_live_overview(reading)
