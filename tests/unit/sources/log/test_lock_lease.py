"""The lease of a lock: renewed while its holder moves, and not by a thread that goes on beside a holder that hangs."""

from __future__ import annotations

from threading import Event as Flag

from eventlog.sources.log.lock import Lease, seconds_up


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
