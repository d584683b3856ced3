"""Who holds a lock: what the mark says, when its lease is renewed or over, and when its process is certainly dead."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from threading import Event as Flag

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.sources.log import lock
from eventlog.sources.log.lock import (
    LONGEST_LEASE_SECONDS,
    Holder,
    Lease,
    Process,
    is_dead,
    new_token,
    read_holder,
    seconds_up,
    this_process,
)
from eventlog.sources.marks import as_text, next_epoch
from tests.support.shares import met, shares

NOW = dt.datetime(2026, 11, 21, 2, 0, 45, 123_000)
has_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    """A process that waits for a word."""
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_what_a_token_says_is_read_again() -> None:
    found = read_holder(f"2026-11-21T02:00:50.123 {new_token(NOW, 5.0)}")
    assert found.until == NOW + dt.timedelta(seconds=5)
    assert found.claim is not None
    assert (found.claim.since, found.lease, found.claim.process) == (NOW, 5.0, this_process())
    assert found.describe() == {
        "host": this_process().host,
        "pid": os.getpid(),
        "since": "2026-11-21T02:00:45.123",
        "lease_until": "2026-11-21T02:00:50.123",
    }
    assert new_token(NOW, 5.0) != new_token(NOW, 5.0)


times = st.sampled_from(["2026-11-21T02:00:50.123", "12"])
numbers = st.sampled_from([12, 5.5, 0, -1, None, 10**12])
texts = st.sampled_from(["", "host", "²", None])
nearly = st.builds(
    lambda until, since, lease, host, pid, more: f"{until} {as_text([since, lease, [host, pid, *more], 'x'])}",
    *[times, times, numbers, texts, numbers],
    st.lists(texts, max_size=4),
)
"""Marks with as many parts as ours have."""


@shares(claim=0.02, until=0.05)
@given(st.text() | nearly)
@example('2026-11-21T02:00:50.123 ["2026-11-21T02:00:45.123",5,["host",0,"boot","space","7"],"ab"]')
@example('2026-11-21T02:00:50.123 ["2026-11-21T02:00:45.123",5,["host",7,"boot","space","7"],"ab"]')
def test_any_text_is_read_as_a_mark(mark: str) -> None:
    found = read_holder(mark)
    met(claim=found.claim, until=found.until)
    assert mark.endswith(found.token)
    assert found.claim is None or not is_dead(found.claim.process)
    assert found.describe().keys() == {"host", "pid", "since", "lease_until"}
    found.is_over(NOW)


@pytest.mark.parametrize(
    "mark, until",
    [
        ("2026-11-21T02:00:50.123 host:12:ab", dt.datetime(2026, 11, 21, 2, 0, 50, 123_000)),
        ("2026-11-21 02:00:50.123456 host:12:ab", dt.datetime(2026, 11, 21)),
        ("nonsense", None),
        ("2026-11-21T02:00:50.123 1/2/3/x/5/6/7/8", dt.datetime(2026, 11, 21, 2, 0, 50, 123_000)),
    ],
)
def test_what_others_have_written_says_at_most_until_when(mark: str, until: dt.datetime | None) -> None:
    found = read_holder(mark)
    assert (found.until, found.claim, found.lease) == (until, None, LONGEST_LEASE_SECONDS)


@pytest.mark.parametrize(
    "until, over",
    [(-0.001, True), (0.0, False), (5.0, False), (LONGEST_LEASE_SECONDS, False), (LONGEST_LEASE_SECONDS + 1, True)],
)
def test_a_lease_is_over_after_its_end_and_when_the_clock_was_set_back(until: float, over: bool) -> None:
    assert Holder(token="", until=NOW + dt.timedelta(seconds=until)).is_over(NOW) is over


@has_proc
def test_a_process_is_dead_when_it_is_gone_or_another_one_has_its_number() -> None:
    me = this_process()
    assert me.machine
    assert not is_dead(me)
    assert is_dead(replace(me, started=f"{me.started}1"))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_dead(replace(me, pid=ended.pid))


@has_proc
def test_a_process_that_ended_is_dead_before_its_parent_takes_notice(child: subprocess.Popen[bytes]) -> None:
    started = lock._stat(child.pid)[1]
    process = replace(this_process(), pid=child.pid, started=started)
    assert not is_dead(process)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert lock._stat(child.pid)[0] == "Z"
    assert is_dead(process)
    child.communicate()


@pytest.mark.parametrize("other", [{"host": "other"}, {"boot": "other"}, {"space": "other"}, {"started": ""}])
def test_nobody_is_dead_who_may_live_elsewhere(other: dict[str, str]) -> None:
    gone = replace(this_process(), pid=2**22 + 1)
    assert not is_dead(replace(gone, **other))


def test_without_a_proc_nobody_is_known_to_be_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(this_process(), pid=2**22 + 1)
    monkeypatch.setattr(lock, "_read", lambda _file: "")
    assert not is_dead(gone)
    assert this_process() == Process(gone.host, os.getpid(), space=gone.space)


@given(st.integers(min_value=0, max_value=2**60), st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1)))
def test_an_epoch_is_above_the_former_one_and_not_below_the_clock(former: int, now: dt.datetime) -> None:
    new = next_epoch(str(former), now)
    assert new > former
    assert new >= (now - dt.datetime(1970, 1, 1)).total_seconds() * 1000 - 1
    assert next_epoch(None, now) == next_epoch("what?", now) <= new
    assert isinstance(new, int)


def test_a_holder_that_moves_keeps_it() -> None:
    renewed = Flag()

    def renew() -> bool:
        renewed.set()
        return True

    lease = Lease(0.03, seconds_up(), renew)
    assert renewed.wait(60)
    lease.stop()
    assert not lease.lost


def test_a_holder_that_hangs_lets_it_run_out() -> None:
    asked, renewals, moving = Flag(), [0], [False]

    def renew() -> bool:
        renewals[0] += 1
        return True

    def alive() -> bool:
        asked.set()
        return moving[0]

    lease = Lease(3.0, seconds_up() - 4, renew, alive)
    assert asked.wait(60)
    lease.stop()
    assert renewals == [0]
    assert not lease.fresh
    assert lease.renew()  # whoever moves again asks for it at once, and may still get it
    assert lease.fresh
