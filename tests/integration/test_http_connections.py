"""Several connections to one receiver, with a log behind them: what goes together, what answers do, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.sink import HttpLane, HttpSink
from tests.conformance.event_logs import LogTable
from tests.integration.parallel_server import ParallelServer, after
from tests.integration.posting import always, at_first, fill, letters, publisher, running, said, threads_end
from tests.integration.publishing import PATIENCE, site
from tests.integration.scripted_server import answer, silence


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
