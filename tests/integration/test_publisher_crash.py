"""A publisher that is killed anywhere leaves nothing by halves: the next one finishes the batch as it was begun."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.daemon.publisher import Publisher
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, site

DIES = "import os, signal, pathlib\nfrom eventlog.publisher.journal import Journal\nfrom eventlog.sinks.files import FileSink\n"
DIE = "lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)"
CRASHES = {
    "between documents": (
        # The claim of the folder, the mark of the plan, the first document; then it dies.
        f"{DIES}real, count = pathlib.Path.replace, iter(range(99))\n"
        f"def replace(self, target):\n    next(count) == 3 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return real(self, target)\n"
        "pathlib.Path.replace = replace"
    ),
    "before settling": f"{DIES}Journal.done = {DIE}",
}


@pytest.fixture
def log(engine: Engine) -> LogTable:
    """Seven rows: 1-2 make one change, 5 reads idu=4 back, 6 and 7 are two changes of one object."""
    log = site(engine)
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (4, 'Jack', 'Frost')")
    log.write(1, key="idu=1")
    log.write(2, key="idu=1", column_name="lname")
    log.write(3, key="idu=2")
    log.write(4, key="idu=3")
    log.write(5, key="idu=4", event_type=6, column_name=None, new_value=None)
    log.write(6, key="idu=5")
    log.write(7, key="idu=5", event_type=2, old_value="Jack", new_value="John")
    return log


def finish(log: LogTable, out: Path, batch_size: int) -> None:
    with Publisher(config_of(log.engine, out, batch_size=batch_size)) as publisher:
        publisher.wait_for_lock(30)
        for _ in publisher.rounds(until_empty=True):
            pass


def kill(log: LogTable, out: Path, crash: str, batch_size: int) -> None:
    with Process(log.engine, out, "--once", program=CRASHES[crash], batch_size=batch_size) as process:
        assert process.end() == -signal.SIGKILL
    assert set(log.statuses().values()) == {"N"}


@pytest.mark.parametrize("crash", CRASHES)
def test_documents_are_called_as_before_and_say_the_same(log: LogTable, tmp_path: Path, crash: str) -> None:
    kill(log, tmp_path / "killed", crash, batch_size=1)
    finish(log, tmp_path / "killed", batch_size=1)
    log.run("UPDATE event_log SET status = 'N'")
    finish(log, tmp_path / "whole", batch_size=1)
    killed, whole = ({p.name: p.read_bytes() for p in (tmp_path / name).glob("*.xml")} for name in ("killed", "whole"))
    assert killed == whole
    assert len(whole) == 6


def test_a_crash_leaves_a_plan_that_a_person_can_read(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    log.write_all([1, 2, 5])
    kill(log, tmp_path / "out", "before settling", batch_size=1)
    assert log.ask("SELECT documents, records FROM event_log_planned") == [(3, "[[1,2],[5,5]]")]
