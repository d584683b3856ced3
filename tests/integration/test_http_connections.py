"""Several connections to one receiver, with a log behind them: what goes together, what answers do, how it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import Done, Settled
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.sink import HttpLane, HttpSink
from tests.conformance.event_logs import LogTable
from tests.integration.parallel_server import ParallelServer, after
from tests.integration.posting import always, at_first, fill, letters, publisher, running, said, threads_end
from tests.integration.publishing import PATIENCE, site
from tests.integration.scripted_server import Step, answer, silence


@pytest.fixture
def log(sqlite: Engine) -> Iterator[LogTable]:
    with threads_end():
        yield site(sqlite)


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
    assert letters(log) == "S" * 33
    assert sorted(server.came) == list(range(1, 34))
    for first in range(1, 9):
        mine = [number for number in server.came if number < 33 and number % 8 == first % 8]
        assert mine == sorted(mine)


def test_modules_are_there_before_threads_ask_for_them() -> None:
    script = (
        "import sys; from eventlog.sinks.http.sink import HttpSink; from eventlog.sinks.http.address import HttpSettings\n"
        "asked_for = ('urllib3.connection', 'eventlog.xds.read')\n"
        "print([name in sys.modules for name in asked_for])\n"
        "HttpSink(HttpSettings(url='http://localhost/', connections=1))\n"
        "print([name in sys.modules for name in asked_for])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[False, False]", "[True, True]"], "each output that lags has a thread"


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


def test_one_object_takes_one_connection(log: LogTable) -> None:
    fill(log, "a" * 20)
    with ParallelServer(always(answer())) as server, publisher(log, server) as publishing:
        publishing.run_once()
    assert server.came == list(range(1, 21))
    assert server.most == 1


@pytest.mark.parametrize(
    "level,letter", [("success", "S"), ("warning", "W"), ("error", "E")], ids=["taken", "warned", "refused"]
)
def test_each_event_ends_as_its_own_answer_says(log: LogTable, level: str, letter: str) -> None:
    fill(log, "abcdabcd")

    def fate(number: int, _attempt: int) -> Step:
        return said(level, number) if number % 2 else answer()

    with ParallelServer(fate) as server, publisher(log, server) as publishing:
        publishing.run_once()
    assert letters(log) == f"{letter}S" * 4


def test_by_object_only_its_own_rows_wait_for_a_refused_one(log: LogTable) -> None:
    fill(log, "abcabcabc")
    with (
        ParallelServer(at_first(2, said("retry", 2))) as server,
        publisher(log, server, on_retry="object") as publishing,
    ):
        publishing.run_once()
        assert letters(log) == "SNSSNSSNS"
        publishing.run_once()
    assert letters(log) == "S" * 9
    assert [number for number in server.came if number in (2, 5, 8)] == [2, 2, 5, 8]
    assert len(server.came) == 10


def test_several_changes_in_a_document_join_what_they_speak_of(log: LogTable) -> None:
    """Documents of three: aba, cde, fca, b: the third waits for both, the fourth for the first only."""
    fill(log, "abacdefcab")
    with ParallelServer(always(after(0.05, answer()))) as server, publisher(log, server, batch_size=3) as publishing:
        publishing.run_once()
    assert set(server.came[:2]) == {3, 6}
    assert server.came.index(9) > max(server.answered.index(3), server.answered.index(6))
    assert server.came.index(10) > server.answered.index(3)
    assert letters(log) == "S" * 10


@pytest.mark.parametrize("connections", [1, 4])
def test_answers_that_the_journal_does_not_know_are_at_most_so_many_a_connection(
    log: LogTable, monkeypatch: pytest.MonkeyPatch, connections: int
) -> None:
    """And not fewer: all connections stand still while the journal is written."""
    monkeypatch.setattr("eventlog.publisher.sending.ANSWERED_DOCUMENTS", 3)
    known: list[int] = []
    done = Journal.done

    def entered(journal: Journal, name: str, what: Done) -> Settled:
        known.append(len(what.planned))
        return done(journal, name, what)

    monkeypatch.setattr(Journal, "done", entered)
    fill(log, "abcdefgh" * 3)
    with ParallelServer(always(answer())) as server, publisher(log, server, connections) as publishing:
        publishing.run_once()
    assert known == [3 * connections] * (24 // (3 * connections))
    assert letters(log) == "S" * 24


def test_told_to_stop_it_finishes_the_batch_and_ends(log: LogTable, tmp_path: Path) -> None:
    fill(log, "abcdefgh" * 3)
    with ParallelServer(always(after(0.05, answer()))) as server:
        with running(log, tmp_path, server) as process:
            assert server.until(lambda: len(server.came) >= 4)
            assert process.stop() == 0
        assert server.until(lambda: server.closed == server.connections)
    assert letters(log) == "S" * 24
    assert sorted(server.came) == list(range(1, 25))


def test_told_to_stop_while_a_receiver_hangs_it_ends_within_the_time_for_a_request(
    log: LogTable, tmp_path: Path
) -> None:
    fill(log, "abcdefgh")
    with ParallelServer(always(silence)) as server:
        with running(log, tmp_path, server, "total_timeout = 2") as process:
            assert server.until(lambda: len(server.came) >= 4)
            assert process.stop() == 0
        assert sorted(server.came) == [1, 2, 3, 4]
    assert letters(log) == "N" * 8


def test_one_that_is_killed_sends_again_what_was_not_noted_and_in_order(log: LogTable, tmp_path: Path) -> None:
    fill(log, "abcd" * 10)
    with ParallelServer(always(after(0.02, answer()))) as server:
        with running(log, tmp_path, server) as process:
            assert server.until(lambda: len(server.answered) >= 12)
            process.process.kill()
            process.end()
        begun = list(server.came)
        with publisher(log, server) as publishing:
            publishing.wait_for_lock(PATIENCE)
            publishing.run_once()
    assert letters(log) == "S" * 40
    again = server.came[len(begun) :]
    assert sorted(set(begun) | set(again)) == list(range(1, 41))
    for first in range(1, 5):
        mine = [number for number in again if number % 4 == first % 4]
        assert mine == sorted(mine)
