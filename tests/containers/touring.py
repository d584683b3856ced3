"""The tour of docker/compose.yaml, run by Docker's plugin or by its predecessor, at ports that are free here."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml
from sqlalchemy import Engine, create_engine, text

from tests.hardening.ledger.book import Ledger
from tests.hardening.ledger.checking import FIELDS, READ_BACK, check
from tests.hardening.ledger.outputs import XdsFiles
from tests.hardening.ledger.runs import read_log, waiting
from tests.hardening.ledger.writers import TABLES, Writer
from tests.support.containers import ROOT, ContainerEngine, Health
from tests.support.servers import absent, free_port

DOCKER: Final = ROOT / "docker"
PROJECT: Final = "eventlogtour"


class Tour:
    """What runs of it; the names of services are those of the file."""

    def __init__(self, engine: ContainerEngine, address: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.file = folder / "compose.yaml"
        self._variables = os.environ | {"DOCKER_HOST": address, "COMPOSE_HTTP_TIMEOUT": "300"}
        self._words = _compose(engine)
        whole: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
        whole.pop("name")  # docker-compose 1.29 does not know it
        self.ports = {name: free_port() for name, service in whole["services"].items() if service.get("ports")}
        for name, port in self.ports.items():
            inside = whole["services"][name]["ports"][0].rpartition(":")[2]
            whole["services"][name]["ports"] = [f"127.0.0.1:{port}:{inside}"]
        self.whole = whole
        self.write()

    def write(self, changed: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Writes the file, with what a test wants otherwise of some services."""
        services = {
            name: {
                key: entry for key, entry in {**service, **(changed or {}).get(name, {})}.items() if entry is not None
            }
            for name, service in self.whole["services"].items()
        }
        self.file.write_text(yaml.safe_dump({**self.whole, "services": services}))

    def compose(self, *words: str, profiles: tuple[str, ...] = ()) -> str:
        """What `docker compose` prints."""
        named = [word for profile in profiles for word in ("--profile", profile)]
        place = ["--project-name", PROJECT, "--project-directory", str(DOCKER), "--file", str(self.file)]
        done = subprocess.run(
            [*self._words, *place, *named, *words],
            capture_output=True,
            text=True,
            check=False,
            env=self._variables,
            timeout=600,
        )
        assert done.returncode == 0, f"compose {' '.join(words)}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        return done.stdout

    def container(self, service: str) -> str:
        """The number of a service's container, which may have stopped."""
        return self.engine.do(
            "ps", "--all", "--quiet", "--filter", f"label=com.docker.compose.service={service}"
        ).strip()

    def ready(self) -> bool:
        """Whether the publisher says so."""
        return self.asked("/ready")[0] == 200

    def inside(self, service: str, *command: str) -> str:
        """What a command prints in a container."""
        return self.engine.do("exec", self.container(service), *command)

    def once(self, service: str, script: str, *options: str) -> str:
        """What a shell prints in a new container that is like one of a service; docker-compose 1.29 asks Podman for too much."""
        described = self.whole["services"][service]
        variables = [word for name, entry in described["environment"].items() for word in ("-e", f"{name}={entry}")]
        hardened = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--no-healthcheck")  # noqa: S108  # its own
        words = (*variables, *hardened, *options, "--network", f"{PROJECT}_default", "--entrypoint", "/bin/sh")
        return self.engine.do("run", "--rm", *words, described["image"], "-ec", script, seconds=300, both=True)

    def healthy(self, service: str) -> bool:
        """Whether its health check says so."""
        return self.engine.inspect(self.container(service), "{{.State.Health.Status}}") == "healthy"

    def psql(self, statement: str) -> str:
        """As the page of the tour has it: whoever takes it is the user postgres."""
        return self.inside("postgres", "psql", "-U", "postgres", "-At", "app", "-c", statement).strip()

    def database(self) -> Engine:
        """As a writer on this machine reaches it."""
        url = f"postgresql+psycopg://postgres:tour@127.0.0.1:{self.ports['postgres']}/app"
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})

    def asked(self, path: str, token: str = "") -> tuple[int, str]:
        """What the publisher's port answers; nobody there is 0."""
        try:
            return answered(self.ports["publisher"], path, token)
        except OSError as error:
            return 0, str(error)

    def track(self, table: str, events: str) -> None:
        """By the publisher's own user, who owns the tables."""
        self.inside("publisher", "eventlog", "track", table, "--events", events)

    def documents(self) -> str:
        """All documents that were published, one after the other."""
        return self.inside("publisher", "sh", "-c", "cat /var/lib/eventlog/documents/*.xml")

    def copied(self, folder: Path) -> Path:
        """The documents as files of this machine; what they are copied from may have stopped."""
        shutil.rmtree(folder, ignore_errors=True)
        self.engine.do("cp", f"{self.container('publisher')}:/var/lib/eventlog/documents", folder)
        return folder


def answered(port: int, path: str, token: str = "", seconds: float = 10) -> tuple[int, str]:
    """What a port of this machine answers; OSError where nobody is there."""
    request = Request(f"http://127.0.0.1:{port}{path}")  # an address of this machine
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urlopen(request, timeout=seconds) as answer:  # noqa: S310  # as above
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, ""


class Published(Protocol):
    """What publishes in containers: the tour, or pods."""

    def database(self) -> Engine:
        """As a writer on this machine reaches it."""

    def track(self, table: str, events: str) -> None:
        """Tracks a table."""

    def copied(self, folder: Path) -> Path:
        """The documents as files of this machine."""


class Watched:
    """The ledger's tables beside those of the tour, and who writes to them from this machine."""

    def __init__(self, published: Published, seed: int) -> None:
        self.published = published
        self.database = published.database()
        self.ledger = Ledger()
        self._dice = random.Random(seed)
        with self.database.begin() as connection:
            for statement in ("SET LOCAL ROLE eventlog", *TABLES):
                connection.execute(text(statement))
        for table, events in ((FIELDS, "field"), (READ_BACK, "row-back")):
            published.track(table, events)
        self.works = [partial(self._write, Writer(self.database, self.ledger, number, seed)) for number in (1, 2)]
        """What each writer does again and again."""

    def _write(self, writer: Writer) -> None:
        """A small transaction, which may take its time."""
        writer.small(held=self._dice.uniform(0, 0.1))
        time.sleep(0.02)

    def goes_on(self, versions: int = 10) -> None:
        """Waits until so much more was written."""
        enough = len(self.ledger) + versions
        until(lambda: len(self.ledger) >= enough, why="nobody writes")

    def findings(self, folder: Path) -> list[str]:
        """What is wrong once nothing waits."""
        until(lambda: not waiting(self.database), 120, "rows wait, and nobody publishes them")
        log = [row for row in read_log(self.database) if row.place[0] in (FIELDS, READ_BACK)]
        for document in self.published.copied(folder / "xds").glob("*.xml"):
            if b'class-name="usr' in document.read_bytes():  # the tour's own tables, of which no ledger is kept
                document.unlink()
        return [str(one) for one in check(self.ledger, log, [XdsFiles(folder).shown()], Counter())][:10]


def _compose(engine: ContainerEngine) -> list[str]:
    plugin = ["docker", "compose"]
    if (
        engine.name == "docker"
        and not subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode
    ):
        return plugin
    if shutil.which("docker-compose") is None:
        absent("containers", "there is neither docker compose nor docker-compose")
    return ["docker-compose"]


@contextmanager
def touring(engine: ContainerEngine, address: str, folder: Path) -> Iterator[Tour]:
    """The tour before anything of it runs; nothing of it is left."""
    tour = Tour(engine, address, folder)
    with Health(engine):
        try:
            yield tour
        finally:
            _down(tour)


def _down(tour: Tour) -> None:
    everything = tuple({name for service in tour.whole["services"].values() for name in service.get("profiles", [])})
    tour.compose("down", "--volumes", "--timeout", "10", profiles=everything)


def until(is_so: Callable[[], object], seconds: float = 60.0, why: str = "", look: float = 0.2) -> None:
    """Waits for something, with a look every so many seconds."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, why or "it does not come"
        time.sleep(look)
