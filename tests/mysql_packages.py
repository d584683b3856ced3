"""A MySQL server for tests, from the packages of Debian's unstable distribution: fetched once and unpacked, never installed.

Its libraries are newer than most systems', so the server runs with a loader and libraries of its own. `apt-get` fetches
from the mirror that this machine uses already and checks Debian's signature. As a script it says what it fetched; it needs
nothing but the standard library, because CI asks before there is an environment.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = "sid"
PACKAGES = ("mysql-server-core", "mysql-client-core")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class UnfetchedError(Exception):
    """The server cannot be had here; the text says why."""


def cache() -> Path:
    """Where the server is unpacked: under the system's folder for temporary files, because an unprivileged user runs it."""
    return Path(tempfile.gettempdir()) / f"eventlog-mysql-{os.geteuid()}" / "root"


def standing() -> Path | None:
    """The unpacked server, if it was fetched before."""
    root = cache()
    return root if (root / "usr/sbin/mysqld").exists() and _only_ours(root.parent) else None


def fetched() -> Path:
    """The unpacked server, fetched when it is first asked for; UnfetchedError where that cannot be done."""
    if standing() is None:
        _prepare(cache().parent)
        _fetch(cache())
    return cache()


def program(root: Path, name: str) -> list[str]:
    """The words that run a program of the packages with the libraries that it was linked with."""
    loader, libraries = root / "usr/lib64/ld-linux-x86-64.so.2", root / "usr/lib/x86_64-linux-gnu"
    return [str(loader), "--library-path", str(libraries), str(root / "usr" / name)]


def version(root: Path) -> str:
    """What the server says it is."""
    return _run([*program(root, "sbin/mysqld"), "--no-defaults", "--version"]).strip().partition("  ")[2]


def _only_ours(folder: Path) -> bool:
    state = folder.lstat()
    return state.st_uid == os.geteuid() and not state.st_mode & 0o022 and not folder.is_symlink()


def _prepare(folder: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnfetchedError(f"the packages are for Linux on x86-64, and this is {platform.platform()}")
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing or not KEYRING.exists():
        raise UnfetchedError(f"this system has no {', '.join(missing) or KEYRING}")
    folder.mkdir(mode=0o755, exist_ok=True)
    if not _only_ours(folder):
        raise UnfetchedError(f"{folder} belongs to somebody else")


def _fetch(place: Path) -> None:
    """Unpacks beside the place and moves there when all is done, so that what stands there is complete."""
    making = Path(tempfile.mkdtemp(prefix="making-", dir=place.parent))
    try:
        root, packages = making / "root", making / "packages"
        packages.mkdir()
        _download(making, packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(root)])
        making.chmod(0o755)
        version(root)  # fails here where it cannot run
        if not place.exists():  # another process may have been quicker
            root.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _download(making: Path, packages: Path) -> None:
    """Fetches the packages and all that they depend on; Perl serves only scripts that nobody calls here."""
    apt = _apt(making)
    _run([*apt, "update"])
    planned = _run([*apt, "install", "--simulate", "--no-install-recommends", *PACKAGES])
    names = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    _run([*apt, "download", *(name for name in names if "perl" not in name)], folder=packages)


def _apt(making: Path) -> list[str]:
    """The words of `apt-get` with lists and a state of its own, in which nothing is installed."""
    sources, state = making / "sources.list", making / "state"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True)
    (state / "status").touch()
    sources.write_text(f"deb [signed-by={KEYRING}] {_mirror()} {SUITE} main\n")
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/nonexistent",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Debug::NoLocking": 1,
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 2,
    }
    return ["apt-get", "-q", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]


def _mirror() -> str:
    """The mirror of Debian that this machine uses, which is known by how mirrors end, also before lists were fetched."""
    told = _run(["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)", "Created-By: Packages"])
    mirrors = [uri for uri in told.splitlines() if uri.endswith("/debian/")]
    if not mirrors:
        raise UnfetchedError("apt-get knows no mirror of Debian")
    return mirrors[0]


def _run(command: list[str], folder: Path | None = None) -> str:
    surrounding = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=surrounding)
    if done.returncode:
        raise UnfetchedError(f"{Path(command[0]).name} fails: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        sys.stdout.write(version(fetched()) + "\n")
    except UnfetchedError as error:
        sys.exit(str(error))
