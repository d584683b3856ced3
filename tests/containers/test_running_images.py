"""The images as an engine builds and runs them: small, without rights, with what is said of them, and quickly ready."""

from __future__ import annotations

import json
import time
from urllib.request import urlopen

import pytest

from eventlog.version import VERSION
from tests.containers.touring import until
from tests.support.containers import ROOT, ContainerEngine, EngineError
from tests.support.servers import free_port

pytestmark = pytest.mark.containers

LARGEST_BYTES = 250_000_000
READY_SECONDS = 2.0
TRIES = 3
HARDENED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")  # noqa: S108  # its own


@pytest.fixture
def alone() -> tuple[str, ...]:
    """Without a network and without rights; nothing is left."""
    return ("--rm", "--network", "none", "--no-healthcheck", *HARDENED)


def inside(engine: ContainerEngine, image: str, script: str, *options: str) -> str:
    """What a shell prints in a container of an image."""
    words = ("--rm", "--network", "none", "--no-healthcheck", *options, "--entrypoint", "/bin/sh", image, "-c", script)
    return engine.do("run", *words).strip()


def test_the_demo_needs_nothing(
    container_engine: ContainerEngine, publisher_image: str, alone: tuple[str, ...]
) -> None:
    said = container_engine.do("run", *alone, publisher_image, "demo")
    assert "eventlog demo --keep" in said


def test_it_is_small(container_engine: ContainerEngine, publisher_image: str) -> None:
    size = int(container_engine.do("image", "inspect", "--format", "{{.Size}}", publisher_image))
    assert size < LARGEST_BYTES


def test_it_says_what_it_is(container_engine: ContainerEngine, publisher_image: str) -> None:
    [image] = json.loads(container_engine.do("image", "inspect", publisher_image))
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in image["Config"]["Labels"].items()}
    expected = {"title": "eventlog", "version": VERSION, "revision": "of-a-test", "licenses": "Apache-2.0"}
    assert labels.items() >= expected.items()
    assert image["Config"]["User"] == "10001:10001"
    assert container_engine.do("run", "--rm", publisher_image, "--version").split()[-1] == VERSION


def test_it_carries_a_bill_of_what_is_in_it(container_engine: ContainerEngine, publisher_image: str) -> None:
    bill = json.loads(inside(container_engine, publisher_image, "cat /opt/eventlog/sbom.cdx.json"))
    listed = {(part["name"].lower().replace("_", "-"), part["version"]) for part in bill["components"]}
    there = inside(
        container_engine,
        publisher_image,
        "python -c 'import importlib.metadata as m; [print(d.name, d.version) for d in m.distributions()]'",
    )
    installed = {tuple(line.lower().replace("_", "-").split()) for line in there.splitlines()}
    assert ("eventlog-cdc", VERSION) in installed
    assert installed <= listed


def test_it_holds_no_tools_and_no_tests(container_engine: ContainerEngine, publisher_image: str) -> None:
    found = inside(
        container_engine,
        publisher_image,
        "for name in pip gcc cc make git; do command -v $name; done;"
        " find /opt/eventlog -name tests -o -name '*.h' -o -name '*.pyx'; true",
    )
    assert [line for line in found.splitlines() if line.startswith("/opt")] == []
    assert not {"gcc", "cc", "make", "git"} & {line.rpartition("/")[2] for line in found.splitlines()}


def test_its_user_may_write_to_its_folder_only(container_engine: ContainerEngine, publisher_image: str) -> None:
    script = "for at in / /etc /etc/eventlog /opt/eventlog /usr/bin /var/lib/eventlog /tmp; do [ -w $at ] && echo $at; done; id -u"
    said = inside(container_engine, publisher_image, script, *HARDENED)
    assert said.split() == ["/var/lib/eventlog", *HARDENED[2:3], "10001"]


def test_it_is_ready_soon(container_engine: ContainerEngine, publisher_image: str) -> None:
    """From the command to the answer `ready`, beyond what the engine takes for a container that ends at once.

    The best of some tries counts, for a clock also counts who else works here.
    """
    engine, port = container_engine, free_port()
    kept = (
        "--volume",
        "eventlog-cold:/var/lib/eventlog",
        "-e",
        "EVENTLOG_SOURCE__URL=sqlite:////var/lib/eventlog/app.db",
    )
    options = ("--no-healthcheck", "--publish", f"127.0.0.1:{port}:9187", *kept, *HARDENED)
    engine.do("run", "--rm", *options, publisher_image, "install")

    def begun(*words: str, entrypoint: str, ready: bool) -> float:
        began = time.monotonic()
        container = engine.start(publisher_image, *words, options=(*options, "--entrypoint", entrypoint))
        until(lambda: not ready or answers(f"http://127.0.0.1:{port}/ready"), 60, "it is never ready", look=0.01)
        took = time.monotonic() - began
        engine.remove(container)
        return took

    run = ("run", "--out", "/var/lib/eventlog/documents", "--http", "0.0.0.0:9187")
    own = [begun(entrypoint="/bin/true", ready=False) for _ in range(TRIES)]
    whole = [begun(*run, entrypoint="eventlog", ready=True) for _ in range(TRIES)]
    engine.do("volume", "rm", "eventlog-cold")
    assert min(whole) - min(own) < READY_SECONDS, (own, whole)


def answers(url: str) -> bool:
    """Whether somebody says there that all is well."""
    try:
        with urlopen(url, timeout=5) as answer:  # noqa: S310  # of this machine
            return bool(answer.status == 200)
    except OSError:
        return False


def test_its_health_check_says_how_it_is(container_engine: ContainerEngine, publisher_image: str) -> None:
    begin = "eventlog install && exec eventlog run --out /tmp/out --http 0.0.0.0:9187"
    options = ("-e", "EVENTLOG_SOURCE__URL=sqlite:////tmp/app.db", "--network", "none", *HARDENED)
    container = container_engine.start(publisher_image, "-c", begin, options=(*options, "--entrypoint", "/bin/sh"))
    try:
        said = [""]

        def healthy() -> bool:
            try:
                said[0] = container_engine.do("healthcheck", "run", container)
            except EngineError as error:
                said[0] = str(error)
                return False
            return True

        until(healthy, 30, "it is never healthy")
        container_engine.do("pause", container)
        if container_engine.name == "podman":  # a container that stands still has no answer
            with pytest.raises(EngineError):
                container_engine.do("healthcheck", "run", container)
        container_engine.do("unpause", container)
        began = time.monotonic()
        container_engine.do("stop", "--time", "30", container)
        assert time.monotonic() - began < 15, "it does not end when it is told to"
        assert container_engine.inspect(container, "{{.State.ExitCode}}") == "0"
    finally:
        container_engine.remove(container)


@pytest.mark.long  # it builds the image from nothing
def test_two_builds_are_alike(container_engine: ContainerEngine, publisher_image: str) -> None:
    """Everything but the base image and the clock: what the second half of the build makes is made anew."""
    digest = (
        "cd / && find opt/eventlog etc/passwd etc/group etc/shadow var/lib/eventlog -type f -print0"
        " | sort -z | xargs -0 sha256sum | sha256sum"
    )
    as_root = ("--user", "0")
    first = inside(container_engine, publisher_image, digest, *as_root)
    container_engine.build(
        "eventlog-again", ROOT / "docker" / "Dockerfile", options=("--no-cache", "--build-arg", "REVISION=of-a-test")
    )
    try:
        assert inside(container_engine, "eventlog-again", digest, *as_root) == first
    finally:
        container_engine.do("rmi", "--force", "eventlog-again")
