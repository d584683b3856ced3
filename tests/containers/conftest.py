"""Images of the project, as an engine has built them from the Dockerfiles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.touring import Tour, touring
from tests.support.containers import ROOT, ContainerEngine, api, base_image

DOCKER = ROOT / "docker"


@pytest.fixture(scope="session")
def publisher_image(container_engine: ContainerEngine) -> str:
    """The image of docker/Dockerfile."""
    # Its first stage has a name as well, or the engine would forget what is the longer part of the work.
    container_engine.build("eventlog-build", DOCKER / "Dockerfile", options=("--target", "build"))
    container_engine.build("eventlog", DOCKER / "Dockerfile", options=("--build-arg", "REVISION=of-a-test"))
    return "eventlog"


@pytest.fixture(scope="session")
def spark_image(container_engine: ContainerEngine) -> str:
    """The image of docker/Dockerfile.spark."""
    container_engine.build("eventlog-spark-build", DOCKER / "Dockerfile.spark", options=("--target", "build"))
    container_engine.build("eventlog-spark", DOCKER / "Dockerfile.spark")
    return "eventlog-spark"


@pytest.fixture(scope="session")
def engine_api(container_engine: ContainerEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where clients of Docker's API are answered."""
    with api(container_engine, tmp_path_factory.mktemp("api")) as address:
        yield address


@pytest.fixture(scope="module")
def tour(
    container_engine: ContainerEngine,
    publisher_image: str,
    engine_api: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tour]:
    """The tour of docker/compose.yaml, before anything of it runs, at ports of its own."""
    base_image(container_engine, "docker.io/library/postgres:16-bookworm")
    with touring(container_engine, engine_api, tmp_path_factory.mktemp("tour")) as begun:
        yield begun
