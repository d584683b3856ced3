"""`eventlog convert --mark` that was interrupted between the output and the marks: the same command finishes it."""

from __future__ import annotations

from pathlib import Path

from eventlog.convert.commit import MARKING, UNMARKED
from tests.acceptance.command import eventlog, ok
from tests.acceptance.test_convert_command import HERE, database, run, statuses
from tests.support.converting import files_of

DONE = [(1, "S"), (2, "W"), (3, "S")]


def test_who_looked_at_the_output_first_marks_by_the_same_command(tmp_path: Path) -> None:
    url, out = database(tmp_path), tmp_path / "out"
    first = ok("convert", url, "--out", out, *HERE)
    made = files_of(out)
    other = eventlog("convert", url, "--out", out, "--part-events", "7", "--mark", *HERE)
    assert (other.returncode, "is not empty" in other.stderr) == (64, True)
    assert statuses(tmp_path) == [(1, "N"), (2, "N"), (3, "N")]
    done = eventlog("convert", url, "--out", out, "--mark", *HERE)
    assert (done.returncode, done.stdout) == (0, first)
    assert "was complete and is as it was; its rows are marked now." in done.stderr
    assert statuses(tmp_path) == DONE
    assert files_of(out) == {name: content for name, content in made.items() if name != UNMARKED}


def test_marking_that_was_interrupted_is_finished_and_its_output_never_made_anew(tmp_path: Path) -> None:
    url, out = database(tmp_path), tmp_path / "out"
    ok("convert", url, "--out", out, *HERE)
    made = files_of(out)
    (out / UNMARKED).replace(out / MARKING)  # as an interruption leaves it
    run(tmp_path, "UPDATE event_log SET status = 'S' WHERE record_id = 1")
    for more in (["--overwrite"], ["--overwrite", "--coalesce", "--mark"]):  # would lose what row 1 made
        refused = eventlog("convert", url, "--out", out, *more, *HERE)
        assert (refused.returncode, "were being marked" in refused.stderr) == (64, True), refused.stderr
    ok("convert", url, "--out", out, "--overwrite", "--mark", *HERE)
    assert statuses(tmp_path) == DONE
    assert files_of(out) == {name: content for name, content in made.items() if name != UNMARKED}
    again = eventlog("convert", url, "--out", out, "--mark", *HERE)
    assert (again.returncode, "it is complete and is as it was" in again.stderr) == (0, True)
    assert files_of(out) == {name: content for name, content in made.items() if name != UNMARKED}


def test_output_of_which_no_row_is_marked_can_be_made_anew(tmp_path: Path) -> None:
    url, out = database(tmp_path), tmp_path / "out"
    ok("convert", url, "--out", out, *HERE)
    run(tmp_path, "INSERT INTO usr VALUES (7, 'Eve', NULL)")
    assert ok("convert", url, "--out", out, "--overwrite", "--mark", *HERE).startswith("4 rows, ")
    assert not (out / UNMARKED).exists()
    assert not (out / MARKING).exists()
    assert {letter for _, letter in statuses(tmp_path)} == {"S", "W"}
