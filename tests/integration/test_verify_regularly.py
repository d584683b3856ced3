"""`verify.every`: the publisher compares beside publishing, and status, check, metrics and the page tell what it found."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.care.proofs import read_proofs
from eventlog.check.examine import check
from eventlog.config.settings import load
from eventlog.core.proofs import LastProof
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import library_journal
from eventlog.daemon.publisher import Publisher
from eventlog.sources.marks import VERIFIED
from eventlog.web.metrics import metrics
from eventlog.web.open_page import open_page
from tests.integration.publishing import Process, in_thread, until
from tests.integration.test_verify import Circle
from tests.web.visiting import Visit

EVERY_SECOND = """
[verify]
every = "1s"
outputs = ["lake"]
mirrors = true
"""

STUCK = """
import os, time
from eventlog.verify.proof import Proving
run, made = Proving.run, []
def stuck(proving):
    made.append(proving)
    if len(made) > 1:
        os.write(2, b'comparing\\n')
        time.sleep(600)
    return run(proving)
Proving.run = stuck
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def source(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


def last(engine: Engine) -> LastProof | None:
    """The last proof of the one table, as the mark has it."""
    marks = sa.table("event_log_mark", sa.column("name"), sa.column("value"))
    with engine.connect() as connection:
        text = connection.scalar(sa.select(marks.c.value).where(marks.c.name == VERIFIED))
    found = read_proofs(text)
    return found[0] if found else None


def equal_since(engine: Engine, at: float) -> Callable[[], bool]:
    def asked() -> bool:
        found = last(engine)
        return found is not None and found.equal and (found.at or 0.0) > at

    return asked


def differing(engine: Engine) -> int:
    found = last(engine)
    return 0 if found is None else found.differing


def status_of(circle: Circle) -> dict[str, Any]:
    code, out = circle.command("status", "--json")
    assert code == 0, out
    [told] = json.loads(out)["proofs"]
    found: dict[str, Any] = told
    return found


@pytest.mark.in_turn
def test_a_difference_is_found_told_and_gone_after_its_repair(
    source: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(source, source, tmp_path, capsys, key="number", more=EVERY_SECOND)
    circle.write(150)
    circle.publish()
    config, vitals = load(circle.file, {}), PublisherHealth(watched=True)
    page = open_page("127.0.0.1:0", config, library_journal(), vitals)
    try:
        with in_thread(Publisher(config, vitals=vitals)):
            until(equal_since(source, 0.0), "the first proof")
            assert status_of(circle)["equal"] is True
            circle.plant(12)
            until(lambda: differing(source) == 12, "the differences are found")
            told = status_of(circle)
            assert (told["output"], told["table"], told["equal"], told["error"]) == ("lake", "usr", False, "")
            assert sum(told[kind] for kind in ("missing", "extra", "value", "double")) == 12
            assert "usr at lake: 12 objects differ" in circle.command("status")[1]
            said = [point for point in check(lambda: config) if point.name == "verify"]
            assert [str(point.level) for point in said] == ["warning"]
            assert "12 objects differ" in said[0].said
            text = metrics(vitals.reading()).decode()
            assert 'eventlog_verify_equal{output="lake",table="usr"} 0.0' in text
            assert f'eventlog_verify_differences{{kind="missing",output="lake",table="usr"}} {told["missing"]}' in text
            until(lambda: "12 objects differ" in Visit(page).get("/").body, "the page shows it")

            code, told = circle.verify("--output", "lake", "--mirrors", "--repair")
            assert (code, told["repaired"]) == (1, 12)
            repaired = time.time()
            until(lambda: _applied(circle), "what is repaired is published")
            until(equal_since(source, repaired), "the next proof is equal")
            said = [point for point in check(lambda: config) if point.name == "verify"]
            assert [str(point.level) for point in said] == ["ok"]
    finally:
        page.close()


def _applied(circle: Circle) -> bool:
    circle.apply()
    return differing(circle.source) == 0


def test_a_kill_during_a_proof_leaves_the_last_result(
    postgresql: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = postgresql
    circle = Circle(source, source, tmp_path, capsys, key="number", more=EVERY_SECOND)
    circle.write(40)
    circle.publish()
    options = ("--config", str(circle.file))
    with Process(source, tmp_path / "killed", *options, program=STUCK, out=False) as process:
        process.wait_for("verified")
        until(lambda: b"comparing" in process.said.read_bytes(), "the second proof has begun")
        before = last(source)
        assert before is not None
        assert before.equal
        process.tell(signal.SIGKILL)
        process.end()
    assert last(source) == before
    with Process(source, tmp_path / "again", *options, out=False) as process:
        process.wait_for("verified")
        until(equal_since(source, before.at or 0.0), "another publisher goes on")
        began = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began < 30


def test_of_two_publishers_one_compares(sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="number", more=EVERY_SECOND)
    circle.write(40)
    circle.publish()
    options = ("--config", str(circle.file))
    with Process(sqlite, tmp_path / "one", *options, out=False) as first:
        first.wait_for("verified")
        with Process(sqlite, tmp_path / "two", *options, out=False) as second:
            second.wait_for("standing_by")
            first.wait_for("verified", len([one for one in first.actions() if one == "verified"]) + 1)
            assert "verified" not in second.actions()
            first.stop()
            second.wait_for("verified")
            second.stop()


def test_what_cannot_be_compared_is_said_once_and_publishing_goes_on(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="number", more=EVERY_SECOND)
    circle.write(20)
    circle.publish()
    with sqlite.begin() as connection:
        connection.exec_driver_sql("DROP TABLE usr__mirror")
    with Process(sqlite, tmp_path / "out", "--config", str(circle.file), out=False) as process:
        failed = process.wait_for("verify_failed")
        assert "The output has no table for it" in str(failed["error"])
        circle.write(5)
        process.wait_for("published")
        process.stop()
    found = last(sqlite)
    assert found is not None
    assert (found.at, found.equal) == (None, False)
    said = [point for point in check(lambda: load(circle.file, {})) if point.name == "verify"]
    assert [(str(point.level), "could not be compared" in point.said) for point in said] == [("warning", True)]
    assert "could not be compared" in circle.command("status")[1]
