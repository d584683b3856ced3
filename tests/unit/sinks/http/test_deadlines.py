"""Exchanges end at their deadlines, whoever holds them, and the thread that sees to it ends with them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from eventlog.sinks.http.post import Deadlines, cut


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection on which nobody says anything."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    before = set(threading.enumerate())
    made = Deadlines()
    yield made
    made.close()
    assert set(threading.enumerate()) <= before


def read_and_fail(sock: socket.socket) -> None:
    sock.recv(1)
    raise ValueError("what a library makes of it")


def test_who_waits_too_long_is_woken(deadlines: Deadlines, pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError), deadlines.ended_at(time.monotonic() + 0.05, pair[0]):
        assert pair[0].recv(1) == b"", "it was shut down"


def test_an_error_that_came_of_it_is_a_timeout_and_another_one_is_itself(
    deadlines: Deadlines, pair: tuple[socket.socket, socket.socket]
) -> None:
    with pytest.raises(ValueError, match="another"), deadlines.ended_at(time.monotonic() + 60, pair[0]):
        raise ValueError("another")
    with pytest.raises(TimeoutError), deadlines.ended_at(time.monotonic() + 0.05, pair[0]):
        read_and_fail(pair[0])


def test_the_earliest_counts_whoever_came_first(deadlines: Deadlines) -> None:
    """One that ends sooner comes while the thread waits for a later one."""
    (late, _a), (soon, _b) = socket.socketpair(), socket.socketpair()
    with _a, _b, late, soon, deadlines.ended_at(time.monotonic() + 60, late):
        with pytest.raises(TimeoutError), deadlines.ended_at(time.monotonic() + 0.05, soon):
            soon.recv(1)
        late.setblocking(False)
        with pytest.raises(BlockingIOError):
            late.recv(1)


def test_what_ended_in_time_is_left_alone(deadlines: Deadlines, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    with deadlines.ended_at(time.monotonic() + 60, ours):
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"
    deadlines.close()
    theirs.sendall(b"y")
    assert ours.recv(1) == b"y"


def test_one_thread_looks_after_all_and_comes_again_when_it_is_needed(deadlines: Deadlines) -> None:
    before = threading.active_count()
    for _ in range(2):
        pairs = [socket.socketpair() for _ in range(5)]
        for ours, _theirs in pairs:
            with deadlines.ended_at(time.monotonic() + 60, ours):
                assert threading.active_count() == before + 1
        deadlines.close()
        assert threading.active_count() == before
        for ours, theirs in pairs:
            ours.close()
            theirs.close()


def test_a_connection_that_is_gone_can_be_cut() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    cut(ours)
    assert ours.fileno() == -1
