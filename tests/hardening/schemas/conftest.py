"""`newest_postgresql`: an engine on a new database of the newest PostgreSQL server that was fetched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine

from tests.support.postgresql_versions import VERSIONS, binaries
from tests.support.servers import postgresql_database, postgresql_running


@pytest.fixture(scope="session")
def newest_postgresql_server() -> Iterator[str]:
    """A server of that version."""
    with postgresql_running(binaries(max(VERSIONS))) as url:
        yield url


@pytest.fixture
def newest_postgresql(newest_postgresql_server: str) -> Iterator[Engine]:
    """A database of its own for each test."""
    admin = create_engine(newest_postgresql_server + "postgres", isolation_level="AUTOCOMMIT")
    with postgresql_database(newest_postgresql_server, admin) as engine:
        yield engine
    admin.dispose()
