"""What an operator does with outputs that lag: they are paused, bounded, and drained; tests/publisher/test_outputs.py has the rest."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.admin.outputs import pause, resume, standings
from eventlog.config.settings import Config, PublisherConfig
from eventlog.core.errors import SinkError
from eventlog.core.seams import Tenure
from eventlog.daemon.post import Post
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.vitals import PublisherHealth
from eventlog.publisher import flow, memory
from eventlog.publisher.books import Turn
from eventlog.publisher.consumer import Consumer
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.log.flow import OutputLag
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.lagging import Outputs, all_settled, config, lagging, marks_of, owed, places, write
from tests.integration.publishing import in_thread, publish_all, site, until

POLLING = PublisherConfig()


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def log(request: pytest.FixtureRequest) -> LogTable:
    engine: Engine = request.getfixturevalue(request.param)
    return site(engine)


@pytest.mark.parametrize("until_empty", [True, False])
def test_where_all_outputs_are_paused_all_waits(log: LogTable, tmp_path: Path, until_empty: bool) -> None:
    outputs = Outputs("near", "far")
    known = Log(log.engine, log.names)
    for name in ("near", "far"):
        pause(known, name, ["near", "far"], by="me")
    write(log, 1, 3)
    if until_empty:
        with Publisher(config(log, tmp_path), outputs=outputs.made()) as publisher:
            for _ in publisher.rounds(until_empty=True):
                pass
            assert set(log.statuses().values()) == {"N"}
            resume(known, POLLING, "near", ["near", "far"])
            for _ in publisher.rounds(until_empty=True):
                pass
            assert outputs["near"].numbers == [1, 2, 3]
            assert lagging(log) == ["far"]
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        time.sleep(0.5)
        assert outputs["far"].numbers == []
        for name in ("near", "far"):
            resume(known, POLLING, name, ["near", "far"])
        until(all_settled(log, 3), "all is settled")
    assert outputs["near"].numbers == outputs["far"].numbers == [1, 2, 3]


@pytest.mark.in_turn
@pytest.mark.parametrize("when", ["wait", "pause"])
def test_an_output_is_not_further_behind_than_it_may(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: Literal["wait", "pause"]
) -> None:
    monkeypatch.setattr("eventlog.daemon.behind.LOOK_SECONDS", 0.0)
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 30)
    with in_thread(Publisher(bounded(log, tmp_path, when), outputs=outputs.made())):
        if when == "wait":
            until(lambda: owed(log, "far") > 7 if lagging(log) else False, "far is too far behind")
            time.sleep(1.5)  # turns that have begun are finished
            near = outputs["near"].numbers
            time.sleep(1.0)
            assert outputs["near"].numbers == near, "all others wait for it"
            assert len(near) < 30
        else:
            until(lambda: outputs["near"].numbers == [*range(1, 31)], "near goes on")
            until(lambda: far_of(log) == ("paused", 30), "far is paused")
            resume(Log(log.engine, log.names), POLLING, "far", ["near", "far"])
        outputs["far"].away = False
        until(all_settled(log, 30), "all is settled")
    assert outputs["far"].numbers == [*range(1, 31)] == outputs["near"].numbers


@pytest.mark.parametrize("log", ["sqlite"], indirect=True)  # it asks of nothing that others do not ask of each database
def test_who_resumes_an_output_lets_it_catch_up(log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes, and whoever publishes then; it is paused again by what comes after that."""
    monkeypatch.setattr("eventlog.daemon.behind.LOOK_SECONDS", 0.0)
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


def test_who_looks_while_somebody_resumes_an_output_knows_that(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is further behind than its bound, and paused again."""
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 30)
    with in_thread(Publisher(bounded(log, tmp_path, "pause"), outputs=outputs.made())):
        until(lambda: far_of(log) == ("paused", 30), "far is paused")
    read = memory.read_memory

    def resumed_first(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(flow, "read_memory", read)
        resume(Log(log.engine, log.names), POLLING, "far", ["near", "far"])
        return read(*arguments, **options)

    monkeypatch.setattr(flow, "read_memory", resumed_first)
    with log.engine.connect() as connection:
        lag = flow.read_distances(connection, Log(log.engine, log.names), POLLING)["far"]
    assert lag.paused or lag.resumed is not None


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


def test_what_fails_for_good_while_the_others_lag_ends_nobody(sqlite: Engine, tmp_path: Path) -> None:
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 5)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())) as publisher:
        until(lambda: outputs["near"].numbers == [*range(1, 6)], "near has all")
        outputs["near"].away = outputs["near"].for_good = True
        write(log, 6, 9)
        until(lambda: publisher.vitals.reading().failures.get("sink"), "nobody is left")
        outputs["far"].away = False
        until(lambda: outputs["far"].numbers == [*range(1, 10)], "far goes on alone")
        outputs["near"].away = False
        until(all_settled(log, 9), "all is settled")
    assert outputs["near"].numbers == [*range(1, 10)]


def test_who_waits_for_one_that_lags_shows_that_it_goes_on(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.daemon.behind.LOOK_SECONDS", 0.04)
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


def test_where_every_output_fails_for_good_the_publisher_ends(sqlite: Engine, tmp_path: Path) -> None:
    log, outputs = site(sqlite), Outputs("near", "far")
    for receiver in outputs.receivers.values():
        receiver.away = receiver.for_good = True
    write(log, 1, 2)
    with (
        Publisher(config(log, tmp_path), outputs=outputs.made()) as publisher,
        pytest.raises(SinkError, match="The receiver is away"),
    ):
        for _ in publisher.rounds():
            pass


@pytest.mark.parametrize("form", ["xds", "change-tables"])
def test_a_file_in_the_place_of_a_folder_holds_up_nobody(
    sqlite: Engine, tmp_path: Path, form: Literal["xds", "change-tables"]
) -> None:
    log = site(sqlite)
    (tmp_path / "far").touch()
    near = FilesOutput(name="near", path=str(tmp_path / "near"))
    far = FilesOutput(name="far", path=str(tmp_path / "far"), format=form, file_format="json")
    write(log, 1, 4)
    with in_thread(Publisher(replace(config(log, tmp_path), output=(near, far)))):
        until(lambda: lagging(log) == ["far"] and owed(log, "far") == 4, "the others go on")
        (tmp_path / "far").unlink()
        until(all_settled(log, 4), "all is settled")
    assert [*(tmp_path / "far").rglob("*.xml" if form == "xds" else "*.json")]


def test_what_ends_an_output_that_all_wait_for_ends_the_publisher(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.daemon.behind.LOOK_SECONDS", 0.0)
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 30)

    turn = Consumer.turn

    def broken(consumer: Consumer, tenure: Tenure) -> Turn:
        if consumer.name == "far":
            raise RuntimeError("a fault of ours")
        return turn(consumer, tenure)

    def work(publisher: Publisher) -> None:
        for _ in publisher.rounds():
            pass

    with Publisher(bounded(log, tmp_path, "wait"), outputs=outputs.made()) as publisher:
        working = ThreadPoolExecutor(1).submit(work, publisher)
        until(lambda: any(line.held_up for line in publisher._lines), "all wait for far")
        monkeypatch.setattr(Consumer, "turn", broken)
        with pytest.raises(RuntimeError, match="a fault of ours"):
            working.result(60)


def bounded(log: LogTable, folder: Path, when: Literal["wait", "pause"]) -> Config:
    """A publisher whose output far may be seven rows behind."""
    settings = config(log, folder, query_limit=5)
    far = FilesOutput(path=str(folder / "far"), name="far", max_behind_rows=7, when_behind=when)
    return replace(settings, output=(*settings.output, far))


def far_of(log: LogTable) -> tuple[str, int]:
    """How far stands, and how many rows it is behind."""
    found, *_ = standings(Log(log.engine, log.names), POLLING, ["far"])  # then others that have not settled yet
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


def test_outputs_that_are_paused_and_renamed_stay_paused(sqlite: Engine, tmp_path: Path) -> None:
    log, outputs = site(sqlite), Outputs("near", "far")
    known = Log(log.engine, log.names)
    for name in outputs.receivers:
        pause(known, name, [*outputs.receivers], by="me")
    near, far = outputs.made()
    renamed = replace(far, name="feed", former_names=("far",))
    write(log, 1, 3)
    with in_thread(Publisher(config(log, tmp_path), outputs=[near, renamed])):
        until(
            lambda: {name for name, one in places(log).items() if one.paused} == {"near", "feed"}, "it is still paused"
        )
        assert resume(known, POLLING, "near", ["near", "feed"])
        until(lambda: outputs["near"].numbers == [1, 2, 3], "the other goes on")
        assert outputs["far"].numbers == []
        assert resume(known, POLLING, "feed", ["near", "feed"])
        until(all_settled(log, 3), "all is settled")
    assert outputs["far"].numbers == [1, 2, 3]
