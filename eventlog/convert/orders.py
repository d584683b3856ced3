"""What the commands of `eventlog convert` were told: a value for each kind of source, one for what comes of it, and
one for who does it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from eventlog.core.packages import SPARK, is_there, require
from eventlog.sinks.store.address import MODULE, SCHEMES, refuse_unknown

Part = TypeVar("Part")

FILE_SYSTEMS = frozenset(
    {"abfs", "abfss", "file", "gs", "hdfs", "oss", "s3", "s3a", "s3n", "viewfs", "wasb", "wasbs", "webhdfs"}
)
"""Beginnings of addresses of files; those of databases are none of these."""

# Hadoop writes file:/tmp with one slash; a single letter would be a drive of Windows.
_address = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/").match
_local = re.compile(r"local(?:\[(\d{1,4})\])?").fullmatch


class FilesOrder(Struct, frozen=True, kw_only=True):
    """Rows of a log in files."""

    inputs: tuple[str, ...]
    schema: Path | None = None
    database: str | None = None
    snapshot: str | None = None


class LogOrder(Struct, frozen=True, kw_only=True):
    """The log of a database, which answers read-backs itself."""

    url: str
    log: str | None = None
    statuses: str = "N"
    mark: bool = False


class GBaseOrder(Struct, frozen=True, kw_only=True):
    """Captured streams of GBase 8s or Informix."""

    inputs: tuple[str, ...]
    tables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    schema: Path | None = None
    code_page: str | None = None
    dirty: bool = False


class LinterOrder(Struct, frozen=True, kw_only=True):
    """Exports of LINTER's queue."""

    inputs: tuple[str, ...]
    schema: Path
    code_page: str | None = None


SourceOrder = FilesOrder | LogOrder | GBaseOrder | LinterOrder
SOURCES: Final[dict[str, type[SourceOrder]]] = {
    "files": FilesOrder,
    "batches": FilesOrder,
    "database": LogOrder,
    "follow": LogOrder,
    "gbase": GBaseOrder,
    "linter": LinterOrder,
}
"""What each command reads; batches are those of a stream of Spark's, for which there is a function."""


class TargetOrder(Struct, frozen=True, kw_only=True):
    """What changes become, and who gets them if not files."""

    to: str = "xds"
    file_format: str | None = None
    metadata_topic: str | None = None
    to_database: str | None = None
    kafka: str | None = None
    part_events: int = 100_000
    output: str | None = None


class EngineOrder(Struct, frozen=True, kw_only=True):
    """Who does the work: `engine` is auto, spark, local, or local with so many processes."""

    engine: str = "auto"
    master: str | None = None
    conf: tuple[str, ...] = ()

    @property
    def jobs(self) -> int | None:
        """Return the number of processes of the local engine, if given."""
        match = _local(self.engine)
        return int(match[1]) if match is not None and match[1] else None

    @property
    def is_local(self) -> bool:
        return _local(self.engine) is not None

    @property
    def is_spark(self) -> bool:
        """Return True if only Spark can be meant."""
        return self.engine == "spark" or bool(self.master or self.conf)


class Places(Struct, frozen=True, kw_only=True):
    """Where the output goes. Addresses of file systems stand as they were written, by `--out`, `--snapshot` and
    the inputs that are some.

    The local engine brings what it has made in `out` to the object store `stored`, and reads copies: `fetched` are
    their addresses by their folders, which stand in the place of inputs and snapshot.
    """

    out: Path
    addresses: Mapping[str, str] = {}
    stored: str = ""
    fetched: Mapping[str, str] = {}

    @property
    def shown(self) -> str:
        """DEST as it was written."""
        return self.stored or self.addresses.get("--out") or str(self.out)

    def address(self, name: str, path: Path) -> str:
        """Return the address given for this option; a path becomes one."""
        return self.addresses.get(name) or f"file:{path.absolute()}"


class Order(Struct, frozen=True, kw_only=True):
    """One command."""

    command: str
    source: SourceOrder
    target: TargetOrder
    engine: EngineOrder
    places: Places
    overwrite: bool = False
    until_empty: bool = False
    config: Path | None = None
    as_json: bool = False
    strict: bool | None = None
    """Whether bad rows are an error; None: only where there were no others."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the inputs as given, or the folders of their copies; none for a database."""
        return () if isinstance(self.source, LogOrder) else self.source.inputs

    @property
    def marks(self) -> bool:
        return isinstance(self.source, LogOrder) and self.source.mark


def scheme_of(word: str) -> str:
    """Return how an address begins; nothing for a path."""
    address = _address(word)
    return "" if address is None else address[1].lower()


def is_foreign(word: str) -> bool:
    """Return True for the URL of something else than files, such as a database's."""
    return "://" in word and scheme_of(word) not in FILE_SYSTEMS


def order_of(command: str, given: Mapping[str, Any]) -> Order:
    """Make one value of the words of a command; addresses of file systems stay as they were written."""
    named: dict[str, Any] = {"--out": given["out"], "--snapshot": given.get("snapshot")}
    named |= {word: word for word in given.get("inputs") or ()}
    addresses = {name: word for name, word in named.items() if word is not None and scheme_of(word) in FILE_SYSTEMS}
    stored, fetched = "", dict[str, str]()
    engine = _make_value(EngineOrder, given)
    if _is_stored(command, engine, addresses):
        from eventlog.convert.fetching import folder_of_copies
        from eventlog.convert.stored import folder_for

        for name, address in addresses.items():
            refuse_unknown("An input" if name == address else name, address)
        require("An address, by the local engine,", MODULE)
        # With and without a slash at the end it is the same place, made in the same folder.
        stored = addresses.pop("--out", "").rstrip("/")
        copies = {name: folder_of_copies(address) for name, address in addresses.items()}
        fetched = {copies[name]: address for name, address in addresses.items()}
        named |= {"--out": str(folder_for(stored)) if stored else given["out"], **copies}
        addresses = {}
    inputs = tuple([named[word] for word in given.get("inputs") or ()])
    source = _make_value(SOURCES[command], {**given, "inputs": inputs, "snapshot": named["--snapshot"]})
    places = Places(out=Path(named["--out"]), addresses=addresses, stored=stored, fetched=fetched)
    own = {name: given[name] for name in ("overwrite", "until_empty", "config", "strict", "as_json") if name in given}
    return Order(
        command=command, source=source, target=_make_value(TargetOrder, given), engine=engine, places=places, **own
    )


def _make_value(kind: type[Part], given: Mapping[str, Any]) -> Part:
    """Make a value from the words of its own; leave None out, for it says nothing."""
    names: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]  # it is a Struct
    return kind(**{name: given[name] for name in names if given.get(name) is not None})


def _is_stored(command: str, engine: EngineOrder, addresses: Mapping[str, str]) -> bool:
    """Return True if the local engine serves object stores: asked for, or in Spark's place."""
    # Spark alone follows a log into an address.
    if not addresses or command == "follow":
        return False
    if any(scheme_of(address) not in SCHEMES for address in addresses.values()):
        return False
    if engine.engine != "auto":
        return engine.is_local
    if command in ("gbase", "linter"):
        return True
    return not (engine.is_spark or all(map(is_there, SPARK)))
