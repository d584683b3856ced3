"""A test that does not end fails after a while."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.time_limit import limited


def test_what_waits_for_too_long_is_given_up() -> None:
    limit = limited(1)
    next(limit)
    began = time.monotonic()
    with pytest.raises(pytest.fail.Exception, match="has not ended after 1 s"):
        threading.Event().wait(60)
    assert time.monotonic() - began < 60
    with pytest.raises(StopIteration):
        next(limit)
