"""Jars that tests need, from Maven's central repository: fetched once, whole, into the user's cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.servers import absent


def fetched(level: str, pom: Path, folder: Path) -> Path:
    """The folder, filled with what a project names; the level is absent where Maven cannot do that."""
    maven = shutil.which("mvn")
    if maven is None:
        absent(level, "there is no Maven that fetches its jars")
    folder.parent.mkdir(parents=True, exist_ok=True)
    coming = Path(tempfile.mkdtemp(dir=folder.parent))
    command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={coming}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if run.returncode:
        shutil.rmtree(coming)
        absent(level, run.stdout.strip()[-500:])
    coming.rename(folder)
    return folder
