"""The log and the page that most tests of this level look at; a file with a `log` of its own gets the page on that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from eventlog.web.server import PageServer
from tests.conformance.event_logs import LogTable
from tests.web.visiting import opened, watched


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    return watched(sqlite)


@pytest.fixture
def page(log: LogTable) -> Iterator[PageServer]:
    with opened(log.engine) as page:
        yield page
