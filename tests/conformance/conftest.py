"""A log on each database, as several suites want it: one that a test writes to, and what eventlog reads it by."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed


@pytest.fixture
def table(engine: Engine) -> LogTable:
    return installed(engine)


@pytest.fixture
def log(table: LogTable) -> Log:
    return Log(table.engine, table.names)
