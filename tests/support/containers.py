"""A container engine for tests: Docker where it answers, else Podman, which is started here and needs root and no registry.

`./dev fetch containers` brings the images that the project's own begin with: from a registry, or made of Debian's
packages under the names that the registry has for them, so that Dockerfiles and the tour stay as users have them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import pytest
from msgspec import Struct

from tests.support.fetching import UnfetchedError, copy_jars, engine_home, fetched, run
from tests.support.servers import absent

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = ("podman", "crun", "catatonit", "iptables", "nsenter", "debootstrap")
SETTINGS: Final = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]  # more than these only a machine's owner may have
[engine]
lock_type = "file"
cgroup_manager = "cgroupfs"
events_logger = "file"
compat_api_enforce_docker_hub = false  # an image `eventlog` is the one that was built here
[network]
network_backend = "netavark"
network_config_dir = "{home}/networks"
"""
# crun refuses two versions of cgroups at once, which machines without systemd mount side by side.
HOLDER: Final = "umount /sys/fs/cgroup/unified /sys/fs/cgroup/systemd 2>/dev/null; exec sleep infinity"
READY_SECONDS: Final = 60.0
_used: Final[list[tuple[str, float]]] = []
"""The engine of this run, and since when; it is told by the process that had it."""


class EngineError(Exception):
    """The engine refuses; the text says what it says."""


class ContainerEngine:
    """An engine that answers. `program` is Docker's client, or a script that calls Podman in its own namespace."""

    def __init__(self, program: Path, variables: Mapping[str, str]) -> None:
        self.program = program
        self.variables = variables
        self.name = "docker" if program.name == "docker" else "podman"
        self.version = self.do("version", "--format", "{{.Client.Version}}").strip()

    def do(self, *words: str | Path, said: str | None = None, seconds: float = 120, both: bool = False) -> str:
        """Run a command of the engine and return its output; raise EngineError on failure."""
        command = [str(self.program), *map(str, words)]
        surroundings = {name: entry for name, entry in os.environ.items() if name != "SSL_CERT_FILE"}
        done = subprocess.run(
            command,
            check=False,
            text=True,
            input=said,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else subprocess.PIPE,
            env=surroundings | dict(self.variables),
            cwd=ROOT,
            timeout=seconds,
        )
        if done.returncode:
            told = (done.stderr or done.stdout).strip()[-2000:]
            raise EngineError(f"{self.name} {' '.join(map(str, words[:6]))} ended with {done.returncode}: {told}")
        return done.stdout

    def has(self, image: str) -> bool:
        """Return True if the image is here."""
        with suppress(EngineError):
            self.do("image", "inspect", image)
            return True
        return False

    def build(self, image: str, dockerfile: Path, folder: Path = ROOT, options: Sequence[str] = ()) -> None:
        """Build an image from a Dockerfile; the engine caches its steps."""
        # A container may not mount what a build of Podman's mounts, where this machine is one itself.
        ours = ("--isolation", "chroot", "--format", "docker") if self.name == "podman" else ()
        words = ("--network", "host", *ours, *options, "--file", dockerfile, "--tag", image, folder)
        self.do("build", *words, seconds=1800)

    def start(self, image: str, *command: str, options: Sequence[str] = ()) -> str:
        """Start a container in the background; return its id."""
        return self.do("run", "--detach", *options, image, *command).strip()

    def inspect(self, container: str, form: str) -> str:
        return self.do("inspect", "--format", form, container).strip()

    def remove(self, *containers: str) -> None:
        with suppress(EngineError):
            self.do("rm", "--force", "--volumes", *containers)


class Health:
    """Asks containers how they are, which Podman leaves to systemd and which is not there."""

    def __init__(self, engine: ContainerEngine) -> None:
        self._engine = engine
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        if self._engine.name == "podman":
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            with suppress(EngineError, subprocess.TimeoutExpired):
                for name in self._engine.do("ps", "--format", "{{.Names}}").split():
                    with suppress(EngineError):  # it is not healthy, or has no check
                        self._engine.do("healthcheck", "run", name, seconds=30)


@contextmanager
def engine_running(folder: Path) -> Iterator[ContainerEngine]:
    """Start Docker or Podman; raise UnfetchedError if there is neither."""
    docker = shutil.which("docker")
    if docker is not None and not subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        yield ContainerEngine(Path(docker), {})
        return
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise UnfetchedError(f"no Docker answers, and for Podman there is no {missing[0]}")
    if os.geteuid() != 0:
        raise UnfetchedError("no Docker answers, and Podman is started here by root only")
    with _podman(folder) as engine:
        yield engine


@contextmanager
def _podman(folder: Path) -> Iterator[ContainerEngine]:
    """Start Podman with all its files in one place, one run at a time, in its own namespace."""
    home = engine_home()
    home.mkdir(parents=True, exist_ok=True)
    (home / "containers.conf").write_text(SETTINGS.format(home=home))
    with (home / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may have it
        words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", HOLDER]
        holder = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            engine = _entered(holder, home, folder)
            with suppress(EngineError):
                _emptied(engine)  # of what a run left that was killed
            yield engine
            with suppress(EngineError):  # where the run was killed, its namespace has gone
                _emptied(engine)
        finally:
            holder.kill()
            holder.wait()


def _entered(holder: subprocess.Popen[bytes], home: Path, folder: Path) -> ContainerEngine:
    """Make a program `podman` that enters the namespace; others find it by name."""
    program = folder / "bin" / "podman"
    program.parent.mkdir()
    places = f"--root {home}/store --runroot {home}/run --tmpdir {home}/tmp --storage-driver overlay"  # noqa: S108  # it is below the home
    program.write_text(f'#!/bin/sh\nexec nsenter --mount=/proc/{holder.pid}/ns/mnt --wd="$PWD" podman {places} "$@"\n')
    program.chmod(0o755)
    variables = {
        "CONTAINERS_CONF": str(home / "containers.conf"),
        "DISABLE_HC_SYSTEMD": "true",
        "BUILDAH_ISOLATION": "chroot",
    }
    until = time.monotonic() + READY_SECONDS
    while Path(f"/proc/{holder.pid}/comm").read_text() != "sleep\n":  # until then it changes its mounts
        if holder.poll() is not None or time.monotonic() > until:
            raise UnfetchedError("no namespace for Podman can be made here")
        time.sleep(0.01)
    try:
        engine = ContainerEngine(program, variables)
        engine.do("info")
    except EngineError as error:
        raise UnfetchedError(str(error)) from error
    return engine


def _emptied(engine: ContainerEngine) -> None:
    """Removes everything but images."""
    engine.do("rm", "--all", "--force", "--volumes", "--time", "0")
    engine.do("pod", "rm", "--all", "--force")
    engine.do("volume", "rm", "--all", "--force")
    engine.do("network", "prune", "--force")
    engine.do("image", "prune", "--force")


@contextmanager
def api(engine: ContainerEngine, folder: Path) -> Iterator[str]:
    """Serve Docker's API; yield its address."""
    if engine.name == "docker":
        yield os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        return
    socket = folder / "api"
    command = [str(engine.program), "system", "service", "--time", "0", f"unix://{socket}"]
    with (folder / "api.log").open("wb") as log:
        service = subprocess.Popen(command, env=os.environ | dict(engine.variables), stdout=log, stderr=log)
    try:
        until = time.monotonic() + READY_SECONDS
        while not socket.exists():
            alive = service.poll() is None and time.monotonic() < until
            assert alive, (folder / "api.log").read_text()
            time.sleep(0.05)
        yield f"unix://{socket}"
    finally:
        service.terminate()
        service.wait(30)


class StartingImage(Struct, frozen=True):
    """An image that the project's own or the tour begin with, and how it is made where no registry has it."""

    name: str
    folder: str = ""
    """Below tests/containers/images; the first one is made of nothing but Debian."""


BASES: Final = (
    StartingImage("docker.io/library/python:3.11-slim-bookworm"),
    StartingImage("docker.io/library/postgres:16-bookworm", "postgres"),
    StartingImage("docker.io/library/mariadb:11.4", "mariadb"),
    StartingImage("docker.io/apache/kafka:3.9.0", "kafka"),
)


def bring_images(folder: Path) -> None:
    """Pulls or makes the images; the folder says how each of them was had."""
    had: dict[str, str] = {}
    beside = folder.parent / "engine"
    beside.mkdir()
    with engine_running(beside) as engine:
        for base in BASES:
            had[base.name] = _brought(engine, base, folder.parent)
        (folder / "images.json").write_text(json.dumps({"engine": engine.name, "images": had}, indent=1) + "\n")


def _brought(engine: ContainerEngine, base: StartingImage, beside: Path) -> str:
    if not base.folder and engine.has(base.name):  # the others are built again where something of them changed
        return "it was there"
    with suppress(EngineError, subprocess.TimeoutExpired):
        engine.do("pull", base.name, seconds=600)
        return "a registry"
    if not base.folder:
        _debian(engine, base.name, beside / "root")
        return "debootstrap"
    context = beside / base.folder
    shutil.copytree(ROOT / "tests" / "containers" / "images" / base.folder, context)
    try:
        if (context / "pom.xml").exists():
            copy_jars(f"image-{base.folder}", context / "pom.xml", context / "jars")
        engine.build(base.name, context / "Dockerfile", context)
    except (EngineError, UnfetchedError) as error:  # the others are worth having
        return f"missing: {error}"
    return "Debian's packages"


def _debian(engine: ContainerEngine, image: str, root: Path) -> None:
    """Build Debian 12 with Python, as small as the image it replaces; it reaches this machine's
    network.
    """
    expression = "$(REPO_URI)"
    sources = run(["apt-get", "indextargets", "--format", expression, "Created-By: Packages", "Release: bookworm"])
    packages = "python3,python3-venv,ca-certificates,adduser"
    options = ["--variant=minbase", f"--include={packages}", "bookworm", str(root), *sources.split()[:1]]
    run(["debootstrap", *options], seconds=1800)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for name in ("etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
        if (Path("/") / name).exists():
            shutil.copyfile(Path("/") / name, root / name)
    for name in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / name)
        (root / name).mkdir()
    packed = root.with_suffix(".tar")
    run(["tar", "-C", str(root), "-cf", str(packed), "."])
    engine.do("import", packed, image, seconds=600)


@pytest.fixture(scope="session")
def container_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEngine]:
    """Start the engine, with the fetched images."""
    if fetched("containers") is None:
        absent("containers", "nobody has fetched what it needs, which `./dev fetch containers` does")
    try:
        began = time.time()
        with engine_running(tmp_path_factory.mktemp("engine")) as engine:
            _used.append((f"{engine.name} {engine.version}", began))
            yield engine
    except UnfetchedError as why:
        absent("containers", str(why))


def base_image(engine: ContainerEngine, name: str) -> str:
    """Return an image of the tour; skip the level if it could be neither pulled nor built."""
    if not engine.has(name):
        absent("containers", f"there is no image {name}, and `./dev fetch containers` could not make it")
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of the engine in one process, for there is one engine."""
    for item in items:
        if "container_engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("engine"))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect which engine each process had."""
    _used.extend(map(tuple, getattr(node, "workeroutput", {}).get("engine", ())))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Notes that the whole level ran well, for whoever asks when it did; the note is committed with what was tried."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["engine"] = _used
    asked = session.config.getoption("--containers") and session.config.getoption("markexpr") == "containers"
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not asked or session.config.args != ["tests/containers"] or exitstatus or reporter is None or not _used:
        return
    passed, skipped = [len(reporter.stats.get(kind, [])) for kind in ("passed", "skipped")]
    minutes, seconds = divmod(int(time.time() - _used[0][1]), 60)
    told = f"{time.strftime('%Y-%m-%d')}: {_used[0][0]}, {passed} tests in {minutes}:{seconds:02}, {skipped} skipped\n"
    (ROOT / "tests" / "containers" / "last-run.txt").write_text(told)
