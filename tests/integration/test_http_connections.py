"""Several connections to one receiver, with a log behind them: what goes together, what answers and faults do, how it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.care.status import facts
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.daemon.publisher import Publisher
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import Done, FinishedRows
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.http.sink import HttpLane, HttpSink
from tests.conformance.event_logs import LogTable
from tests.integration.parallel_server import Fate, ParallelServer, after
from tests.integration.publishing import site, until, url_of
from tests.integration.scripted_server import Step, answer, hang_up, raw, silence


@pytest.fixture
def log(sqlite: Engine) -> Iterator[LogTable]:
    with threads_end():
        yield site(sqlite)


def said(level: str, *events: int) -> Step:
    statuses = "".join(f'<status level="{level}" event-id="{event}">so it is</status>' for event in events)
    return answer(f'<nds dtdversion="2.0"><output>{statuses}</output></nds>'.encode())


@contextmanager
def threads_end() -> Iterator[None]:
    """Sees to it that no thread is left behind."""
    before = set(threading.enumerate())
    yield
    until(lambda: set(threading.enumerate()) <= before, f"threads end: {threading.enumerate()}")


def fill(log: LogTable, objects: str) -> None:
    """A row for each letter, of the object that it names; in turn of two kinds, so that each is a change of its own."""
    for number, letter in enumerate(objects, 1):
        kind = 2 + objects[: number - 1].count(letter) % 2
        log.write(number, key=f"idu={ord(letter)}", event_type=kind, old_value="Jack", new_value="John")


def publisher(log: LogTable, server: ParallelServer, connections: int = 4, **settings: Any) -> Publisher:
    output = {name: settings.pop(name) for name in ("total_timeout", "read_timeout") if name in settings}
    publishing = {"allow_loopback": True, "retry_first": 0.0, **settings}
    return Publisher(
        Config(
            source=SourceConfig(url=url_of(log.engine)),
            publisher=PublisherConfig(**publishing),
            output=(HttpOutput(url=server.url, connections=connections, **output),),
        )
    )


def statuses(log: LogTable) -> str:
    return "".join(log.statuses().values())


def always(step: Step) -> Fate:
    return lambda _number, _attempt: step


def when_all_came(server: Callable[[], ParallelServer], count: int, step: Step) -> Step:
    """Answers when so many are there."""

    def wait(connection: Any) -> None:
        assert server().until(lambda: len(server().came) >= count)
        step(connection)

    return wait


def test_objects_go_together_over_connections_that_are_kept(log: LogTable) -> None:
    fill(log, "abcdefgh" * 4)
    with ParallelServer(always(after(0.02, answer()))) as server, publisher(log, server) as publishing:
        publishing.run_once()
        assert server.most == 4
        assert server.connections == 4
        log.write(33, key="idu=1")
        publishing.run_once()
        assert server.connections == 4
    assert server.until(lambda: server.closed == 4), "the sink closes its connections"
    assert statuses(log) == "S" * 33
    assert sorted(server.came) == list(range(1, 34))
    for first in range(1, 9):
        mine = [number for number in server.came if number < 33 and number % 8 == first % 8]
        assert mine == sorted(mine)


def test_who_breaks_off_waits_for_no_answer_and_can_begin_again() -> None:
    document = Document(id="1", body=b"<n/>", covers={})
    raised: list[SinkError] = []

    def write(lane: HttpLane) -> None:
        try:
            lane.commit("", [document])
        except SinkError as error:
            raised.append(error)

    with ParallelServer(lambda _, attempt: silence if attempt == 1 else answer()) as server, threads_end():
        sink = HttpSink(HttpSettings(url=server.url, connections=2))
        lane = sink.lanes[1]
        thread = Thread(target=write, args=(lane,))
        thread.start()
        assert server.until(lambda: len(server.came) == 1)
        lane.break_off()
        thread.join(10)
        assert not thread.is_alive()
        write(lane)
        assert [error.may_pass for error in raised] == [True, True]
        assert server.came == [1], "nothing is begun until it is closed"
        lane.close()
        assert list(lane.commit("", [document])) == []
        sink.close()


@pytest.mark.parametrize(
    "step",
    [
        hang_up,
        answer(b"", "503 Later"),
        raw(b"HTTP/1."),
        silence,
    ],
    ids=["hangs up", "busy", "half a word", "silence"],
)
def test_a_fault_on_one_connection_leaves_what_others_had_answered(log: LogTable, step: Step) -> None:
    fill(log, "abcd" + "efgh" * 20)
    held: list[ParallelServer] = []
    together = when_all_came(lambda: held[0], 4, answer())

    def fate(number: int, attempt: int) -> Step:
        if number == 2 and attempt == 1:
            return when_all_came(lambda: held[0], 4, step)
        return together if number <= 4 else after(0.01, answer())

    with ParallelServer(fate) as server:
        held.append(server)
        with publisher(log, server, read_timeout=2.0) as publishing, pytest.raises(SinkError):
            publishing.run_once()
        assert statuses(log)[1] == "N", "2 is not there yet"
        assert statuses(log).count("S") == len(server.came) - 1 or step is not silence
        assert step is silence or len(server.came) < 84, "who is silent does not keep others from going on"
        [state] = facts(log.engine, log.names).outputs.values()
        assert state.position not in (None, (2,)), "2 is not there yet"
        with publisher(log, server) as publishing:
            publishing.run_once()
        [state] = facts(log.engine, log.names).outputs.values()
    assert statuses(log) == "S" * 84
    assert sorted(server.came) == sorted([2, *range(1, 85)]), "what was answered is not sent again"
    assert state.position == ((2,) if step is silence else (84,)), "the last that it took"


@pytest.mark.in_turn
@pytest.mark.parametrize("by_object", [False, True], ids=["stop", "object"])
@pytest.mark.parametrize("seed", range(int(os.environ.get("EVENTLOG_RACES", "4"))))
def test_a_receiver_with_whims_gets_each_object_in_order_and_each_answer_counts_once(
    log: LogTable, seed: int, by_object: bool
) -> None:
    dice = Random(seed)
    objects = "".join(dice.choice("abcdefgh") for _ in range(60))
    fill(log, objects)
    final: dict[int, str] = {}
    wrong: list[str] = []

    def fate(number: int, attempt: int) -> Step:
        earlier = [one for one in range(1, number) if objects[one - 1] == objects[number - 1]]
        wrong.extend(f"{number} came before {one}" for one in earlier if one not in final)
        wrong.extend([f"{number} came again after {final[number]}"] if number in final else [])
        kinds = ["success", "success", "success", "warning", "error", "retry", "busy", "cut"]
        kind = "success" if attempt > 3 else dice.choice(kinds)
        if kind in ("busy", "cut", "retry"):
            step = {"busy": answer(b"", "503 Later"), "cut": hang_up, "retry": said("retry", number)}[kind]
        else:
            final[number] = {"success": "S", "warning": "W", "error": "E"}[kind]
            step = said(kind, number)
        return after(dice.random() / 200, step)

    on_retry = "object" if by_object else "stop"
    with ParallelServer(fate) as server, publisher(log, server, connections=6, on_retry=on_retry) as publishing:
        until(lambda: not _left(publishing, log), "everything is taken")
    assert wrong == []
    assert log.statuses() == final


def _left(publishing: Publisher, log: LogTable) -> bool:
    """Whether rows are left after another round."""
    with suppress(SinkError):
        publishing.run_once()
    return "N" in statuses(log)


@pytest.mark.parametrize("connections", [1, 4])
def test_answers_that_the_journal_does_not_know_are_at_most_so_many_a_connection(
    log: LogTable, monkeypatch: pytest.MonkeyPatch, connections: int
) -> None:
    """And not fewer: all connections stand still while the journal is written."""
    monkeypatch.setattr("eventlog.publisher.sending.ANSWERED_DOCUMENTS", 3)
    known: list[int] = []
    done = Journal.done

    def entered(journal: Journal, name: str, what: Done) -> FinishedRows:
        known.append(len(what.planned))
        return done(journal, name, what)

    monkeypatch.setattr(Journal, "done", entered)
    fill(log, "abcdefgh" * 3)
    with ParallelServer(always(answer())) as server, publisher(log, server, connections) as publishing:
        publishing.run_once()
    assert known == [3 * connections] * (24 // (3 * connections))
    assert statuses(log) == "S" * 24
