"""A connection that another thread ends."""

from __future__ import annotations

import socket

from eventlog.sinks.http.post import cut


def test_a_connection_that_is_gone_can_be_cut() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    cut(ours)
    assert ours.fileno() == -1
