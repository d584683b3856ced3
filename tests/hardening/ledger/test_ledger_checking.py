"""The checker finds what is wrong, and nothing where all is well."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from tests.hardening.ledger.book import Ledger, Op, Place, Version
from tests.hardening.ledger.checking import FIELDS, IMAGES, READ_BACK, TRACKED, Finding, LogRow, Seen, Shown, check
from tests.hardening.ledger.figures import MUTANTS, Mutant, told, write
from tests.hardening.ledger.mutants import wrong
from tests.hardening.ledger.outputs import Growing, rising, same_numbers
from tests.hardening.ledger.publishers import has_locked
from tests.hardening.ledger.runs import Cell, Run
from tests.hardening.quantity import scaled

RUNS = 20
ONE: Place = (FIELDS, 1)
BACK: Place = (READ_BACK, 1)
WHOLE: Place = (IMAGES, 1)


@pytest.fixture(scope="module")
def kept() -> Iterator[list[Mutant]]:
    """Publishers with a fault; how many there were is kept of as many as the full run has."""
    found: list[Mutant] = []
    yield found
    if scaled(1) >= RUNS and len(found) == 2 * scaled(1):
        write(told(found), MUTANTS)


class History:
    """A ledger, the log that triggers would have left of it, and what a reader should find."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.log: list[LogRow] = []
        self.seen: list[Seen] = []

    def add(self, place: Place, op: Op, number: int, *, letter: str = "S", reason: str = "") -> None:
        """One version, published by itself."""
        text = "" if op == "D" else f"text {number}"
        self.ledger.keep([Version(place=place, number=number, op=op, text=text)])
        back, one_row = place[0] == READ_BACK, place[0] != FIELDS
        kind = {"I": 5 if one_row else 1, "U": 6 if one_row else 2, "D": 4}[op]
        fields = [(None, None)] if one_row or op == "D" else [("version", str(number)), ("note", text)]
        for column, value in fields:
            record = len(self.log) + 1
            row = LogRow(
                record=record, letter=letter, kind=kind, place=place, column=column, value=value, reason=reason
            )
            self.log.append(row)
        if reason in ("vanished", "superseded"):
            return
        told: Op = "U" if back and op == "I" else op
        said = (None, None) if op == "D" else (number, text)
        self.seen.append(Seen(place=place, op=told, record=len(self.log), number=said[0], text=said[1]))

    def found(self, seen: Sequence[Seen] | None = None, **facts: object) -> list[str]:
        """What is wrong when a reader finds this."""
        shown = replace(Shown(output="it", seen=self.seen if seen is None else seen), **facts)
        return [one.what for one in check(self.ledger, self.log, [shown], {})]


def simple() -> History:
    """An object of each table that comes, changes, goes and comes again."""
    history = History()
    steps: Sequence[Op] = ("I", "U", "U", "D", "I", "U")
    for number, op in enumerate(steps, 1):
        for place in (ONE, BACK, WHOLE):
            history.add(place, op, number)
    return history


def random_history(seed: int) -> History:
    """Many objects whose changes are mixed."""
    history, dice = History(), random.Random(seed)
    versions: Counter[Place] = Counter()
    for _ in range(200):
        place = (dice.choice(TRACKED), dice.randrange(20))
        versions[place] += 1
        history.add(place, "I" if versions[place] == 1 else "U", versions[place])
    return history


def test_where_all_is_well_nothing_is_found() -> None:
    assert simple().found() == []
    assert random_history(1).found() == []


@pytest.mark.parametrize("kind", ["drop", "double", "swap"])
def test_one_wrong_change_in_a_run_is_found_each_time(kind: str) -> None:
    for seed in range(RUNS):
        history = random_history(seed)
        shown = wrong(Shown(output="it", seen=history.seen), kind, random.Random(seed))
        found = check(history.ledger, history.log, [shown], {})
        assert found, f"seed {seed}"
        assert {"drop": "lost", "double": "twice", "swap": "out of order"}[kind] in {one.what for one in found}
        assert all(one.place and one.version and one.record and one.letter for one in found), found


def test_a_reader_who_knows_repeats_is_told_of_none() -> None:
    history = simple()
    assert history.found([*history.seen, *history.seen[-4:]], repeats=True) == []
    assert "twice" in history.found([*history.seen, *history.seen[-4:]])


def test_what_a_row_ended_as_has_to_be_right() -> None:
    history = simple()
    history.add((FIELDS, 2), "I", 1, letter="N")
    history.add((FIELDS, 3), "I", 1, letter="E")
    assert sorted(history.found()) == ["still waits", "wrong letter"]
    assert history.found(answers={history.log[-1].record: "E"}) == ["still waits"]


def test_a_row_that_vanished_or_was_superseded_is_accounted_for_by_a_later_one() -> None:
    history = History()
    history.add(BACK, "I", 1, letter="W", reason="vanished")
    history.add(BACK, "D", 2)
    history.add(BACK, "I", 3, reason="superseded")
    history.add(BACK, "U", 4)
    assert history.found() == []
    assert history.found(history.seen[:-1]) == ["lost", "lost", "wrong value"]


def test_a_last_version_that_the_receiver_refused_is_not_to_be_told() -> None:
    history = History()
    history.add(BACK, "I", 1)
    history.add(BACK, "U", 2, letter="E", reason="refused")
    told = history.seen[:-1]
    assert history.found(told, answers={2: "E"}) == []
    assert history.found(told) == ["wrong letter"]


def test_a_row_that_was_read_back_when_the_object_was_there_again_is_in_order() -> None:
    history = History()
    steps: Sequence[Op] = ("I", "D", "I")
    for number, op in enumerate(steps, 1):
        history.add(BACK, op, number)
    seen = [replace(history.seen[0], number=3, text="text 3"), *history.seen[1:]]
    assert history.found(seen) == []
    assert history.found([*seen[:2], replace(seen[2], number=1)]) == ["out of order", "wrong value"]


def test_values_and_strangers_are_seen() -> None:
    history = simple()
    assert history.found([replace(history.seen[0], text="other"), *history.seen[1:]]) == ["wrong value"]
    assert history.found([*history.seen, Seen(place=(FIELDS, 9), op="I", record=99)]) == ["never committed"]
    assert history.found([*history.seen, Seen(place=ONE, op="I", record=99)]) == ["never committed"]


def test_what_was_asked_for_again_comes_once_more_and_no_order_is_promised() -> None:
    history = simple()
    again = {1: 1, 2: 1}
    shown = Shown(output="it", seen=[*history.seen, history.seen[0]])
    assert check(history.ledger, history.log, [shown], again) == []
    once = check(history.ledger, history.log, [Shown(output="it", seen=history.seen)], again)
    assert [one.what for one in once] == ["lost"]
    history.log[:2] = [replace(row, letter="E") for row in history.log[:2]]
    refused = Shown(output="it", seen=history.seen, answers={2: "E"})
    assert check(history.ledger, history.log, [refused], again) == []


def test_triggers_that_log_too_little_or_too_much_are_seen() -> None:
    history = simple()
    history.ledger.keep([Version(place=(FIELDS, 5), number=1, op="I", text="x")])
    history.log.append(LogRow(record=90, letter="S", kind=4, place=ONE))
    history.log.append(LogRow(record=91, letter="S", kind=4, place=(FIELDS, 6)))
    assert sorted(history.found()) == ["never committed, in the log"] * 2 + ["not captured"]


def test_numbers_that_fall_or_are_given_twice_are_seen(tmp_path: Path) -> None:
    history = simple()
    assert rising("it", ["1", "2", "3"]) == []
    assert [one.what for one in rising("it", ["1", "3", "2", "3"])] == ["numbers fell"]
    twice = same_numbers("it", [("1", history.seen[0]), ("2", history.seen[1]), ("1", history.seen[2])])
    assert [one.what for one in twice] == ["a number was given twice"]
    growing = Growing(tmp_path, "*.csv")
    for name in ("2.csv", "3.csv"):
        (tmp_path / name).touch()
        growing.look()
    assert growing.fell("it") == []
    (tmp_path / "1.csv").touch()
    assert [one.what for one in growing.fell("it")] == ["numbers fell"]


def test_a_finding_names_everything() -> None:
    found = Finding(what="lost", output="it", place=ONE, version=3, record=7, letter="S", why="nobody knows")
    assert str(found) == "lost in it thing 1 version 3 (row 7 S): nobody knows"


@pytest.mark.parametrize("kind", ["drop", "double"])
@pytest.mark.parametrize("seed", range(scaled(1)))
def test_a_publisher_that_does_one_thing_wrong_is_found(
    sqlite: Engine, tmp_path: Path, kept: list[Mutant], kind: str, seed: int
) -> None:
    cell = Cell(outputs=["XDS files"], handovers=["none"], seed=seed, objects=30)
    run = Run(cell, sqlite, tmp_path)
    given = f"{kind!r}, {str(tmp_path / 'done')!r}, {seed}"
    run.program = f"from tests.hardening.ledger.mutants import faulty\nfaulty({given})"
    report = run.report()
    assert (tmp_path / "done").exists()
    what = {one.what for one in report.findings}
    kept.append(Mutant(kind=kind, seed=seed, found=bool(what & {"lost", "twice"}), versions=len(report.ledger)))
    assert kept[-1].found, f"{cell}: {report}"


WRITING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
print("free", flush=True)
sys.stdin.readline()
"""


def test_the_lock_of_a_process_on_an_sqlite_file_is_told_from_that_of_another_one(tmp_path: Path) -> None:
    database = tmp_path / "log.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as ours:
        ours.execute("PRAGMA journal_mode=wal")
        ours.execute("CREATE TABLE t (a INTEGER)")
        with Popen([sys.executable, "-c", WRITING, str(database)], stdin=PIPE, stdout=PIPE, text=True) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "locked\n"
            assert (has_locked(other.pid, database), has_locked(os.getpid(), database)) == (True, False)
            print(file=other.stdin, flush=True)
            assert other.stdout.readline() == "free\n"
            ours.execute("BEGIN IMMEDIATE")
            assert (has_locked(other.pid, database), has_locked(os.getpid(), database)) == (False, True)
            print(file=other.stdin, flush=True)
