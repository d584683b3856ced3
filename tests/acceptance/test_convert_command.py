"""`eventlog convert` as a user calls it: files and a database in, parts out, and sentences where something is wrong."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from eventlog.convert.commit import UNMARKED
from eventlog.xds.validate import validate
from tests.acceptance.command import eventlog, expect_refused, ok
from tests.support.converting import elements_of, files_of, log_row, outcomes_of, write_csv, write_lines, write_parquet

SCHEMA = {
    "tables": [
        {
            "schema": "indirect",
            "name": "usr",
            "columns": [
                {"name": "idu", "type": "integer", "key": 1},
                {"name": "fname", "type": "varchar(64)"},
                {"name": "age", "type": "integer"},
            ],
        }
    ]
}
HERE = ("--engine", "local[1]")
"""Workers are asked by the first test; they start for half a second, which each command would pay."""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    return file


def test_files_become_parts(tmp_path: Path, schema: Path) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    write_csv(inputs / "a.csv", [log_row(3, column_name="age", new_value="7")])
    write_parquet(inputs / "b.parquet", [log_row(1), log_row(2, table_key="idu=2")])
    write_lines(inputs / "c.jsonl.gz", [log_row(4, event_type=9)])
    out = tmp_path / "out"
    words = ("convert", inputs, "--schema", schema, "--out", out, "--part-events", "1", "--engine", "local[2]")
    last = ok(*words).splitlines()[-1]
    assert last == "4 rows, 2 changes, 2 parts (E 1, S 3); 1 bad: see outcomes.parquet."
    assert sorted(entry.name for entry in out.iterdir()) == [
        "_SUCCESS",
        "outcomes.parquet",
        "part-00000.xml",
        "part-00001.xml",
    ]
    assert validate((out / "part-00001.xml").read_bytes()) == []
    assert '<value type="int">7</value>' in (out / "part-00001.xml").read_text()
    assert json.loads((out / "_SUCCESS").read_bytes())["statuses"] == {"E": 1, "S": 3}


def test_bad_rows_are_told_by_their_reasons(tmp_path: Path) -> None:
    rows = [log_row(number, event_type=number) for number in (9, 10, 11)]
    file = write_lines(tmp_path / "a.jsonl", [*rows, log_row(12, table_key="idu"), log_row(1)])
    done = eventlog("convert", file, "--out", tmp_path / "out", *HERE)
    told = [line for line in done.stderr.splitlines() if "ended as E" in line]
    assert len(told) == 2
    assert told[0].startswith("eventlog: 3 rows ended as E, invalid: event_type is ")
    assert told[1].startswith("eventlog: 1 row ended as E, invalid: table_key ")
    found = json.loads(eventlog("convert", file, "--out", tmp_path / "again", "--json", *HERE).stdout)
    assert [(group["rows"], group["reason"]) for group in found["bad_rows"]] == [(3, "invalid"), (1, "invalid")]


def test_strict_says_that_there_were_bad_rows_and_writes_all_the_same(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [log_row(1), log_row("x")])
    done = eventlog("convert", file, "--out", tmp_path / "out", "--strict", "--json", *HERE)
    assert (done.returncode, json.loads(done.stdout)["statuses"]) == (65, {"E": 1, "S": 1})
    assert (tmp_path / "out" / "_SUCCESS").exists()


def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    run(tmp_path, "CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(64), photo BLOB)")
    ok("install", "--database", url)
    ok("track", "usr", "--database", url)
    run(tmp_path, "INSERT INTO usr VALUES (1, 'Jack', X'AAAA'), (2, 'Ann', NULL); DELETE FROM usr WHERE idu = 2")
    return url


def run(folder: Path, script: str) -> None:
    with sqlite3.connect(folder / "app.db") as connection:
        connection.executescript(script)
    connection.close()


def statuses(folder: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "app.db") as connection:
        found = connection.execute("SELECT record_id, status FROM event_log ORDER BY 1").fetchall()
    connection.close()
    return found


def test_files_are_read_back_from_a_database_or_a_snapshot(tmp_path: Path, schema: Path) -> None:
    url = database(tmp_path)
    file = write_lines(tmp_path / "a.jsonl", [log_row(1, event_type=6, column_name=None)])
    ok("convert", file, "--database", url, "--out", tmp_path / "database", *HERE)
    assert "Jack" in elements_of(tmp_path / "database")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "usr.jsonl").write_text('{"idu": 1, "fname": "Jack", "age": null}\n')
    ok("convert", file, "--schema", schema, "--snapshot", tmp_path / "tables", "--out", tmp_path / "snapshot", *HERE)
    assert "Jack" in elements_of(tmp_path / "snapshot")
    ok("convert", file, "--schema", schema, "--out", tmp_path / "nobody", "--no-strict", *HERE)
    assert [outcome["status"] for outcome in outcomes_of(tmp_path / "nobody")] == ["E"]


@pytest.mark.parametrize("name", ["usr.json", "usr.NDJSON", "usr/part-0.json", "usr.json/part-0.json"])
def test_a_snapshot_may_be_called_as_other_programs_write_it(tmp_path: Path, schema: Path, name: str) -> None:
    file = write_lines(tmp_path / "a.jsonl", [log_row(1, event_type=6, column_name=None)])
    rows = tmp_path / "tables" / name
    rows.parent.mkdir(parents=True)
    rows.write_text('{"idu": 1, "fname": "Jack", "age": null}\n')
    ok("convert", file, "--schema", schema, "--snapshot", tmp_path / "tables", "--out", tmp_path / "out", *HERE)
    assert "Jack" in elements_of(tmp_path / "out")


def test_an_address_is_not_taken_for_a_folder_of_that_name(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [log_row(1)])
    expect_refused(64, "is an address of no file system", "convert", file, "--out", "ftp://host/out", cwd=tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]


def test_settings_of_the_publisher_are_taken_from_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[source]\nuser = "app"\nschema = "hr"\n[publisher]\ncoalesce = true\n')
    rows = [log_row(1), log_row(2, event_type=2, old_value="Jack", new_value="John"), log_row(3, perpetrator="APP")]
    file = write_lines(tmp_path / "a.jsonl", rows)
    last = ok("convert", file, "--out", tmp_path / "out", "--config", tmp_path / "c.toml", *HERE)
    assert last.startswith("3 rows, 1 change, 1 part")
    assert "idu=1,table=usr,schema=hr" in elements_of(tmp_path / "out")
    assert outcomes_of(tmp_path / "out")[2]["reason"] == "loopback"
    (tmp_path / "d.toml").write_text("[publisher]\nhandle_future_events = true\n")
    expect_refused(
        78, "handle_future_events", "convert", file, "--out", tmp_path / "no", "--config", tmp_path / "d.toml"
    )


def test_a_conversion_that_is_complete_says_so_and_is_not_done_again(tmp_path: Path, schema: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [log_row(1), log_row(2, table_key="idu=2")])
    told: list[str | Path] = ["convert", file, "--schema", schema, "--out", tmp_path / "out", *HERE]
    ok(*told)
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = eventlog(*told)
    assert (again.returncode, again.stdout) == (
        0,
        "2 rows, 2 changes, 1 part (S 2).\n",
    )
    assert "holds this conversion already; it is complete and is as it was." in again.stderr
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == made
    # Another order, or another input, is another conversion.
    assert eventlog(*told, "--part-events", "1").returncode == 64
    ok(*told, "--overwrite")
    write_lines(file, [log_row(1)])
    assert "is not empty" in eventlog(*told).stderr


def test_a_log_that_went_on_is_another_conversion(tmp_path: Path) -> None:
    url = database(tmp_path)
    told: list[str | Path] = ["convert", "database", url, "--out", tmp_path / "out", *HERE]
    ok(*told, "--mark")
    expect_refused(0, "is complete", *told, "--mark")
    run(tmp_path, "INSERT INTO usr VALUES (3, 'Eve', NULL)")
    assert eventlog(*told, "--mark").returncode == 64


def test_what_a_policy_hides_of_a_key_is_in_no_reason(tmp_path: Path, schema: Path) -> None:
    (tmp_path / "eventlog.toml").write_text(
        '[[output]]\nsink = "stdout"\n[[output.steps]]\ndo = "hash"\nclasses = ["usr"]\nattributes = ["idu"]\n'
        'secret = "a secret of tests only"\n'
    )
    keys = ["idu=70401", "idu='70402", "idu=70403+x=1", "70404", 'idu="70405', "idu=1+idu=70406", "x=70407"]
    rows = [log_row(number, table_key=key) for number, key in enumerate(keys, 1)]
    file = write_lines(tmp_path / "a.jsonl", [*rows, log_row(8, event_type=5, table_key="idu=70408")])
    hidden: list[str | Path] = ["--schema", schema, "--config", tmp_path / "eventlog.toml"]
    done = eventlog("convert", file, *hidden, "--out", tmp_path / "out", *HERE)
    notes = [outcome["note"] or "" for outcome in outcomes_of(tmp_path / "out")]
    assert done.returncode == 0
    assert [("7040" in text) for text in (done.stdout, done.stderr, *notes, elements_of(tmp_path / "out"))] == [
        False
    ] * 11
    assert sum("table_key (hidden)" in note for note in notes) == 6
    eventlog("convert", file, "--schema", schema, "--config", "/dev/null", "--out", tmp_path / "open", *HERE)
    assert sum("7040" in (outcome["note"] or "") for outcome in outcomes_of(tmp_path / "open")) == 6


DONE = [(1, "S"), (2, "W"), (3, "S")]


def test_who_looked_at_the_output_first_marks_by_the_same_command(tmp_path: Path) -> None:
    url, out = database(tmp_path), tmp_path / "out"
    first = ok("convert", "database", url, "--out", out, *HERE)
    made = files_of(out)
    expect_refused(64, "is not empty", "convert", "database", url, "--out", out, "--part-events", "7", "--mark", *HERE)
    assert statuses(tmp_path) == [(1, "N"), (2, "N"), (3, "N")]
    done = eventlog("convert", "database", url, "--out", out, "--mark", *HERE)
    assert (done.returncode, done.stdout) == (0, first)
    assert "was complete and is as it was; its rows are marked now." in done.stderr
    assert statuses(tmp_path) == DONE
    assert files_of(out) == {name: content for name, content in made.items() if name != UNMARKED}


def test_marking_that_was_interrupted_is_finished_and_its_output_never_made_anew(tmp_path: Path) -> None:
    url, out = database(tmp_path), tmp_path / "out"
    ok("convert", "database", url, "--out", out, *HERE)
    made = files_of(out)
    note = (out / UNMARKED).read_text()
    (out / UNMARKED).write_text(f"{note}reserved\n")  # as an interruption leaves it
    for more in (["--overwrite"], ["--overwrite", "--part-events", "7", "--mark"]):  # would lose what it has
        expect_refused(64, "were being marked", "convert", "database", url, "--out", out, *more, *HERE)
    (out / UNMARKED).write_text(note)
    ok("convert", "database", url, "--out", out, "--mark", *HERE)
    assert statuses(tmp_path) == DONE
    assert files_of(out) == {name: content for name, content in made.items() if name != UNMARKED}
    expect_refused(0, "it is complete and is as it was", "convert", "database", url, "--out", out, "--mark", *HERE)
    assert files_of(out) == {name: content for name, content in made.items() if name != UNMARKED}


def test_output_of_which_no_row_is_marked_can_be_made_anew(tmp_path: Path) -> None:
    url, out = database(tmp_path), tmp_path / "out"
    ok("convert", "database", url, "--out", out, *HERE)
    run(tmp_path, "INSERT INTO usr VALUES (7, 'Eve', NULL)")
    assert ok("convert", "database", url, "--out", out, "--overwrite", "--mark", *HERE).startswith("4 rows, ")
    assert not (out / UNMARKED).exists()
    assert {letter for _, letter in statuses(tmp_path)} == {"S", "W"}
