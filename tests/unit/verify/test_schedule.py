"""When a table is compared again, by a clock that only the test moves."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from msgspec.structs import replace

from eventlog.compare.pace import read_window
from eventlog.core.proofs import LastProof
from eventlog.verify.schedule import LOOK_SECONDS, RETRY_SECONDS, Schedule

HOUR = 3600.0
NOON = dt.datetime(2026, 11, 25, 12)
NIGHT = read_window("22:00-05:00")


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def seconds(moment: dt.datetime) -> float:
    return moment.replace(tzinfo=dt.UTC).timestamp()


def proof(table: str, at: float | None = None, failed_at: float | None = None) -> LastProof:
    return LastProof(output="lake", table=table, at=at, failed_at=failed_at)


def names(proofs: list[LastProof]) -> list[str]:
    return [one.table for one in proofs]


def test_what_was_never_compared_comes_first_and_then_the_oldest() -> None:
    now = seconds(NOON)
    proofs = [proof("new"), proof("fresh", now - 1), proof("old", now - 7 * HOUR), proof("older", now - 8 * HOUR)]
    schedule = Schedule(every=6 * HOUR)
    assert names(schedule.due(proofs, now)) == ["new", "older", "old"]


def test_the_virtual_clock_gives_each_table_its_turn() -> None:
    """Three days: each table is compared every six hours, a twentieth of that later at most."""
    schedule = Schedule(every=6 * HOUR)
    proofs = {name: proof(name) for name in "abc"}
    turns: dict[str, list[float]] = {name: [] for name in proofs}
    now = begin = seconds(NOON)
    while now < begin + 72 * HOUR:
        for one in schedule.due(proofs.values(), now):
            now += 600  # it takes ten minutes
            proofs[one.table] = replace(one, at=now)
            turns[one.table].append(now)
        now += schedule.sleep(proofs.values(), now)
    for at in turns.values():
        gaps = [later - former for former, later in pairwise(at)]
        assert len(at) >= 11
        assert max(gaps) <= 6 * HOUR * 1.05 + 1800


def test_a_failure_is_tried_again_soon_and_never_later_than_usual() -> None:
    now = seconds(NOON)
    failed = proof("usr", now - 7 * HOUR, failed_at=now)
    assert Schedule(every=6 * HOUR).due_at(failed) == now + RETRY_SECONDS
    assert Schedule(every=60).due_at(failed) == now + 60
    mended = replace(failed, at=now + 10)
    assert Schedule(every=6 * HOUR).due_at(mended) == now + 10 + 6 * HOUR


def test_a_clock_that_was_set_back_delays_nothing() -> None:
    now = seconds(NOON)
    assert names(Schedule(every=HOUR).due([proof("usr", now + 90 * 86_400)], now)) == ["usr"]


def test_a_round_looks_for_new_tables_and_leaves_the_log_alone_between() -> None:
    now = seconds(NOON)
    assert Schedule(every=6 * HOUR).sleep([], now) == LOOK_SECONDS
    assert Schedule(every=6 * HOUR).sleep([proof("usr", now)], now) == LOOK_SECONDS
    assert Schedule(every=6 * HOUR).sleep([proof("usr", now - 6 * HOUR + 60)], now) == 6 * HOUR / 20
    assert Schedule(every=60).sleep([proof("usr", now)], now) == 60


def test_the_window_says_when_the_next_one_begins() -> None:
    schedule = Schedule(every=6 * HOUR, window=NIGHT)
    now = seconds(NOON)
    assert schedule.find_closed_seconds(NOON) == 10 * HOUR
    assert schedule.find_closed_seconds(NOON.replace(second=20)) == 10 * HOUR - 20
    assert schedule.find_closed_seconds(NOON.replace(hour=23)) == 0
    assert schedule.next_at(proof("usr", now - HOUR), now) == now + 10 * HOUR
    assert schedule.next_at(proof("usr", now + 9 * HOUR), now) == now + 15 * HOUR
    open_always = Schedule(every=6 * HOUR)
    assert open_always.find_closed_seconds(NOON) == 0
    assert open_always.next_at(proof("usr"), now) == now


def test_a_proof_is_old_after_two_of_them_and_the_time_when_none_may_be_made() -> None:
    now = seconds(NOON)
    assert not Schedule(every=HOUR).is_old(proof("usr", now - 2 * HOUR), now)
    assert Schedule(every=HOUR).is_old(proof("usr", now - 2 * HOUR - 1), now)
    assert not Schedule(every=HOUR).is_old(proof("usr"), now)
    night = Schedule(every=HOUR, window=NIGHT)  # shut for 17 hours
    assert not night.is_old(proof("usr", now - 19 * HOUR), now)
    assert night.is_old(proof("usr", now - 19 * HOUR - 1), now)
