"""What an operator does with outputs that lag: they are paused, bounded, and drained; tests/publisher/test_outputs.py has the rest."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from typing import Literal

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care.outputs import list_outputs, resume
from eventlog.config.settings import Config, PublisherConfig
from eventlog.core.errors import SinkError
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.log_session import Post
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.log.flow import OutputLag
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.lagging import Outputs, all_settled, config, lagging, marks_of, owed, write
from tests.integration.publishing import in_thread, publish_all, site, until

POLLING = PublisherConfig()


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    return site(sqlite)


@pytest.mark.in_turn
@pytest.mark.parametrize("when", ["wait", "pause"])
def test_an_output_is_not_further_behind_than_it_may(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: Literal["wait", "pause"]
) -> None:
    monkeypatch.setattr("eventlog.daemon.lag_limits.LOOK_SECONDS", 0.0)
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 30)
    with in_thread(Publisher(bounded(log, tmp_path, when), outputs=outputs.made())):
        if when == "wait":
            until(lambda: owed(log, "far") > 7 if lagging(log) else False, "far is too far behind")
            time.sleep(0.6)  # turns that have begun are finished
            near = outputs["near"].numbers
            time.sleep(0.4)
            assert outputs["near"].numbers == near, "all others wait for it"
            assert len(near) < 30
        else:
            until(lambda: outputs["near"].numbers == [*range(1, 31)], "near goes on")
            until(lambda: far_of(log) == ("paused", 30), "far is paused")
            resume(Log(log.engine, log.names), POLLING, "far", ["near", "far"])
        outputs["far"].away = False
        until(all_settled(log, 30), "all is settled")
    assert outputs["far"].numbers == [*range(1, 31)] == outputs["near"].numbers


def test_who_resumes_an_output_lets_it_catch_up(log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes, and whoever publishes then; it is paused again by what comes after that."""
    monkeypatch.setattr("eventlog.daemon.lag_limits.LOOK_SECONDS", 0.0)
    looks: list[str] = []
    lags = Post.lags

    def counted(post: Post) -> Mapping[str, OutputLag]:
        looks.append("")
        return lags(post)

    def several_looks() -> None:
        seen = len(looks)
        until(lambda: len(looks) > seen + 2, "the publisher looks again and again")

    monkeypatch.setattr(Post, "lags", counted)
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 30)
    settings = bounded(log, tmp_path, "pause")
    with in_thread(Publisher(settings, outputs=outputs.made())):
        until(lambda: far_of(log) == ("paused", 30), "far is paused")
        resume(Log(log.engine, log.names), POLLING, "far", ["near", "far"])
        until(lambda: far_of(log) == ("failing", 30), "far is let catch up")
        several_looks()
        assert far_of(log) == ("failing", 30)
    with in_thread(Publisher(settings, outputs=outputs.made())):
        several_looks()
        assert far_of(log) == ("failing", 30), "whoever publishes then knows it as well"
        write(log, 31, 37)
        until(lambda: owed(log, "far") == 37, "it is further behind, by its bound")
        several_looks()
        assert far_of(log) == ("failing", 37)
        write(log, 38, 38)
        until(lambda: far_of(log) == ("paused", 38), "far is paused, for it is further behind than that")
        resume(Log(log.engine, log.names), POLLING, "far", ["near", "far"])
        outputs["far"].away = False
        until(all_settled(log, 38), "all is settled")
        until(lambda: not lagging(log), "far is in step")
        assert not [name for name in marks_of(log) if name.startswith("resumed")]
        outputs["far"].away = True
        write(log, 39, 48)
        until(lambda: far_of(log) == ("paused", 10), "its bound is what it was")


def test_a_receiver_that_can_never_be_reached_holds_up_nobody(sqlite: Engine, tmp_path: Path) -> None:
    """Such as one whose certificate is not right: who waits for it waits for somebody who mends that."""
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = outputs["far"].for_good = True
    write(log, 1, 10)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 11)], "near has all")
        outputs["far"].away = False
        until(all_settled(log, 10), "all is settled")
    assert outputs["far"].numbers == [*range(1, 11)]


def test_who_waits_for_one_that_lags_shows_that_it_goes_on(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.daemon.lag_limits.LOOK_SECONDS", 0.04)
    log, outputs, signs = site(sqlite), Outputs("near", "far"), [1]
    outputs["far"].away = True
    vitals = PublisherHealth(on_move=lambda: signs.append(1))
    publisher = Publisher(config(log, tmp_path), outputs=outputs.made(answers=["far"]), vitals=vitals)

    def work() -> None:
        with publisher:
            for _ in publisher.rounds():
                pass

    write(log, 1, 6)
    working = ThreadPoolExecutor(1).submit(work)
    until(lambda: outputs["near"].numbers == [*range(1, 7)], "near has all")
    gate = outputs["far"].gate = Semaphore(0)
    outputs["far"].away = False
    until(lambda: outputs["far"].waits, "far hangs")
    publisher.stop()
    until(lambda: vitals.reading().state == "stopping", "the publisher waits for it")
    for _ in range(3):
        signs.clear()
        gate.release()
        until(lambda: signs, "a document that it takes is a sign")
    gate.release(100)
    working.result(60)
    assert outputs["far"].numbers[:3] == [1, 2, 3]


def bounded(log: LogTable, folder: Path, when: Literal["wait", "pause"]) -> Config:
    """A publisher whose output far may be seven rows behind."""
    settings = config(log, folder, query_limit=5)
    far = FilesOutput(path=str(folder / "far"), name="far", max_behind_rows=7, when_behind=when)
    return replace(settings, output=(*settings.output, far))


def far_of(log: LogTable) -> tuple[str, int]:
    """How far stands, and how many rows it is behind."""
    found, *_ = list_outputs(Log(log.engine, log.names), POLLING, ["far"])  # then others that have not settled yet
    return found.state, found.rows


def test_one_run_ends_when_who_lagged_has_all(sqlite: Engine, tmp_path: Path) -> None:
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 12)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 13)], "near has all")
    with (
        Publisher(config(log, tmp_path), outputs=outputs.made()) as publisher,
        pytest.raises(SinkError, match="The receiver is away"),
    ):
        for _ in publisher.rounds(until_empty=True):
            pass
    outputs["far"].away = False
    publish_all(config(log, tmp_path), outputs=outputs.made())
    assert list(log.statuses().values()) == ["S"] * 12
    assert outputs["far"].numbers == [*range(1, 13)]
    assert lagging(log) == []
