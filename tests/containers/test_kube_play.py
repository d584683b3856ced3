"""What the chart writes runs as pods of Podman: probes, the secret, limits; a rolling update and evictions lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.containers.pods import CLAIM, CONFIG, POSTGRES, SECRET, Pods, limits, pods_running
from tests.containers.test_helm import rendered
from tests.containers.touring import Watched, until
from tests.hardening.ledger.writers import at_work
from tests.support.containers import ROOT, ContainerEngine, EngineError, base_image

pytestmark = pytest.mark.containers

IMAGE: Final = "localhost/eventlog:latest"
VALUES: Final[dict[str, Any]] = {
    "image": {"repository": "localhost/eventlog", "tag": "latest", "pullPolicy": "Never"},
    "config": CONFIG,
    "existingSecret": SECRET,
    "persistence": {"existingClaim": CLAIM},
}
OTHER_CONFIG: Final = CONFIG.replace("polling_interval = 1", "polling_interval = 2")
SEED: Final = 39
SOON: Final = 60.0
"""Seconds in which a publisher that is told to go is gone; the chart would give it 300."""

Resources = list[dict[str, Any]]


@pytest.fixture(scope="module")
def pods(
    container_engine: ContainerEngine, publisher_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pods]:
    if container_engine.name != "podman":
        pytest.skip("only Podman plays what the chart writes")
    base_image(container_engine, POSTGRES)
    with pods_running(container_engine, tmp_path_factory.mktemp("pods")) as begun:
        yield begun


@pytest.fixture
def chart(tmp_path: Path) -> Resources:
    """What Helm writes for a user who has an image, a configuration, a Secret and a volume."""
    return read(rendered(tmp_path, VALUES))


def read(written: str) -> Resources:
    return [one for one in yaml.safe_load_all(written) if one]


def one_of(resources: Resources, kind: str) -> dict[str, Any]:
    [found] = [one for one in resources if one["kind"] == kind]
    return found


def test_the_plain_manifest_publishes_what_its_user_put_into_it(pods: Pods) -> None:
    resources = read((ROOT / "docker" / "kubernetes" / "eventlog.yaml").read_text())
    one_of(resources, "ConfigMap")["data"]["eventlog.toml"] = CONFIG
    [container] = one_of(resources, "Deployment")["spec"]["template"]["spec"]["containers"]
    container["image"] = IMAGE
    pods.play("plain", resources)
    until(lambda: pods.ready("plain"), SOON, "it is not ready")
    pods.psql("INSERT INTO usr VALUES (1, 'Jack', 'Frost')")
    until(lambda: "Frost" in pods.inside("plain", "cat /var/lib/eventlog/documents/*.xml; true"), SOON, "no document")
    assert pods.asked("plain", "/")[0] in (401, 403)
    assert "event_log" in pods.asked("plain", "/", pods.token)[1]
    assert pods.evict("plain") < SOON


def test_a_pod_has_no_rights_and_its_limits(pods: Pods, chart: Resources) -> None:
    pods.play("limited", chart)
    until(lambda: pods.ready("limited"), SOON, "it is not ready")
    told = pods.inside("limited", "grep -E '^(Cap(Eff|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status")
    facts = dict(line.split(":\t") for line in told.splitlines())
    assert facts == {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
    assert pods.inside("limited", "id -u; id -g").split() == ["10001", "10001"]
    folders = "/ /etc/eventlog /run/secrets/eventlog /opt/eventlog"
    refusals = pods.inside("limited", f"for at in {folders}; do touch $at/x 2>&1; done; true").splitlines()
    assert [line.rpartition(": ")[2] for line in refusals] == ["Read-only file system"] * 4
    assert limits(pods.engine, "limited")["Memory"] == 512 << 20
    with pytest.raises(EngineError, match="137"):  # what takes more is killed
        pods.inside("limited", "python -c 'print(len(b\"x\" * (600 << 20)))'")
    pods.remove("limited")


def test_a_database_that_is_away_makes_it_unready_and_not_unhealthy(pods: Pods, chart: Resources) -> None:
    pods.play("waiting", chart)
    until(lambda: pods.ready("waiting"), SOON, "it is not ready")
    pods.engine.do("stop", "--time", "20", "database")
    until(lambda: not pods.ready("waiting"), SOON, "it is ready without a database")
    assert pods.probe("waiting", "livenessProbe")
    pods.engine.do("start", "database")
    until(lambda: pods.ready("waiting"), SOON, "it does not come back")
    pods.evict("waiting")


def test_a_rolling_update_and_evictions_lose_nothing(pods: Pods, chart: Resources, tmp_path: Path) -> None:
    """As the Deployment says: two replicas, of which a rolling update first makes a new one and then takes an old one away."""
    budget = one_of(chart, "PodDisruptionBudget")["spec"]["minAvailable"]
    assert one_of(chart, "Deployment")["spec"]["replicas"] == 2
    newer = read(rendered(tmp_path, VALUES | {"config": OTHER_CONFIG}))
    running: list[str] = []

    def begin(name: str, resources: Resources) -> None:
        pods.play(name, resources)
        until(lambda: pods.ready(name), SOON, f"{name} is not ready")
        running.append(name)

    def only_one_publishes() -> bool:
        return sorted(map(pods.state, running)) == ["publishing"] + ["standby"] * (len(running) - 1)

    def evict(name: str) -> None:
        running.remove(name)
        assert sum(map(pods.ready, running)) >= budget
        assert pods.evict(name) < SOON
        until(only_one_publishes, SOON, "nobody takes over")

    def publishing() -> str:
        return next(name for name in running if pods.state(name) == "publishing")

    begin("first", chart)
    begin("second", chart)
    until(only_one_publishes, SOON, "one must publish, and the other stand by")
    watched = Watched(pods, SEED)
    with at_work(*watched.works):
        for old, new in (("first", "third"), ("second", "fourth")):
            begin(new, newer)
            evict(old)
        evict(publishing())  # a node is drained
        begin("fifth", newer)
        lost = publishing()  # a node is gone
        running.remove(lost)
        pods.engine.do("pod", "kill", lost)
        pods.remove(lost)
        until(only_one_publishes, SOON, "nobody takes over")
    assert watched.findings(tmp_path) == []
    assert len(watched.ledger) > 100
    watched.database.dispose()
