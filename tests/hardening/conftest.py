"""The server that processes of hardening tests are forked from ends with the tests."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker, util

import pytest


@pytest.fixture(scope="session", autouse=True)
def nothing_to_fork_from_is_left() -> Iterator[None]:
    """Ends it, and removes its folder, before anybody looks what a run has left; multiprocessing does so only at exit."""
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # there is no other way
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]  # as above
    util._run_finalizers()  # type: ignore[attr-defined]  # as above
