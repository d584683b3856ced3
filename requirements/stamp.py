"""Tells whether the lock files fit pyproject.toml, without a network: each carries a checksum of what it was made from.

Law: a lock is CURRENT when its first line holds the checksum of the dependency tables as they stand now.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOCKS = ("run.txt", "dev.txt")
LINE = "# Made by ./dev lock from dependencies with the checksum {}\n"


def checksum(pyproject: str) -> str:
    """The checksum of everything in pyproject.toml that a lock depends on."""
    file = tomllib.loads(pyproject)
    project = file["project"]
    asked = (
        project["requires-python"],
        project["dependencies"],
        project.get("optional-dependencies", {}),
        file.get("dependency-groups", {}),
        file["build-system"]["requires"],
    )
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def outdated(folder: Path) -> list[str]:
    """The names of the locks in a folder that were not made from the pyproject.toml beside it."""
    first_line = LINE.format(checksum((folder.parent / "pyproject.toml").read_text()))
    there = [name for name in LOCKS if (folder / name).exists()]
    good = [name for name in there if (folder / name).read_text().startswith(first_line)]
    return [name for name in LOCKS if name not in good]


def stamp(lock: Path) -> None:
    """Writes the checksum into the first line of a lock that was just made."""
    first_line = LINE.format(checksum((HERE.parent / "pyproject.toml").read_text()))
    lock.write_text(first_line + lock.read_text())


def main(arguments: list[str]) -> int:
    """With file names: stamps them. Without: names the locks that are outdated, and fails when there are any."""
    for name in arguments:
        stamp(Path(name))
    stale = outdated(HERE) if not arguments else []
    for name in stale:
        print(f"requirements/{name} was not made from this pyproject.toml; run ./dev lock and commit it.")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
