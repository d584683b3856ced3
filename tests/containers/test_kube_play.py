"""What the chart writes runs as pods: probes, a secret, no rights; one stands by, and takes over when the other is evicted."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.containers.test_helm import rendered
from tests.containers.touring import until
from tests.support.containers import ContainerEngine, EngineError, base_image

pytestmark = pytest.mark.containers

POSTGRES: Final = "docker.io/library/postgres:16-bookworm"
NETWORK: Final = "eventlogpods"
CONFIG: Final = """
[source]
url = "postgresql+psycopg://eventlog:${file:/run/secrets/eventlog/password}@database/app"
[publisher]
lease = 2
polling_interval = 1
[web]
token = "${file:/run/secrets/eventlog/token}"
[[output]]
sink = "files"
path = "/var/lib/eventlog/documents"
"""
VALUES: Final[dict[str, Any]] = {
    "image": {"repository": "localhost/eventlog", "tag": "latest", "pullPolicy": "Never"},
    "replicas": 1,
    "config": CONFIG,
    "terminationGracePeriodSeconds": 20,
}


class Pods:
    """Pods that Podman makes of the chart's Deployment, one for each name."""

    def __init__(self, engine: ContainerEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder

    def play(self, name: str) -> None:
        """A pod as the chart describes it; Podman knows neither services nor several replicas."""
        resources = [one for one in yaml.safe_load_all(rendered(self.folder, VALUES)) if one]
        secret = {key: base64.b64encode(text).decode() for key, text in (("password", b"tour"), ("token", b"t" * 32))}
        [deployment] = [one for one in resources if one["kind"] == "Deployment"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": deployment["spec"]["template"]["spec"],
        }
        for volume in pod["spec"]["volumes"]:  # without this Podman 4.3 breaks down; with it it means the same
            if "secret" in volume:
                volume["secret"]["optional"] = False
        configuration = [one for one in resources if one["kind"] == "ConfigMap"]
        kept = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "eventlog"}, "data": secret}
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump_all([*configuration, pod]))
        (self.folder / "secret.yaml").write_text(yaml.safe_dump(kept))
        try:
            self.engine.do("secret", "inspect", "eventlog")
        except EngineError:
            self.engine.do("secret", "create", "eventlog", self.folder / "secret.yaml")
        self.engine.do("kube", "play", "--network", NETWORK, file)

    def inside(self, name: str, *command: str) -> str:
        return self.engine.do("exec", f"{name}-eventlog", *command)

    def ready(self, name: str) -> bool:
        """What the readiness probe asks."""
        asking = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9187/ready').read().decode())"
        try:
            self.inside(name, "python", "-c", asking)
        except EngineError:
            log = self.engine.do("logs", f"{name}-eventlog", both=True)
            if "fatal" in log:  # it does not come back by itself here
                pytest.fail(log)
            return False
        return True

    def state(self, name: str) -> str:
        """Publishing or standby, as its metrics say."""
        asking = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9187/metrics').read().decode())"
        lines = self.inside(name, "python", "-c", asking).splitlines()
        [state] = [line for line in lines if line.startswith("eventlog_state{") and line.endswith(" 1.0")]
        return state.partition('state="')[2].partition('"')[0]


@pytest.fixture
def pods(container_engine: ContainerEngine, publisher_image: str, tmp_path: Path) -> Iterator[Pods]:
    """A network with a PostgreSQL that has a log and a tracked table."""
    engine = container_engine
    if engine.name != "podman":
        pytest.skip("only Podman plays what the chart writes")
    base_image(engine, POSTGRES)
    engine.do("network", "create", NETWORK)
    tables = Path(__file__).resolve().parents[2] / "docker" / "init" / "postgres.sql"
    variables = ("-e", "POSTGRES_DB=app", "-e", "POSTGRES_PASSWORD=tour")
    volume = ("--volume", f"{tables}:/docker-entrypoint-initdb.d/tables.sql:ro")
    database = engine.start(POSTGRES, options=("--network", NETWORK, "--name", "database", *variables, *volume))
    made = Pods(engine, tmp_path)
    try:
        url = "postgresql+psycopg://eventlog:tour@database/app"
        script = f"eventlog install -d {url} && eventlog track usr -d {url}"

        def prepared() -> bool:
            try:
                engine.do("run", "--rm", "--network", NETWORK, "--entrypoint", "sh", publisher_image, "-c", script)
            except EngineError:
                return False
            return True

        until(prepared, 120, "the database does not answer")
        yield made
    finally:
        for line in json.loads(engine.do("pod", "ps", "--format", "json") or "[]") or []:
            engine.do("pod", "rm", "--force", line["Id"])
        engine.remove(database)
        for kind in (("secret", "rm", "eventlog"), ("network", "rm", "--force", NETWORK)):
            engine.do(*kind)


def insert(pods: Pods, number: int) -> None:
    pods.engine.do(
        "exec", "database", "psql", "-U", "postgres", "app", "-c", f"INSERT INTO usr VALUES ({number}, 'a', 'b')"
    )


def left(pods: Pods) -> int:
    asked = "SELECT count(*) FROM event_log WHERE status = 'N'"
    return int(pods.engine.do("exec", "database", "psql", "-U", "postgres", "-At", "app", "-c", asked))


def test_one_publishes_and_the_other_takes_over(pods: Pods) -> None:
    pods.play("first")
    until(lambda: pods.ready("first"), 60, "the first pod is not ready")
    until(lambda: pods.state("first") == "publishing", 60, "the first pod does not publish")
    pods.play("second")
    until(lambda: pods.ready("second"), 60, "the second pod is not ready")
    assert pods.state("second") == "standby"
    insert(pods, 1)
    until(lambda: not left(pods), 60, "rows wait")
    facts = pods.inside(
        "first", "sh", "-c", "grep CapEff /proc/self/status; id -u; touch /opt/x 2>&1; ls -l /run/secrets/eventlog"
    )
    assert "CapEff:\t" + "0" * 16 in facts
    assert "\n10001\n" in facts
    assert "Read-only file system" in facts
    memory = pods.engine.inspect("first-eventlog", "{{.HostConfig.Memory}}")
    assert int(memory) == 512 << 20
    pods.engine.do("pod", "stop", "--time", "20", "first")  # an eviction: SIGTERM, and the grace of the chart
    insert(pods, 2)
    until(lambda: pods.state("second") == "publishing", 60, "the second pod does not take over")
    until(lambda: not left(pods), 60, "rows wait")
    assert pods.engine.inspect("first-eventlog", "{{.State.ExitCode}}") == "0"
    pods.play("third")  # the new one of a rolling update stands by until the old one goes
    until(lambda: pods.ready("third"), 60, "the third pod is not ready")
    pods.engine.do("pod", "kill", "second")
    insert(pods, 3)
    until(lambda: pods.state("third") == "publishing", 60, "the third pod does not take over")
    until(lambda: not left(pods), 60, "rows wait")
