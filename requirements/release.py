"""Makes everything that a release consists of, and says what would be uploaded. It uploads nothing.

    python requirements/release.py --dry-run

Into dist: the source distributions and wheels of eventlog-cdc, eventlog-spark and eventlog-streams-tools, and the bill of materials (SBOM) in
CycloneDX, which has every package of the lock that they can need, with its hashes. The images are built elsewhere, from the definitions that are named.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
IMAGES = {"docker/Dockerfile": "eventlog", "docker/Dockerfile.spark": "eventlog-spark"}
EX_USAGE = 64


def version(root: Path) -> str:
    """The version that the package has."""
    [found] = re.findall(r'^VERSION\b.*= "(.+)"$', (root / "eventlog" / "version.py").read_text(), re.MULTILINE)
    return str(found)


def build(root: Path, folder: Path) -> list[Path]:
    """Source distributions and wheels."""
    for project in (root, root / "spark", root / "streams_tools"):
        command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
        subprocess.run(command, check=True, cwd=project, capture_output=True)
    return sorted([*folder.glob(f"*-{version(root)}.tar.gz"), *folder.glob(f"*-{version(root)}-*.whl")])


def bill(root: Path, folder: Path) -> Path:
    """The bill of materials; the library that writes it also judges it by the schema of CycloneDX."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    path = folder / f"{project['name'].replace('-', '_')}-{version(root)}.cdx.json"
    asked = [sys.executable, str(HERE / "part.py"), project["name"], "all"]
    needed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    made = [sys.executable, "-m", "cyclonedx_py", "requirements", "-", "--pyproject", str(root / "pyproject.toml")]
    options = ["--output-reproducible", "--sv", "1.6", "--of", "JSON", "-o", str(path)]
    subprocess.run([*made, *options], check=True, input=needed, capture_output=True, text=True, cwd=root)
    known: dict[str, Any] = json.loads(path.read_text())
    known["metadata"]["component"]["version"] = version(root)  # pyproject.toml leaves it to the build
    path.write_text(json.dumps(known, indent=1) + "\n")
    return path


def hindrances(root: Path) -> Iterator[str]:
    """What must be done before these files may be uploaded."""
    now = version(root)
    changelog = (root / "CHANGELOG.md").read_text()
    if ".dev" in now:
        yield f"{now} is a version between two releases: eventlog/version.py must name the new one."
    if re.search(rf"^## \[{re.escape(now)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE) is None:
        yield f"CHANGELOG.md has no dated section for {now}."
    if "urls" not in tomllib.loads((root / "pyproject.toml").read_text())["project"]:
        yield "pyproject.toml has no [project.urls]: there is no public address yet."
    if subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=False).stdout:
        yield "The working tree has changes that are not committed."


def told(root: Path, files: list[Path]) -> Iterator[str]:
    """What would go where."""
    yield f"To the package index, as version {version(root)}:"
    for path in files:
        content = path.read_bytes()
        yield f"  {path.name}  {len(content):,} bytes  sha256 {hashlib.sha256(content).hexdigest()}"
    yield "To the registry of images, built from:"
    yield from (f"  {definition}  as {name}:{version(root)}" for definition, name in IMAGES.items())
    yield f"A tag: v{version(root)}"
    found = [*hindrances(root)]
    yield from (f"Before that: {one}" for one in found)
    yield "Nothing was uploaded."


def main(arguments: list[str]) -> int:
    """Makes and tells; without --dry-run it refuses, because nobody but a person uploads."""
    if arguments != ["--dry-run"]:
        print(
            "dev: a release is uploaded by a person and not by this script; say --dry-run to make its files.",
            file=sys.stderr,
        )
        return EX_USAGE
    folder = ROOT / "dist"
    files = [*build(ROOT, folder), bill(ROOT, folder)]
    print("\n".join(told(ROOT, files)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
