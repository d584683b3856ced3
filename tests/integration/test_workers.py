"""Workers: several processes share a batch, and nobody can tell by the documents; one that dies costs a repeat."""

from __future__ import annotations

import os
import random
import signal
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import MachineError, SinkError
from eventlog.core.model import Document, Outcome
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch
from eventlog.daemon.publisher import Publisher
from eventlog.delivery import workers
from eventlog.delivery.share import Job
from eventlog.sinks.files import FileSink
from eventlog.xds.events import read_events
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, site, until
from tests.support.memory import inserts

ROWS = 300


@pytest.fixture(autouse=True)
def every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hands out the smallest batches too."""
    monkeypatch.setattr(workers, "WORTHWHILE", 1)


@pytest.fixture
def log(postgresql: Engine) -> LogTable:
    """Rows of every kind on a few objects, some of them vanished, some written in two ways, some that nobody can read."""
    log = site(postgresql)
    log.run("INSERT INTO usr (idu, fname, lname) SELECT n, 'Jack ' || n, 'R&D' FROM generate_series(0, 19) AS n")
    chance = random.Random(7)
    for number in range(1, ROWS + 1):
        key = chance.choice(["idu={}", "IDU= {}", 'idu="{}"']).format(chance.randrange(25))
        kind = chance.choice([1, 2, 2, 3, 4, 5, 6, 7, 8, 9])
        column = chance.choice(["fname", "lname", "nobody"]) if kind in (1, 2, 3, 7, 8) else None
        log.write(number, key, event_type=kind, column_name=column, old_value=f"{number - 1}", new_value=f"{number}")
    return log


def publish(log: LogTable, out: Path, **settings: Any) -> dict[str, bytes]:
    """Publishes everything anew; the documents by their names."""
    log.run("DELETE FROM event_log_outcome")
    log.run("UPDATE event_log SET status = 'N'")
    with Publisher(config_of(log.engine, out, batch_size=3, **settings)) as publisher:
        for _ in publisher.rounds(until_empty=True):
            pass
    return {path.name: path.read_bytes() for path in out.glob("*.xml")}


@pytest.mark.parametrize("limit", [40, 10_000])
def test_documents_and_outcomes_are_those_of_a_publisher_without_workers(
    log: LogTable, tmp_path: Path, limit: int
) -> None:
    alone = publish(log, tmp_path / "alone", query_limit=limit)
    ended = log.statuses(), log.outcomes()
    shared = publish(log, tmp_path / "shared", query_limit=limit, workers=3)
    assert shared == alone
    assert (log.statuses(), log.outcomes()) == ended
    assert set(ended[0].values()) == {"S", "W", "E"}


def test_each_object_keeps_its_order(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    for number in range(1, ROWS + 1):
        log.write(number, f"idu={number % 7}", event_type=2, old_value=f"{number - 7}", new_value=f"{number}")
    seen: dict[str, list[int]] = {}
    for _, body in sorted(publish(log, tmp_path / "out", query_limit=50, workers=2).items()):
        for event in read_events(body):
            values = [int(value.text) for a in event.attributes for s in a.steps for value in s.values]
            seen.setdefault(str(event.association), []).extend(values)
    assert len(seen) == 7
    assert sum(map(len, seen.values())) == 2 * ROWS
    assert all(values == sorted(values) for values in seen.values())


@pytest.mark.parametrize("ahead", [True, False])
def test_a_worker_that_dies_is_replaced_and_nobody_notices(log: LogTable, tmp_path: Path, *, ahead: bool) -> None:
    alone = publish(log, tmp_path / "alone", query_limit=100)
    ended = log.statuses(), log.outcomes()
    log.run("UPDATE event_log SET status = 'N'")
    log.run("DELETE FROM event_log_outcome")
    out = tmp_path / "out"
    with Publisher(config_of(log.engine, out, batch_size=3, query_limit=100, workers=2)) as publisher:
        publisher.run_once(ahead=ahead)
        assert publisher._read_ahead is not None
        pool = publisher._read_ahead.pipeline.workers
        assert pool is not None
        os.kill(pool._processes[0].pid, signal.SIGKILL)
        pool._processes[0].wait()
        for _ in publisher.rounds(until_empty=True):
            pass
    assert {path.name: path.read_bytes() for path in out.glob("*.xml")} == alone
    assert (log.statuses(), log.outcomes()) == ended


def test_what_workers_made_ready_is_forgotten_when_a_sink_fails(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = publish(log, tmp_path / "alone", query_limit=40)
    log.run("UPDATE event_log SET status = 'N'")
    log.run("DELETE FROM event_log_outcome")
    out, calls = tmp_path / "out", iter(range(99))
    write = FileSink.write

    def full(self: FileSink, documents: Sequence[Document], plan: str = "") -> Sequence[Outcome]:
        if next(calls) == 3:
            raise SinkError("The disk is full.")
        return write(self, documents, plan)

    with Publisher(config_of(log.engine, out, batch_size=3, query_limit=40, workers=2)) as publisher:
        monkeypatch.setattr(FileSink, "write", full)
        with pytest.raises(SinkError):
            deque(publisher.rounds(until_empty=True))
        deque(publisher.rounds(until_empty=True))
    assert {path.name: path.read_bytes() for path in out.glob("*.xml")} == alone


def test_a_death_in_the_middle_of_a_batch_is_told_and_may_pass() -> None:
    pool = workers.Workers(Job(catalog=Catalog(), options=Options(), formats=()), 2)
    pool._start()
    try:
        for process in pool._processes:
            process.send_signal(signal.SIGSTOP)
        pool.hand_out(Batch(events=inserts(9)))
        for process in pool._processes:
            process.kill()
        with pytest.raises(MachineError, match="has ended in the middle of a batch") as caught:
            pool.collect()
        assert caught.value.may_pass
    finally:
        pool.close()


def test_workers_end_with_their_publisher_however_it_ends(log: LogTable, tmp_path: Path) -> None:
    program = "import eventlog.delivery.workers\neventlog.workers.WORTHWHILE = 1"
    with Process(log.engine, tmp_path / "out", program=program, workers=2) as process:
        until(lambda: "N" not in log.statuses().values(), "everything is published")
        children = _children(process.process.pid)
        assert len(children) == 2
        process.process.kill()
    until(lambda: not any(map(_runs, children)), "the workers have ended")
    assert set(log.statuses().values()) <= {"S", "W", "E"}


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _runs(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(") ")[2][0] != "Z"
