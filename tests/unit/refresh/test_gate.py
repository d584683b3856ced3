"""The gate of a load: for all jobs together no more rows wait than one stretch over the backlog, and it can be closed."""

from __future__ import annotations

from threading import Barrier, Event, Lock, Thread

import pytest

from eventlog.refresh.loads import LOOK_SECONDS, Gate, RefreshPace

CHUNK = 5


class Backlog:
    """A log into which jobs write stretches, and which somebody empties whenever a job pauses."""

    def __init__(self, backlog: int) -> None:
        self.lock = Lock()
        self.rows = self.most = self.pauses = 0
        self.gate = Gate(RefreshPace(chunk=CHUNK, backlog=backlog), self.waiting, self.publish)

    def waiting(self, most: int) -> int:
        return min(self.rows, most)

    def publish(self, _: float) -> None:
        with self.lock:
            self.pauses += 1
            self.rows = max(0, self.rows - 3)

    def write(self, stretches: int, together: Barrier) -> None:
        together.wait()
        for _ in range(stretches):
            assert self.gate.enter()
            with self.lock:
                self.rows += CHUNK
                self.most = max(self.most, self.rows)
            self.gate.leave()


@pytest.mark.parametrize("jobs, backlog", [(1, 1), (1, 12), (4, 1), (4, 6), (8, 12), (4, 40)])
def test_all_jobs_together_keep_the_backlog(jobs: int, backlog: int) -> None:
    log, together = Backlog(backlog), Barrier(jobs)
    threads = [Thread(target=log.write, args=(40, together)) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.most < backlog + CHUNK
    assert log.pauses >= (jobs * 40 * CHUNK - backlog - CHUNK) // 3


def test_what_others_are_writing_counts_as_if_it_waited() -> None:
    pauses: list[float] = []

    def leave(seconds: float) -> None:
        pauses.append(seconds)
        gate.leave()

    gate = Gate(RefreshPace(chunk=CHUNK, backlog=8), lambda _: 0, leave)
    assert [gate.enter(), gate.enter(), pauses] == [True, True, []]
    assert gate.enter()
    assert pauses == [LOOK_SECONDS]


def test_who_waits_is_let_go_when_it_is_closed() -> None:
    answers: list[bool] = []
    looked = Event()

    def waiting(most: int) -> int:
        looked.set()
        return most

    gate = Gate(RefreshPace(chunk=CHUNK, backlog=1), waiting)
    held = Thread(target=lambda: answers.append(gate.enter()))
    held.start()
    assert looked.wait(timeout=300)
    gate.close()
    held.join(timeout=300)
    assert answers == [False]
    assert gate.enter() is False
