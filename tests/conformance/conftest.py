"""A log on each database, as several suites want it: one that a test writes to, and what eventlog reads it by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from sqlalchemy import Engine

from eventlog.convert import partitions, plan, step
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.levels import values_of
from tests.support.servers import databases

WITHOUT_EMPTY_TEXTS: Final = ("source_log", "rowcare", "rowcare_poll", "journal_moves")
"""The files of marks and the tables beside a log, also asked of a database that keeps an empty text as NULL."""


@pytest.fixture(params=[*databases(), "no_empty_texts"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return an engine on each database in turn."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests without a use for empty texts."""
    items[:] = [
        item
        for item in items
        if "no_empty_texts" not in values_of(item) or item.path.stem.removeprefix("test_") in WITHOUT_EMPTY_TEXTS
    ]


@pytest.fixture
def table(engine: Engine) -> LogTable:
    return installed(engine)


@pytest.fixture
def log(table: LogTable) -> Log:
    return Log(table.engine, table.names)


SMALL: Final = {
    step: {"CHUNK_ROWS": 3, "SHAPED_ROWS": 3},
    partitions: {"RUN_ROWS": 4, "HEAD_ROWS": 2, "GIVEN_ROWS": 3, "MERGED_BYTES": 1, "GATHERED_ROWS": 2},
    plan: {"BUCKET_ROWS": 4, "RANGE_ROWS": 4, "SPAN_EVENTS": 2},
}


@pytest.fixture(scope="module")
def small_steps() -> Iterator[None]:
    """Make a few rows many for a conversion: several buckets and ranges, runs on the disk, objects too large for a
    chunk.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, sizes in SMALL.items():
            for name, size in sizes.items():
                patch.setattr(module, name, size)
        yield
