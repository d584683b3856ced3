"""Pods of the chart's Deployment, made by `podman kube play`. What a controller and a kubelet do beside it is done here: they
make a pod of the template, ask its probes, and evict it within its grace.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import yaml
from sqlalchemy import Engine, create_engine

from tests.containers.touring import answered, until
from tests.support.containers import ROOT, ContainerEngine, EngineError
from tests.support.servers import free_port

POSTGRES: Final = "docker.io/library/postgres:16-bookworm"
NETWORK: Final = "eventlogpods"
URL: Final = "postgresql+psycopg://eventlog:tour@database/app"
SECRET: Final = "eventlog-secret"
CLAIM: Final = "eventlog-documents"
PROBES: Final = ("livenessProbe", "readinessProbe")
DECODES_SECRETS: Final = (4, 4)
"""The version of Podman that hands over what a Secret means, as Kubernetes does; older ones hand over its base64."""

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


class Pods:
    """Pods by their names, in one network with the database that they publish."""

    def __init__(self, engine: ContainerEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.token = secrets.token_hex(32)
        self._database_port = free_port()
        self._ports: dict[str, int] = {}
        self._templates: dict[str, Mapping[str, Any]] = {}

    def begin(self) -> None:
        """The database with a log and two tracked tables, and the Secret that the chart leaves to its user."""
        self.engine.do("network", "create", NETWORK)
        tables = ROOT / "docker" / "init" / "postgres.sql"
        self.engine.start(
            POSTGRES,
            options=(
                *("--network", NETWORK, "--name", "database", "--publish", f"127.0.0.1:{self._database_port}:5432"),
                *("-e", "POSTGRES_DB=app", "-e", "POSTGRES_PASSWORD=tour"),
                *("--volume", f"{tables}:/docker-entrypoint-initdb.d/tables.sql:ro"),
            ),
        )
        until(self._answers, 120, "the database does not answer")
        self.once("eventlog install; eventlog track usr --child usr_phone; eventlog check")
        data = {"password": "tour", "token": self.token}
        if tuple(int(part) for part in self.engine.version.split(".")[:2]) >= DECODES_SECRETS:
            data = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": data}
        (self.folder / "secret.yaml").write_text(yaml.safe_dump(secret))
        self.engine.do("secret", "create", SECRET, self.folder / "secret.yaml")

    def end(self) -> None:
        """Nothing of it is left."""
        for name in self._ports:
            self._quietly("pod", "rm", "--force", name)
        self._quietly("rm", "--force", "--volumes", "--time", "0", "database")
        self._quietly("volume", "rm", "--all", "--force")
        self._quietly("secret", "rm", SECRET)
        self._quietly("network", "rm", "--force", NETWORK)

    def play(self, name: str, resources: Sequence[Mapping[str, Any]]) -> None:
        """A pod of the Deployment that is among resources, and its ConfigMap."""
        [template] = [one["spec"]["template"] for one in resources if one["kind"] == "Deployment"]
        self._ports[name] = free_port()
        self._templates[name] = template
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            # Podman 4 takes annotations to be as short as labels, and the sum of the configuration is longer.
            "metadata": {"name": name, "labels": template["metadata"]["labels"]},
            "spec": _for_podman(template["spec"], name, self._ports[name]),
        }
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump_all([*(one for one in resources if one["kind"] == "ConfigMap"), pod]))
        self.engine.do("kube", "play", "--network", NETWORK, file)

    def probe(self, name: str, which: str) -> bool:
        """What a kubelet learns by a probe of the template: only an answer of 200 to 399 in time is a good one."""
        [container] = self._templates[name]["spec"]["containers"]
        get = container[which]["httpGet"]
        [port] = [port for port in container["ports"] if port["name"] == get["port"]]
        assert port["containerPort"] == 9187, "which the engine leads this machine's port to"
        try:
            return 200 <= self.asked(name, get["path"], seconds=container[which].get("timeoutSeconds", 1))[0] < 400
        except OSError:
            return False

    def ready(self, name: str) -> bool:
        return self.probe(name, "readinessProbe")

    def asked(self, name: str, path: str, token: str = "", seconds: float = 10) -> tuple[int, str]:
        """What a pod's port answers; OSError where nobody is there."""
        return answered(self._ports[name], path, token, seconds)

    def state(self, name: str) -> str:
        """Publishing or standby, as its metrics say."""
        try:
            lines = self.asked(name, "/metrics")[1].splitlines()
        except OSError:
            return "away"
        states = [line for line in lines if line.startswith("eventlog_state{") and float(line.split()[-1]) == 1]
        return states[0].partition('state="')[2].partition('"')[0] if states else ""

    def evict(self, name: str) -> float:
        """SIGTERM, the grace that the template gives, and the pod is gone; the answer is how long it took."""
        grace = self._templates[name]["spec"]["terminationGracePeriodSeconds"]
        began = time.monotonic()
        # Not `pod stop`, which takes the network away first; Kubernetes keeps it until the containers have ended.
        self.engine.do("stop", "--time", str(grace), f"{name}-eventlog", seconds=grace + 60)
        took = time.monotonic() - began
        assert self.engine.inspect(f"{name}-eventlog", "{{.State.ExitCode}}") == "0", self.log(name)
        self.remove(name)
        return took

    def remove(self, name: str) -> None:
        self.engine.do("pod", "rm", "--force", name)
        del self._ports[name]

    def inside(self, name: str, script: str) -> str:
        """What a shell prints in a pod's container."""
        return self.engine.do("exec", f"{name}-eventlog", "sh", "-c", script, both=True)

    def log(self, name: str) -> str:
        return self.engine.do("logs", f"{name}-eventlog", both=True)[-2000:]

    def once(self, script: str) -> str:
        """What a shell prints in a new container with the owner's rights, as whoever installs has them."""
        words = ("--rm", "--network", NETWORK, "--no-healthcheck", "-e", f"EVENTLOG_DATABASE={URL}")
        return self.engine.do("run", *words, "--entrypoint", "/bin/sh", "eventlog", "-ec", script, both=True)

    def psql(self, statement: str) -> None:
        """A change of another user's than the publisher's, which passes over its own."""
        self.engine.do("exec", "database", "psql", "-U", "postgres", "app", "-c", statement)

    def database(self) -> Engine:
        """As a writer on this machine reaches it."""
        url = f"postgresql+psycopg://postgres:tour@127.0.0.1:{self._database_port}/app"
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})

    def track(self, table: str, events: str) -> None:
        self.once(f"eventlog track {table} --events {events}")

    def copied(self, folder: Path) -> Path:
        """The documents of the volume that all pods reach, as files of this machine."""
        self.engine.do("cp", f"{next(iter(self._ports))}-eventlog:/var/lib/eventlog/documents", folder)
        return folder

    def _answers(self) -> bool:
        try:
            self.engine.do("exec", "database", "psql", "-h", "database", "-U", "eventlog", "app", "-c", "SELECT 1")
        except EngineError as error:
            return "password" in str(error)  # it listens, and asks for one
        return True

    def _quietly(self, *words: str) -> None:
        try:
            self.engine.do(*words)
        except EngineError:
            return  # it is not there


def _for_podman(described: Mapping[str, Any], name: str, port: int) -> dict[str, Any]:
    """The template's pod without what Podman 4 does otherwise than Kubernetes."""
    spec = deepcopy(dict(described))
    [container] = spec["containers"]
    for probe in PROBES:  # Podman would have the image's curl ask, which it has not
        del container[probe]
    container["ports"][0] |= {"hostPort": port, "hostIP": "127.0.0.1"}  # else each pod takes the same one
    own = {volume["name"] for volume in spec["volumes"] if "emptyDir" in volume}
    for volume in [*spec["volumes"], *container["volumeMounts"]]:
        if volume["name"] in own:  # to Podman pods with folders of one name share them
            volume["name"] = f"{name}-{volume['name']}"
        if "secret" in volume:
            # A volume is named as what it is filled with, so a ConfigMap of the same name would be in it too.
            volume["secret"] |= {"secretName": SECRET, "optional": False}  # without the latter Podman 4.3 breaks down
    return spec


@contextmanager
def pods_running(engine: ContainerEngine, folder: Path) -> Iterator[Pods]:
    """The network, the database and the Secret, before there is a pod."""
    pods = Pods(engine, folder)
    try:
        pods.begin()
        yield pods
    finally:
        pods.end()


def limits(engine: ContainerEngine, name: str) -> Mapping[str, Any]:
    """What the engine keeps a pod's container from."""
    [told] = json.loads(engine.do("inspect", f"{name}-eventlog"))
    found: Mapping[str, Any] = told["HostConfig"]
    return found
