"""The images as an engine builds and runs them: small, without rights, with what is said of them, and quickly ready."""

from __future__ import annotations

import json
import time

import pytest

from eventlog.version import VERSION
from tests.containers.touring import until
from tests.support.containers import ROOT, ContainerEngine, EngineError

pytestmark = pytest.mark.containers

LARGEST_BYTES = 250_000_000
READY_SECONDS = 2.0
HARDENED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")  # noqa: S108  # its own
BEGINNING = """
eventlog install --database sqlite:////tmp/app.db >/dev/null
python - <<'END'
import json, resource, subprocess, time, urllib.request
began = time.monotonic()
words = ["--database", "sqlite:////tmp/app.db", "--out", "/tmp/out", "--http", "127.0.0.1:9187"]
publisher = subprocess.Popen(["eventlog", "run", *words], stderr=subprocess.DEVNULL)
while True:
    try:
        urllib.request.urlopen("http://127.0.0.1:9187/ready", timeout=5)
        break
    except OSError:
        time.sleep(0.01)
clock = time.monotonic() - began
publisher.kill()
publisher.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"clock": clock, "cpu": used.ru_utime + used.ru_stime}))
END
"""


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


def test_its_rights_are_none(container_engine: ContainerEngine, publisher_image: str) -> None:
    said = inside(container_engine, publisher_image, "grep -E 'Cap|NoNewPrivs' /proc/self/status", *HARDENED)
    facts = dict(line.split(":\t") for line in said.splitlines())
    assert {facts[name] for name in ("CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"


def test_it_is_ready_soon(container_engine: ContainerEngine, publisher_image: str) -> None:
    """From the process that begins to the answer `ready`, in seconds of CPU: a clock would count who else works here."""
    measured = json.loads(inside(container_engine, publisher_image, BEGINNING, *HARDENED).splitlines()[-1])
    assert measured["cpu"] < READY_SECONDS, measured


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
