"""Several connections to one receiver that fails, is silent, says no or has whims: what is left, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.admin.status import facts
from eventlog.core.errors import SinkError
from eventlog.daemon.publisher import Publisher
from tests.conformance.event_logs import LogTable
from tests.integration.parallel_server import ParallelServer, after
from tests.integration.posting import fill, letters, publisher, said, threads_end, when_all_came
from tests.integration.publishing import site, until
from tests.integration.scripted_server import Step, answer, hang_up, raw, silence


@pytest.fixture
def log(sqlite: Engine) -> Iterator[LogTable]:
    with threads_end():
        yield site(sqlite)


def test_everything_that_was_not_on_its_way_waits_where_that_is_wanted(log: LogTable) -> None:
    fill(log, "abcdefgh")
    held: list[ParallelServer] = []

    def fate(number: int, attempt: int) -> Step:
        if number == 1:
            return said("retry", 1) if attempt == 1 else answer()
        return when_settled if attempt == 1 and number <= 4 else answer()

    def when_settled(connection: Any) -> None:
        """Answers when nobody else can come: number 1 was refused, and three are on their way."""
        assert held[0].until(lambda: 1 in held[0].answered and len(held[0].came) >= 4)
        after(0.3, answer())(connection)

    with ParallelServer(fate) as server, publisher(log, server) as publishing:
        held.append(server)
        publishing.run_once()
        assert letters(log) == "NSSSNNNN"
        assert sorted(server.came) == [1, 2, 3, 4]
        until(lambda: (publishing.run_once(), letters(log) == "S" * 8)[1], "the rest is taken")
    assert sorted(server.came) == [1, 1, *range(2, 9)]


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
        assert letters(log)[1] == "N", "2 is not there yet"
        assert letters(log).count("S") == len(server.came) - 1 or step is not silence
        assert step is silence or len(server.came) < 84, "who is silent does not keep others from going on"
        [standing] = facts(log.engine, log.names).outputs.values()
        assert standing.position not in (None, (2,)), "2 is not there yet"
        with publisher(log, server) as publishing:
            publishing.run_once()
        [standing] = facts(log.engine, log.names).outputs.values()
    assert letters(log) == "S" * 84
    assert sorted(server.came) == sorted([2, *range(1, 85)]), "what was answered is not sent again"
    assert standing.position == ((2,) if step is silence else (84,)), "the last that it took"


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
    return "N" in letters(log)
