"""What stands in docker/: it names only what is there, starts what the program understands, and runs without rights.

What can be known without an engine is checked here: against the program itself, and by linters in the level `linters`. The
level `containers` runs it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eventlog.cli.main import main
from eventlog.config.settings import from_settings, load
from eventlog.version import VERSION
from tests.support.servers import absent, found

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
DOCKERFILES = sorted(DOCKER.glob("Dockerfile*"))
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "eventlog"}
MANIFESTS = sorted((DOCKER / "kubernetes").glob("*.yaml"))
RESOURCES = {one["kind"]: one for file in MANIFESTS for one in yaml.safe_load_all(file.read_text())}
CONTAINER: dict[str, Any] = RESOURCES["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def instructions(file: Path, name: str) -> list[str]:
    """The instructions of a Dockerfile with this name, each in one line."""
    joined = re.sub(r"\\\n\s*", "", file.read_text())
    return [line.removeprefix(f"{name} ") for line in joined.splitlines() if line.startswith(f"{name} ")]


def assert_understood(arguments: list[str]) -> None:
    """The program knows the command and its options."""
    command = main.get_command(main.make_context("eventlog", [], resilient_parsing=True), arguments[0])
    assert command is not None, arguments
    command.make_context(arguments[0], arguments[1:])


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_an_image_is_made_of_what_is_there(file: Path) -> None:
    sources = [part for copy in instructions(file, "COPY") if "--from" not in copy for part in copy.split()[:-1]]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert [source for source in sources if f"!{source}" not in ignored] == []


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_an_image_runs_without_rights_and_says_how_it_is(file: Path) -> None:
    assert instructions(file, "USER")[-1] == "10001:10001"
    assert len(instructions(file, "HEALTHCHECK")) == 1
    assert all(":latest" not in base and ":" in base for base in instructions(file, "FROM"))
    last_user = file.read_text().rindex("\nUSER ")
    assert "\nRUN " not in file.read_text()[last_user:]


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_an_image_says_which_version_it_is(file: Path) -> None:
    assert f"VERSION={VERSION}" in instructions(file, "ARG")
    [labels] = instructions(file, "LABEL")
    assert 'org.opencontainers.image.version="${VERSION}"' in labels


def test_the_extras_of_the_image_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [wanted] = [
        line.partition("=")[2] for line in instructions(DOCKER / "Dockerfile", "ARG") if line.startswith("EXTRAS")
    ]
    assert set(wanted.split(",")) <= set(extras)


def test_the_image_starts_a_command_that_exists() -> None:
    [command] = instructions(DOCKER / "Dockerfile", "CMD")
    assert_understood(yaml.safe_load(command))


@pytest.mark.parametrize("name", OURS)
def test_the_tour_starts_commands_that_exist(name: str) -> None:
    service = OURS[name]
    if "entrypoint" not in service:
        assert_understood(service["command"])
        return
    for called in service["command"][0].split(" && "):
        program, *arguments = shlex.split(called)
        assert program == "eventlog"
        assert_understood(arguments)


@pytest.mark.parametrize("name", OURS)
def test_the_tours_settings_are_keys_that_exist(name: str) -> None:
    environment = OURS[name]["environment"]
    config = load(None, {key: str(value) for key, value in environment.items()})
    assert config.source.url == environment["EVENTLOG_DATABASE"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_of_the_tour_is_pinned_bound_to_loopback_and_whole(name: str) -> None:
    service = SERVICES[name]
    assert "build" in service or re.search(r":[\w.-]*\d[\w.-]*$", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    for volume in service.get("volumes", []):
        source = volume.partition(":")[0]
        assert (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    if "build" in service:
        assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_what_can_say_that_it_is_there(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[needed] or "HEALTHCHECK" in _dockerfile(SERVICES[needed])
        else:
            assert how["condition"] == "service_completed_successfully"


def test_kubernetes_starts_what_the_program_understands() -> None:
    assert_understood(CONTAINER["args"])
    said = tomllib.loads(RESOURCES["ConfigMap"]["data"]["eventlog.toml"])
    secrets = re.findall(r"\$\{file:(/run/secrets/eventlog/\w+)\}", RESOURCES["ConfigMap"]["data"]["eventlog.toml"])
    assert secrets
    plain = yaml.safe_load(re.sub(r"\$\{[^}]+\}", "x" * 20, yaml.safe_dump(said)))
    config = from_settings(plain, {}, origin="the ConfigMap")
    assert config.table("web").guarded  # the pod's address is no loopback
    assert [mount["mountPath"] for mount in CONTAINER["volumeMounts"] if secrets[0].startswith(mount["mountPath"])]


def test_kubernetes_gives_no_rights() -> None:
    pod, container = RESOURCES["Deployment"]["spec"]["template"]["spec"], CONTAINER["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["allowPrivilegeEscalation"] is False
    assert container["readOnlyRootFilesystem"] is True
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert {mount["name"] for mount in CONTAINER["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_kubernetes_asks_the_paths_that_answer() -> None:
    assert CONTAINER["livenessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert CONTAINER["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "http"}
    assert RESOURCES["Service"]["spec"]["selector"] == RESOURCES["Deployment"]["spec"]["selector"]["matchLabels"]


@pytest.fixture
def linters(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the linters' programs, which find what they import."""
    folder = found("linters", "linters")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder / "bin"


def assert_clean(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=DOCKER)
    assert (done.returncode, done.stdout if done.returncode else "") == (0, ""), done.stderr


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_hadolint_finds_nothing(linters: Path, file: Path) -> None:
    assert_clean(linters / "hadolint", file)


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_manifests_follow_the_schema_of_kubernetes(linters: Path, file: Path) -> None:
    assert_clean(linters / "kubernetes-validate", "--strict", file)


def test_compose_reads_the_tour(tmp_path: Path) -> None:
    """With Docker's plugin, or with its predecessor."""
    plugin = ["docker", "compose", "--profile", "*"]
    new = (
        shutil.which("docker") and not subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode
    )
    if not new and shutil.which("docker-compose") is None:
        absent("linters", "there is neither docker compose nor docker-compose")
    text = (DOCKER / "compose.yaml").read_text()
    text = text if new else text.replace("\nname: eventlog\n", "\n")  # the predecessor has no word for it
    (tmp_path / "compose.yaml").write_text(text)
    command = [*(plugin if new else ["docker-compose"]), "--project-directory", str(DOCKER)]
    file = ["--file", str(tmp_path / "compose.yaml")]
    done = subprocess.run([*command, *file, "config"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) == set(SERVICES)


def _dockerfile(service: dict[str, Any]) -> str:
    text: str = (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).read_text()
    return text


def shell(file: Path) -> list[list[str]]:
    """The commands that a Dockerfile runs, in words."""
    return [shlex.split(one) for run in instructions(file, "RUN") for one in run.split(" && ")]


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_nothing_is_installed_whose_hash_is_not_in_the_lock(file: Path) -> None:
    pips = [words for words in shell(file) if words[0].endswith("/pip")]
    assert pips
    for words in pips:
        ours = {"--no-index", "--no-deps"} <= set(words)  # the project itself, from the folder
        assert ours or {"--require-hashes", "--only-binary", "--requirement"} <= set(words), words
        assert ours or words[-1].endswith(".txt"), words  # a part of the lock, and nothing beside it


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_what_an_image_gets_is_the_lock_with_its_hashes_and_whole(file: Path) -> None:
    defaults = dict(line.split("=", 1) for line in instructions(file, "ARG"))
    parts = [words for words in shell(file) if words[:2] == ["python", "requirements/part.py"]]
    assert parts
    for words in parts:
        asked = [word.replace("${EXTRAS}", defaults.get("EXTRAS", "")) for word in words[2:-2]]
        found = part(*asked)
        assert found
        for name, text in found.items():
            assert text in (ROOT / "requirements" / "dev.txt").read_text()
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", text), name
        assert {need for name in found for need in needed(name)} <= set(found)


def part(*asked: str) -> dict[str, str]:
    """What part.py prints, package by package."""
    command = [sys.executable, str(ROOT / "requirements" / "part.py"), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    entries = re.split(r"^(?=[\w.-]+==)", done.stdout, flags=re.MULTILINE)
    return {canonicalize_name(entry.partition("==")[0]): entry for entry in entries if entry}


def needed(name: str) -> set[str]:
    """What an installed package needs on this machine, without its extras."""
    try:
        requirements = [Requirement(text) for text in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:  # it is for another machine
        return set()
    here = [one for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    return {canonicalize_name(one.name) for one in here}


def test_an_image_has_what_was_asked_for_and_no_tools() -> None:
    small, large = part("eventlog-cdc"), part("eventlog-cdc", "postgres,web,kafka")
    assert {"sqlalchemy", "click", "typing-extensions"} <= set(small)
    assert {"psycopg", "psycopg-binary", "uvicorn", "h11", "confluent-kafka", "fastavro"} <= set(large)
    assert not {"pytest", "mypy", "ruff", "playwright", "pyspark", "hatchling"} & set(large)
    assert not {"httpx2", "authlib", "cryptography"} & set(large), (
        "what the official registry client needs is for tests"
    )
    assert set(small) < set(large)
    assert {"hatchling", "setuptools"} <= set(part("build"))


@pytest.mark.parametrize("asked, said", [("nothing", "There is no extra nothing; there are postgres, ")])
def test_an_extra_that_is_none_fails_the_build(asked: str, said: str) -> None:
    command = [sys.executable, str(ROOT / "requirements" / "part.py"), "eventlog-cdc", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(said)
