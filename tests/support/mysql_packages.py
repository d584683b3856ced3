"""A MySQL server for tests, from the packages of Debian's unstable distribution: fetched once and unpacked, never installed.

Its libraries are newer than most systems', so the server runs with a loader and libraries of its own. `apt-get` fetches
from the mirror that this machine uses already and checks Debian's signature.
"""

from __future__ import annotations

import platform
import shutil
import tempfile
from pathlib import Path

from tests.support.fetching import APT, UnfetchedError, fetched, run

SUITE = "sid"
PACKAGES = ("mysql-server-core", "mysql-client-core")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def state() -> Path | None:
    """Return the unpacked server, if fetched."""
    return fetched("mysql")


def unpack(folder: Path) -> None:
    """Fetches the packages and unpacks them there; UnfetchedError where that cannot be done."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnfetchedError(f"the packages are for Linux on x86-64, and this is {platform.platform()}")
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing or not KEYRING.exists():
        raise UnfetchedError(f"this system has no {', '.join(missing) or KEYRING}")
    with tempfile.TemporaryDirectory(prefix="packages-", dir=folder.parent) as name:
        packages = Path(name)
        _download(packages / "apt", packages)
        for package in sorted(packages.glob("*.deb")):
            run(["dpkg-deb", "-x", str(package), str(folder)])
    version(folder)  # fails here where it cannot run


def program(root: Path, name: str) -> list[str]:
    """Return the command of a packaged program with its own libraries."""
    loader, libraries = root / "usr/lib64/ld-linux-x86-64.so.2", root / "usr/lib/x86_64-linux-gnu"
    return [str(loader), "--library-path", str(libraries), str(root / "usr" / name)]


def version(root: Path) -> str:
    """Return the server's version."""
    return run([*program(root, "sbin/mysqld"), "--no-defaults", "--version"]).strip().partition("  ")[2]


def _download(making: Path, packages: Path) -> None:
    """Fetches the packages and all that they depend on; Perl serves only scripts that nobody calls here."""
    apt = _apt(making)
    run([*apt, "update"])
    planned = run([*apt, "install", "--simulate", "--no-install-recommends", *PACKAGES])
    names = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
    run([*apt, "download", *(name for name in names if "perl" not in name)], folder=packages)


def _apt(making: Path) -> list[str]:
    """Return the command `apt-get` with its own lists and state; it installs nothing."""
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
    return [*APT, "-q", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]


def _mirror() -> str:
    """Return the machine's mirror of Debian, known by its ending even before lists were fetched."""
    told = run(["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)", "Created-By: Packages"])
    mirrors = [uri for uri in told.splitlines() if uri.endswith("/debian/")]
    if not mirrors:
        raise UnfetchedError("apt-get knows no mirror of Debian")
    return mirrors[0]
