"""What `eventlog convert` was told: the command line's words, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class ConversionOrder(Struct, frozen=True, kw_only=True):
    """The command line's words."""

    inputs: tuple[str, ...]
    source: str
    target: str
    out: Path
    overwrite: bool
    engine: str
    jobs: int | None
    master: str | None
    conf: tuple[str, ...]
    log: str | None
    statuses: str | None
    mark: bool
    schema: Path | None
    keys: tuple[str, ...]
    tables: tuple[str, ...]
    code_page: str | None
    dirty: bool
    database: str | None
    snapshot: Path | None
    file_format: str | None
    metadata_topic: str | None
    to_database: str | None
    kafka: str | None
    part_events: int
    coalesce: bool
    strict: bool
    resume: bool
    follow: bool
    until_empty: bool
    output: str | None
    no_policies: bool
    config: Path | None
    as_json: bool
    addresses: Mapping[str, str] = {}
    """Addresses of file systems as they were written, by `--out`, `--snapshot` and the inputs that are some."""

    @property
    def from_database(self) -> bool:
        """Whether the rows come from a database."""
        return len(self.inputs) == 1 and "://" in self.inputs[0] and self.inputs[0] not in self.addresses

    def address(self, name: str, path: Path) -> str:
        """What was written there as an address; a path is one too."""
        return self.addresses.get(name) or f"file:{path.absolute()}"
