"""What the page says at three in the morning: five accidents, word for word, and the states of all pages by one table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.admin.status import Publishing
from eventlog.capture import track
from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.core.model import Status
from eventlog.daemon.vitals import OutputTurn, VitalsReading, stands
from eventlog.delivery.output import OutputState, newest
from eventlog.publisher.flow import shares_of
from eventlog.sources.log.flow import STATES as FLOW_STATES
from eventlog.sources.log.flow import Flow, OutputLag, WaitingParts
from eventlog.web.banners import ADVICE, GUIDE
from eventlog.web.pages import environment, live, output_page, short_id
from eventlog.web.reading import RANGES, History, OutputView, UnreadTable
from eventlog.web.words import LETTERS, STATES, letter_word, trigger_state, word_of
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.web.test_drawn import FACTS, FLOW, LOOK, NOW, PLACE, READING, READS, SAMPLE, triggers
from tests.web.test_html import Reader
from tests.web.visiting import Visit, bare, opened, watched

GUIDE_PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/runbook.md"
DEAD = replace(
    PLACE,
    standing=OutputState(
        document="0042",
        position=(42,),
        at=NOW - 10_900,
        error="hr.example.net:8443 refused the connection. It is tried again.",
        failed_at=NOW - 12,
        failing_since=NOW - 10_800,
    ),
    rate=0.0,
)
SLOW = replace(PLACE, rate=2.5)
QUICK = replace(PLACE, name="hr", noted="hr", rate=9.8)
LATE = replace(FLOW, oldest=7, lag=10_800.0, ready_lag=10_800.0, settled=0)
"""Nothing was published for three hours."""

GONE = Publishing(host="db1", pid=812, since=None, lease_until="2027-01-15 05:00:12.345", expired=True)
DO = "The docs say more: “When something is wrong”, Eventlog"
ACCIDENTS = {
    "dead output": (
        replace(READING, places=(DEAD,), flow=replace(LATE, failing=True)),
        (
            "Failing: files out, since 2027-01-15 05:00:00 UTC (3 h). 3 rows wait for it."
            " hr.example.net:8443 refused the connection. It is tried again."
            " Do repair the receiver, the disk or the right that the error names. The publisher tries again by itself,"
            f" at least every 30 s. {DO}OutputFails. Try now… Pause…"
        ),
    ),
    "held rows": (
        replace(
            READING,
            flow=replace(FLOW, parts=WaitingParts(held=2000), first_held=9, oldest=None, lag=0.0, ready_lag=0.0),
            held="held since 2027-01-14 17:00:00 UTC by ann: their database moves",
        ),
        (
            "Held: 2,000 rows. Row 9 is the first. Later rows of the same objects wait behind it."
            " held since 2027-01-14 17:00:00 UTC by ann: their database moves"
            f" Do ask that person. eventlog release NUMBER ends the hold. {DO}Held."
        ),
    ),
    "no right": (
        replace(
            READING,
            flow=replace(FLOW, parts=WaitingParts(suspended=3), lag=10_800.0, ready_lag=0.0),
            unread={"usr": UnreadTable(note="permission denied for table usr", row=7, time="2027-01-15 05:00:00")},
        ),
        (
            "Suspended: the table usr, since row 7 of 2027-01-15 05:00:00. The publisher may not read it, so its rows wait."
            " All others are published. permission denied for table usr"
            " Do grant the right: eventlog rights --publisher ROLE prints the statement. The rows then follow by themselves."
            f" {DO}Suspended."
        ),
    ),
    "publisher gone": (
        replace(READING, flow=replace(LATE, publishing=False), gone=GONE),
        (
            "No publisher: this log, since 2027-01-15 05:00:12.345 UTC. 3 rows wait."
            " Process 812 on db1 published the log, has not renewed its lease, and has not given its lock back."
            " Do what the journal's last record, fatal, asks for, and start the service."
            f" After a kill the next one repeats the batch. {DO}NoPublisher."
        ),
    ),
    "slow receiver": (
        replace(
            READING,
            places=(SLOW, QUICK),
            flow=replace(
                FLOW,
                parts=WaitingParts(ready=3, lagging=300),
                lag=5400.0,
                lags={PLACE.noted: OutputLag(rows=300, first=7, seconds=5400.0)},
            ),
        ),
        (
            "Lagging: files out, since 2027-01-15 06:30:00 UTC (90 min). It is 300 rows behind; other outputs continue."
            " It takes 2.5 documents a second."
            f" Do give the receiver more connections, or look at what delays a change. {DO}Delay. Try now… Pause…"
        ),
    ),
}


def said(drawn: str) -> list[str]:
    """The banners of a page, as they are read."""
    found = re.findall(r'<div class="banner \w+">(.*?)\n  </div>', drawn, re.DOTALL)
    return [" ".join(Reader(re.sub("<(p|button|blockquote)", r" <\1", one)).text.split()) for one in found]


@pytest.mark.parametrize("name", ACCIDENTS)
def test_an_accident_says_what_since_when_why_and_what_to_do(name: str) -> None:
    reading, words = ACCIDENTS[name]
    assert said(live(reading, acts=True)) == [words]


def test_nothing_needs_anybody_where_all_is_well_and_who_only_reads_has_no_buttons() -> None:
    assert said(live(READING)) == []
    assert "Try now" not in live(ACCIDENTS["dead output"][0])


def test_the_page_of_an_output_has_its_banner_and_its_buttons_once() -> None:
    drawn = output_page(ACCIDENTS["dead output"][0], DEAD, LOOK, RANGES[0])
    assert said(drawn) == [ACCIDENTS["dead output"][1].removesuffix(" Try now… Pause…")]
    assert drawn.count("Try now…") == 1
    assert "up to date" not in drawn.lower()
    assert "<button" not in output_page(ACCIDENTS["dead output"][0], DEAD, READS, RANGES[0])


def test_a_publisher_that_left_says_when_the_last_document_was_taken() -> None:
    taken = replace(PLACE, standing=OutputState(document="1", position=(1,), at=NOW - 600))
    reading = replace(READING, places=(taken,), flow=Flow(parts=WaitingParts(ready=1)))
    [words] = said(live(reading))
    assert words.startswith(
        "No publisher: this log, since the last document, 2027-01-15 07:50:00 UTC (10 min). 1 row waits."
    )
    [never] = said(live(replace(reading, places=(PLACE,), flow=Flow())))
    assert never.startswith("No publisher: this log. 0 rows wait. It has given its lock back, or none has worked")
    unknown = replace(reading, gone=Publishing(host=None, pid=None, since=None, lease_until=None, expired=True))
    assert "Somebody published the log" in said(live(unknown))[0]


def test_a_publisher_that_fails_says_why() -> None:
    loop = VitalsReading(state="failing", error="no route to the database", last_cycle=NOW - 60)
    [words] = said(live(replace(READING, loop=loop)))
    assert words.startswith("Failing: the publisher, since 2027-01-15 07:59:00 UTC (60 s). Rows wait. no route")
    assert said(live(replace(READING, loop=VitalsReading(state="failing"))))[0].startswith(
        "Failing: the publisher. Rows"
    )


def test_a_publisher_that_fails_by_its_output_says_it_once() -> None:
    reading = replace(ACCIDENTS["dead output"][0], loop=VitalsReading(state="failing", error=DEAD.standing.error))
    assert said(live(reading, acts=True)) == [ACCIDENTS["dead output"][1]]
    assert "<strong>Failing.</strong> Rows wait for 1 output." in live(reading)


@pytest.mark.parametrize(
    "places, which", [((PLACE,), "files out"), ((PLACE, replace(PLACE, noted="b")), "all outputs")]
)
def test_outputs_that_are_all_slow_are_said(places: tuple[OutputView, ...], which: str) -> None:
    late = replace(READING, places=places, flow=replace(FLOW, lag=900.0, ready_lag=900.0))
    [words] = said(live(late))
    assert words.startswith(
        f"Slow: {which}, since 2027-01-15 07:45:00 UTC (15 min). 3 rows wait, and 10.0 rows a second"
    )
    unmeasured = replace(late, history=History(), flow=replace(FLOW, lag=None, ready_lag=None))
    assert said(live(unmeasured))[0].startswith(f"Slow: {which}. 3 rows wait, and 0.0 rows a second")


def test_an_output_that_is_paused_needs_nobody_and_one_behind_says_what_is_known() -> None:
    paused = replace(READING, places=(replace(DEAD, paused="since then by ann"),))
    assert said(live(paused)) == []
    behind = replace(READING, flow=replace(FLOW, lags={PLACE.noted: OutputLag(rows=2)}))
    assert said(live(behind))[0].startswith("Lagging: files out. It is 2 rows behind; other outputs continue. Do")
    both = replace(behind, places=(DEAD,))
    assert "(3 h). It is 2 rows behind; other outputs continue. hr.example" in said(live(both))[0]


def test_what_to_do_is_what_the_guide_says() -> None:
    guide = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", GUIDE_PAGE.read_text(encoding="utf-8"))
    assert guide.startswith(f"# {GUIDE}\n")
    for section, do in ADVICE.items():
        found = guide.partition(f"## {section}\n")[2].partition("\n## ")[0]
        assert f"**Do** {do}" in " ".join(found.split()), section


def test_every_state_has_a_word_and_a_colour_on_all_pages() -> None:
    assert set(FLOW_STATES) <= set(STATES)
    assert {str(condition) for condition in TriggerCondition} <= set(STATES)
    assert set(LETTERS) == set(Status)
    assert [one.kind for one in STATES.values() if not one.kind] == []
    assert word_of("unheard of").text == "unheard of"
    assert letter_word("X").text == "ignored"
    [good, broken] = triggers({"a": "CURRENT", "b": "OUTDATED"})
    assert (trigger_state(good), trigger_state(replace(broken, fails=True))) == ("CURRENT", "failing")


def test_an_output_fails_since_its_first_error_behind_its_last_document() -> None:
    failed, again = (OutputTurn(error="no route", failed=True), OutputTurn(error="still none", failed=True))
    fails = stands(OutputState(document="1", at=5.0), failed, 10.0)
    assert (fails.began_to_fail, stands(fails, again, 20.0).began_to_fail) == (10.0, 10.0)
    took = stands(fails, OutputTurn(documents=1, last=("2", (2,))), 30.0)
    assert (took.is_failing, took.began_to_fail) == (False, None)
    assert stands(took, failed, 40.0).began_to_fail == 40.0
    former = OutputState(error="no route", failed_at=10.0)  # as versions before this one noted it
    assert stands(former, again, 20.0).began_to_fail == 10.0


def test_a_publisher_that_begins_anew_goes_on_failing_since_then() -> None:
    fails = OutputState(document="1", at=5.0, error="no route", failed_at=20.0, failing_since=10.0)
    anew = OutputState(error="still none", failed_at=40.0, failing_since=40.0)
    assert newest({"a": fails}, {"a": anew})["a"].began_to_fail == 10.0
    assert newest({"a": fails}, {"a": replace(anew, at=30.0)})["a"].began_to_fail == 40.0
    assert newest({"a": fails}, {"a": OutputState()})["a"] == replace(fails, documents=0)


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
    drawn = live(reading)
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
    made = environment().from_string('{% import "parts.html" as parts %}{{ parts.ident(text) }}').render(text=text)
    assert made.strip() == (str(text) if short == str(text) else f'<span class="word" title="{text}">{short}</span>')


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
