"""The suite's fixtures where servers come in containers: testcontainers starts a PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from eventlog.testing import Capture
from tests.conformance.test_postgresql_versions import container
from tests.support.containers import ContainerEngine, base_image
from tests.support.servers import containers_answer

pytestmark = pytest.mark.containers


@pytest.fixture
def asked_engine(
    container_engine: ContainerEngine, engine_api: str, monkeypatch: pytest.MonkeyPatch
) -> ContainerEngine:
    """The engine, where testcontainers looks for one."""
    monkeypatch.setenv("DOCKER_HOST", engine_api)
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")  # its own image, which no registry may give
    # A machine that looks like a container itself would be told an address inside of the engine's network.
    monkeypatch.setenv("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    monkeypatch.setenv("TC_HOST", "127.0.0.1")
    assert containers_answer()
    return container_engine


def test_a_server_of_testcontainers_is_captured(asked_engine: ContainerEngine, tmp_path: Path) -> None:
    base_image(asked_engine, "docker.io/library/postgres:16-bookworm")
    with container("postgres:16-bookworm") as url:
        engine = create_engine(f"{url}postgres")
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE usr (id integer PRIMARY KEY, lname text)"))
        capture = Capture(engine, tmp_path / "published", "usr")
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO usr VALUES (1, 'Frost')"))
        [document] = capture.published()
        assert "Frost" in document
        engine.dispose()
