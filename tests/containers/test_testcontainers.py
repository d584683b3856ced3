"""The way of the suite's fixtures to servers in containers: testcontainers starts one, and eventlog works on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from eventlog.testing import Capture
from tests.support.containers import ContainerEngine, base_image
from tests.support.servers import containers_answer, running

pytestmark = pytest.mark.containers


def test_a_server_of_testcontainers_is_captured(
    container_engine: ContainerEngine, engine_api: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base_image(container_engine, "docker.io/library/postgres:16-bookworm")
    monkeypatch.setenv("DOCKER_HOST", engine_api)
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")  # its own image, which no registry may give
    # A machine that looks like a container itself would be told an address inside of the engine's network.
    monkeypatch.setenv("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    monkeypatch.setenv("TC_HOST", "127.0.0.1")
    assert containers_answer()
    from testcontainers.community.postgres import PostgresContainer

    def make() -> PostgresContainer:
        return PostgresContainer("postgres:16-bookworm", username="postgres", driver="psycopg")

    with running("containers", make) as container:
        engine = create_engine(container.get_connection_url())
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE usr (id integer PRIMARY KEY, lname text)"))
        capture = Capture(engine, tmp_path / "published", "usr")
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO usr VALUES (1, 'Frost')"))
        [document] = capture.published()
        assert "Frost" in document
        engine.dispose()
