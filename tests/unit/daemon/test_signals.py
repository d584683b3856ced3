"""Signals that ask for the end, at the worst moment."""

from __future__ import annotations

import signal
from threading import Condition, Event, Lock

import pytest

from eventlog.daemon.signals import StoppedIdle, Terminated, requests_by_signal

SOON = 10.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_request_waits_for_a_lock_that_the_interrupted_code_holds(number: signal.Signals) -> None:
    lock, made = Condition(Lock()), Event()  # what an Event is made of; it has the lock while somebody begins to wait

    def request() -> None:
        with lock:
            made.set()

    with requests_by_signal(request, request):
        with lock:
            signal.raise_signal(number)
            assert not made.is_set()
        assert made.wait(SOON)


@pytest.mark.parametrize("number, broken_off", [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)])
def test_who_asks_for_the_end_twice_breaks_off(number: signal.Signals, broken_off: type[BaseException]) -> None:
    asked = Event()
    with requests_by_signal(asked.set):
        signal.raise_signal(number)
        assert asked.wait(SOON)
        with pytest.raises(broken_off):
            signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_asks_for_the_end_while_nothing_is_in_hand_breaks_off_at_once(number: signal.Signals) -> None:
    asked = Event()
    with requests_by_signal(asked.set, idle=lambda: True), pytest.raises(StoppedIdle):
        signal.raise_signal(number)
    assert asked.wait(SOON)


def test_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    with requests_by_signal(lambda: None, lambda: None):
        pass
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == before
