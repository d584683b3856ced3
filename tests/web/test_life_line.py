"""The way of a row: written, taken, and where it is at each output, with the button that its advice asks for."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.cli.main import main
from eventlog.delivery.output import OutputState
from eventlog.explain.states import RowStage
from eventlog.web.life_line import LifeStep, life_line
from eventlog.web.reading import OutputView
from tests.conformance.event_logs import installed
from tests.web.states import NOW, OUTPUTS, ROW, STAGES
from tests.web.visiting import Visit, opened

[VAULT] = OUTPUTS[:1]
FAILING = replace(VAULT, state=OutputState(error="no route", failed_at=NOW))


def at_vault(stage: RowStage, output: OutputView = VAULT) -> LifeStep:
    return life_line(ROW, [stage], [output], None)[-1]


def told(step: LifeStep) -> tuple[str, str, str, list[str]]:
    return step.name, step.mark, step.word, [action for action, _ in step.actions]


def test_a_row_is_followed_over_all_outputs() -> None:
    steps = life_line(ROW, STAGES, OUTPUTS, None)
    assert [told(step) for step in steps] == [
        ("written", "✓", ROW.event_time, []),
        ("taken", "✓", "", []),
        ("vault", "✓", "delivered", []),
        ("archive", "▲", "behind row 5", []),
        ("warehouse", "✗", "6 tries", ["try"]),
    ]
    assert "no route to host" in steps[-1].sentence


@pytest.mark.parametrize(
    "stage, expected",
    [
        (RowStage(output="vault", stage="unsealed"), ("vault", "…", "waits", [])),
        (RowStage(output="vault", stage="ahead"), ("vault", "…", "waits", [])),
        (RowStage(output="vault", stage="ahead", paused=True), ("vault", "▲", "paused", ["resume"])),
        (RowStage(output="vault", stage="planned"), ("vault", "…", "being delivered", [])),
        (RowStage(output="vault", stage="parked", reason="retry", attempts=1), ("vault", "✗", "1 try", ["try"])),
        (RowStage(output="vault", stage="parked", reason="held"), ("vault", "▲", "held", [])),
        (RowStage(output="vault", stage="parked", reason="no right"), ("vault", "✗", "no right", [])),
        (RowStage(output="vault", stage="over"), ("vault", "✓", "delivered", [])),
        (RowStage(output="vault", stage="over", status="E", reason="refused"), ("vault", "✗", "refused", [])),
        (RowStage(output="vault", stage="over", status="W", reason="vanished"), ("vault", "▲", "vanished", [])),
    ],
)
def test_each_stage_has_a_sign_a_word_and_the_button_that_helps(
    stage: RowStage, expected: tuple[str, str, str, list[str]]
) -> None:
    assert told(at_vault(stage)) == expected


def test_what_is_wrong_with_an_output_is_said_at_the_rows_that_wait_for_it() -> None:
    assert told(at_vault(RowStage(output="vault", stage="ahead"), FAILING)) == ("vault", "✗", "failing", ["try"])
    paused = replace(VAULT, paused="since noon by ann: they move.")
    assert at_vault(RowStage(output="vault", stage="ahead"), paused).sentence.endswith("by ann: they move.")


def test_a_row_that_waits_for_an_output_under_its_former_name_waits_for_that_output() -> None:
    named = replace(VAULT, former_names=("was",))
    assert told(at_vault(RowStage(output="was", stage="planned"), named))[0] == "vault"


def test_a_row_that_somebody_holds_can_be_released_and_one_that_is_an_error_be_tried_again() -> None:
    held = replace(ROW, reason="held", note="held since noon by ann.")
    assert told(life_line(held, [], OUTPUTS, None)[1]) == ("held", "▲", "by somebody", ["release"])
    refused = replace(ROW, status="E", reason="refused", note="no such group")
    *_, ended = life_line(refused, [], OUTPUTS, "2027-01-15 05:00:02")
    assert told(ended) == ("E refused", "✗", "2027-01-15 05:00:02", ["requeue"])
    assert [told(step)[1:3] for step in life_line(refused, [], OUTPUTS, None)[2:5]] == [("✗", "refused")] * 3
    published = life_line(replace(ROW, status="S"), [], OUTPUTS, None)
    assert [told(step)[1:3] for step in published[2:5]] == [("✓", "delivered")] * 3


def test_an_output_that_came_later_has_not_had_a_row_that_ended_before() -> None:
    ended = replace(ROW, status="S", reason="published")
    took = replace(VAULT, state=OutputState(document="7", position=(7,)))
    later = OutputView(name="later", noted="later", format="xds")
    assert [step.name for step in life_line(ended, [], (took, later), None)] == [
        "written",
        "taken",
        "vault",
        "S published",
    ]


def test_a_row_that_has_ended_says_how_at_each_output() -> None:
    refused = replace(ROW, status="E", reason="refused", note="no such group")
    answers = [
        RowStage(output="vault", stage="over", status="S", reason="published"),
        RowStage(output="gone", stage="over", status="E", reason="refused", note="no such group"),
        RowStage(output="archive", stage="over", status="W", reason="published", note="cut"),
    ]
    *steps, ended = life_line(refused, answers, OUTPUTS, "2027-01-15 05:00:02")
    assert [told(step)[:3] for step in steps[2:]] == [
        ("vault", "✓", "delivered"),
        ("archive", "▲", "delivered with a warning"),
        ("gone", "✗", "refused"),
    ]
    # The same sentence stands once.
    assert [step.sentence for step in steps[2:]] == ["", "archive: cut", "gone: no such group"]
    assert (ended.sentence, [action for action, _ in ended.actions]) == (
        "When the cause is repaired, publish the row again.",
        ["requeue"],
    )
    warned = replace(refused, status="W")
    assert life_line(warned, answers, OUTPUTS, None)[-1].sentence == ""
    left_out = replace(ROW, status="S", reason="superseded")
    assert [step.name for step in life_line(left_out, [], OUTPUTS, None)] == ["written", "taken", "S superseded"]


def test_the_answers_of_a_row_are_on_its_page(sqlite: Engine) -> None:
    log = installed(sqlite)
    log.write(7, "idu=1", status="E")
    log.run(
        "INSERT INTO event_log_outcome (record_id, status, reason, note, answers) VALUES (7, 'E', 'refused', 'no group',"
        """ '{"files out": ["S", "published", null], "hr": ["E", "refused", "no group"]}')"""
    )
    with opened(sqlite) as page:
        body = Visit(page).get("/rows/7").body
    line = body.partition('<ol class="life"')[2].partition("</ol>")[0]
    assert line.count("<li") == 5
    assert "delivered" in line
    assert body.count("hr: no group") == 1
    told = CliRunner().invoke(main, ["explain", "7", "--database", str(sqlite.url)])
    assert told.output.splitlines()[1:3] == ["files out: S published", "hr: E refused: no group"]


def test_the_line_is_read_from_the_journal(sqlite: Engine) -> None:
    log = installed(sqlite)
    log.write(7, "idu=1")
    for name in ("vault", "files out"):
        log.run(f"INSERT INTO event_log_output (name, position, plans) VALUES ('{name}', 1, 0)")
    log.run(
        "INSERT INTO event_log_parked (record_id, output, object, reason, note, attempts, due)"
        " VALUES (7, 'files out', 'x', 'retry', '<b>no route</b>', 6, 4102444800000)"
    )
    with opened(sqlite) as page:
        body = Visit(page).get("/rows/7").body
    line = body.partition('<ol class="life"')[2].partition("</ol>")[0]
    assert line.count("<li") == 5
    assert "6 tries" in line
    assert "&lt;b&gt;no route&lt;/b&gt;" in body
    assert (
        '<input type="hidden" name="action" value="try"><input type="hidden" name="output" value="files out">' in body
    )
