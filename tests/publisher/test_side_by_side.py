"""The publisher on the journal: an output that fails delays itself only, and catches up without disorder."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.care.rows import EVERYTHING, hold, release
from eventlog.core.errors import MachineError, OccupiedError, SourceError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.report import Report
from eventlog.publisher.journal_view import View
from eventlog.publisher.tables import OnTheWay
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.lagging import Outputs, all_settled, config, lagging, left_at_rest, write
from tests.integration.publishing import Process, in_thread, site, until


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def log(request: pytest.FixtureRequest) -> LogTable:
    engine: Engine = request.getfixturevalue(request.param)
    return site(engine)


def test_who_is_away_delays_nobody_and_catches_up(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 30)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 31)], "near has all")
        assert outputs["far"].numbers == []
        assert lagging(log) == ["far"]
        assert set(log.statuses().values()) == {"N"}, "no row is finished that somebody is owed"
        write(log, 31, 40)
        until(lambda: outputs["near"].numbers == [*range(1, 41)], "near goes on")
        outputs["far"].away = False
        until(all_settled(log, 40), "all is settled")
        until(lambda: not lagging(log), "far is in step again")
        write(log, 41, 45)
        until(all_settled(log, 45), "all goes on")
    assert outputs["far"].numbers == [*range(1, 46)]
    assert outputs["near"].numbers == [*range(1, 46)]
    assert not left_at_rest(log)


def test_who_comes_after_a_publisher_that_died_goes_on_for_each_output(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 12)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 13)], "near has all")
    outputs["far"].refuses_to_open = True
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        write(log, 13, 20)
        until(lambda: outputs["near"].numbers == [*range(1, 21)], "near goes on")
        assert lagging(log) == ["far"]
        outputs["far"].refuses_to_open = outputs["far"].away = False
        until(all_settled(log, 20), "all is settled")
    assert outputs["far"].numbers == [*range(1, 21)]


def test_who_cannot_be_opened_is_left_behind(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].refuses_to_open = True
    write(log, 1, 7)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 8)], "near has all")
        outputs["far"].refuses_to_open = False
        until(all_settled(log, 7), "all is settled")
    assert outputs["far"].numbers == [*range(1, 8)]


def test_who_recovers_does_not_wait_for_who_fails_later(log: LogTable, tmp_path: Path) -> None:
    """What is in step fails while the other one catches up: that one goes ahead then."""
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 10)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 11)], "near has all")
        outputs["near"].away = True
        write(log, 11, 20)
        outputs["far"].away = False
        until(lambda: outputs["far"].numbers == [*range(1, 21)], "far has all")
        outputs["near"].away = False
        until(all_settled(log, 20), "all is settled")
    assert outputs["near"].numbers == [*range(1, 21)]


@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_what_a_receiver_wants_again_delays_nobody(log: LogTable, tmp_path: Path, on_retry: str) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].asks = {(3,)}
    write(log, 1, 20)
    settings = config(log, tmp_path, on_retry=on_retry, retry_first=0.1, retry_longest=0.2)
    with in_thread(Publisher(settings, outputs=outputs.made(answers=["far"]))):
        until(lambda: outputs["near"].numbers == [*range(1, 21)], "near has all")
        others = [1, 2] if on_retry == "stop" else [number for number in range(1, 21) if number % 7 != 3]
        until(lambda: outputs["far"].numbers == others, "far has what it may")
        outputs["far"].asks = set()
        until(all_settled(log, 20), "all is settled")
    assert sorted(outputs["far"].numbers) == [*range(1, 21)]
    for one in range(7):
        mine = [number for number in outputs["far"].numbers if number % 7 == one]
        assert mine == sorted(mine)


@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_what_had_vanished_comes_to_who_lags_behind_what_waits(sqlite: Engine, tmp_path: Path, on_retry: str) -> None:
    """Near is asked again for the end of an object that is there anew when far, which lags, reads what came behind it."""
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = True
    log.write(1, key="idu=7")
    settings = config(log, tmp_path, on_retry=on_retry, retry_first=0.1, retry_longest=0.2)
    with in_thread(Publisher(settings, outputs=outputs.made(answers=["near"]))):
        until(lambda: outputs["near"].numbers == [1] and lagging(log) == ["far"], "far lags")
        outputs["near"].asks = {(2,)}
        log.run(
            "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name) VALUES"
            " (2, 'idu=5', 'N', 4, '2025-03-23 10:57:19', 'usr'), (3, 'idu=5', 'N', 5, '2025-03-23 10:57:19', 'usr')"
        )
        until(lambda: outputs["near"].asked, "near was offered the end of the object")
        log.run("INSERT INTO usr (idu, fname) VALUES (5, 'Ada')")
        outputs["far"].away = False
        until(lambda: 1 in outputs["far"].numbers, "far has the first row")
        outputs["near"].asks = set()
        until(lambda: "N" not in log.statuses().values(), "all is settled")
    assert outputs["near"].numbers == [1, 2]
    assert outputs["far"].numbers in ([1, 2, 3], [1, 2]), "the second where it was in step again before near had both"


def test_the_worst_that_anybody_says_is_the_letter(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    refused = Outcome(position=(2,), status=Status.ERROR, reason=Reason.REFUSED, note="near: no.")
    outputs["near"].answer[(2,)] = refused
    outputs["far"].answer[(3,)] = Outcome(position=(3,), status=Status.ERROR, reason=Reason.REFUSED, note="far: no.")
    write(log, 1, 4)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made(answers=["near"]))):
        until(lambda: outputs["near"].numbers == [1, 2, 3, 4], "near has all")
        outputs["far"].away = False
        until(lambda: "N" not in log.statuses().values(), "all is settled")
    assert log.statuses() == {1: "S", 2: "E", 3: "E", 4: "S"}
    assert {number: said[2] for number, said in log.outcomes().items()} == {2: "near: no.", 3: "far: no."}


def test_a_held_row_is_held_for_each_output(log: LogTable, tmp_path: Path) -> None:
    """But for an output to which it may be on its way already: of the first five nobody knows what far has."""
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 17)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 18)], "near has all")
        assert hold(Log(log.engine, log.names), [(8, 8)]).rows == 1
        outputs["far"].away = False
        free = [number for number in range(1, 18) if number not in (8, 15)]
        until(lambda: sorted(outputs["far"].numbers) == free, "far has what is free")
        left = {8: "N", 15: "N"}
        until(lambda: log.statuses() == {number: left.get(number, "S") for number in range(1, 18)}, "two are left")
        release(Log(log.engine, log.names), [EVERYTHING])
        until(all_settled(log, 17), "all is settled")
    assert outputs["far"].numbers[-2:] == [8, 15]


def test_who_is_slow_delays_nobody(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].seconds = 0.5
    write(log, 1, 20)
    with in_thread(Publisher(config(log, tmp_path, query_limit=2), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 21)], "near has all")
        assert len(outputs["far"].numbers) < 20
        outputs["far"].seconds = 0
        until(all_settled(log, 20), "all is settled")
    assert outputs["far"].numbers == [*range(1, 21)]


@pytest.mark.in_turn
def test_three_outputs_each_with_faults_of_its_own(log: LogTable, tmp_path: Path) -> None:
    """Receivers come and go at random, rows come late, and publishers end in between."""
    from random import Random

    dice = Random(4)
    outputs = Outputs("one", "two", "three")
    stop = threading.Event()

    def faults() -> None:
        while not stop.wait(0.05):
            for receiver in outputs.receivers.values():
                receiver.away = dice.random() < 0.4
                receiver.seconds = dice.choice([0, 0, 0.02])

    count = 0
    trouble = threading.Thread(target=faults)
    trouble.start()
    try:
        for _ in range(4):
            with in_thread(Publisher(config(log, tmp_path, query_limit=7), outputs=outputs.made())):
                for _ in range(15):
                    gap = dice.choice([0, 0, 0, 3])
                    numbers = [*range(count + 1 + gap, count + 11 + gap)]
                    write(log, numbers[0], numbers[-1])
                    count = numbers[-1]
                    time.sleep(0.02)
    finally:
        stop.set()
        trouble.join()
    for receiver in outputs.receivers.values():
        receiver.away = False
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: set(log.statuses().values()) == {"S"}, "all is settled")
    for name, receiver in outputs.receivers.items():
        assert sorted(receiver.numbers) == sorted(log.statuses()), name
        for one in range(7):
            mine = [number for number in receiver.numbers if number % 7 == one]
            assert mine == sorted(mine), name


def test_what_a_receiver_forbids_ends_the_publisher_also_while_it_lags(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    outputs["far"].answer[(2,)] = Outcome(position=(2,), status=Status.FATAL, reason=Reason.REFUSED, note="no more.")
    write(log, 1, 3)
    reports: list[Report] = []

    def work() -> None:
        with Publisher(config(log, tmp_path), outputs=outputs.made(answers=["far"])) as publisher:
            reports.extend(publisher.rounds())

    working = threading.Thread(target=work)
    working.start()
    until(lambda: outputs["near"].numbers == [1, 2, 3], "near has all")
    outputs["far"].away = False
    working.join(60)
    assert not working.is_alive()
    assert reports[-1].fatal
    assert log.statuses() == {1: "S", 2: "F", 3: "N"}


@pytest.mark.parametrize(
    "error", [SourceError("The server was stopped."), OccupiedError("Another publisher works on the event log.")]
)
def test_a_log_that_is_away_under_who_lags_is_waited_for(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: MachineError
) -> None:
    """Or one that somebody else has taken: far goes on once it is ours again."""
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 8)
    taken: list[str] = []
    planned = View.list_planned

    def interrupted(view: View, name: str) -> list[OnTheWay]:
        if name == "far" and outputs["near"].numbers == [*range(1, 9)]:
            taken.append(name)
            if len(taken) == 2:
                raise error
        return planned(view, name)

    monkeypatch.setattr(View, "list_planned", interrupted)
    with in_thread(Publisher(config(log, tmp_path), outputs=outputs.made())):
        until(lambda: outputs["near"].numbers == [*range(1, 9)], "near has all")
        until(lambda: len(taken) > 1, "it has read")
        outputs["far"].away = False
        until(all_settled(log, 8), "all is settled")
    assert outputs["far"].numbers == [*range(1, 9)]


@pytest.mark.parametrize("error", [RuntimeError("a fault of ours"), SourceError("ours is gone", may_pass=False)])
def test_what_fails_for_good_where_one_lags_ends_the_publisher(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    log, outputs = site(sqlite), Outputs("near", "far")
    write(log, 1, 2)
    planned = View.list_planned

    def broken(view: View, name: str) -> list[OnTheWay]:
        if name == "far":
            raise error
        return planned(view, name)

    monkeypatch.setattr(View, "list_planned", broken)
    with (
        Publisher(config(log, tmp_path), outputs=outputs.made()) as publisher,
        pytest.raises(type(error), match="ours"),
    ):
        for _ in publisher.rounds():
            pass


def test_who_stands_by_gives_no_alarm_for_rows_that_are_kept(sqlite: Engine, tmp_path: Path) -> None:
    log, outputs = site(sqlite), Outputs("near", "far")
    outputs["far"].away = True
    settings = config(log, tmp_path, lease=60.0)
    places = tmp_path / "eventlog.toml"
    places.write_text(
        "".join(
            f'[[output]]\nname = "{name}"\nsink = "files"\npath = "{tmp_path / name}"\n' for name in ("near", "far")
        )
    )
    options = ("--config", str(places), "--http", "127.0.0.1:0")
    with (
        in_thread(Publisher(settings, outputs=outputs.made())) as first,
        Process(sqlite, tmp_path / "out", *options, out=False, lease=0.5) as second,
    ):
        until(lambda: first.post.taken, "the first one has the lock")
        second.wait_for("standing_by")
        write(log, 1, 5)
        until(lambda: outputs["near"].numbers == [1, 2, 3, 4, 5], "near has all")
        time.sleep(4)
        assert "standby_while_rows_wait" not in second.actions()
