"""Oracle for tests: `oracle`, an engine on a new schema of the server that EVENTLOG_ORACLE_DSN names, else of a container.

The variable holds the SQLAlchemy URL of an account that may make users, such as
oracle+oracledb://system:PASSWORD@host/?service_name=FREEPDB1. EVENTLOG_REQUIRE=oracle makes its absence a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url, text

from tests.support.servers import absent, containers_answer, running

IMAGE = "gvenzl/oracle-free:slim"
PASSWORD = "Throw_Away_1"
RIGHTS = "CREATE SESSION, CREATE TABLE, CREATE VIEW, CREATE SEQUENCE, CREATE TRIGGER, CREATE PROCEDURE"
_numbers = count(1)


@pytest.fixture(scope="session")
def oracle_server() -> Iterator[URL]:
    """Start Oracle, or take EVENTLOG_ORACLE_DSN; yield the administrator's URL."""
    named = os.environ.get("EVENTLOG_ORACLE_DSN")
    if named:
        yield make_url(named)
        return
    if not containers_answer():
        absent("oracle", "EVENTLOG_ORACLE_DSN names no server and no container engine answers")
    from testcontainers.community.oracle import OracleDbContainer

    with running("oracle", lambda: OracleDbContainer(IMAGE)) as container:
        yield make_url(container.get_connection_url())


@pytest.fixture
def oracle(oracle_server: URL) -> Iterator[Engine]:
    """Make an engine on a new user's schema."""
    name = f"EVENTLOG_{os.getpid()}_{next(_numbers)}"
    admin = create_engine(oracle_server)
    with admin.begin() as connection:
        connection.execute(text(f'CREATE USER {name} IDENTIFIED BY "{PASSWORD}" QUOTA UNLIMITED ON USERS'))
        connection.execute(text(f"GRANT {RIGHTS} TO {name}"))
    engine = create_engine(oracle_server.set(username=name, password=PASSWORD))
    yield engine
    engine.dispose()
    with admin.begin() as connection:
        connection.execute(text(f"DROP USER {name} CASCADE"))
    admin.dispose()
