"""The settings of a conversion: where rows come from, what answers read-backs, how changes are
written, and where to.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import FormerNames
from eventlog.sql.clocks import UTC
from eventlog.sql.names import LogNames, read_log_name
from eventlog.xds.write import XdsFormat

# What other formats, receivers and sources need is loaded with them: a conversion of XDS rows does without.
if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlog.config.settings import Choice
    from eventlog.convert.inputs import Unit
    from eventlog.policies.bound import Policy
    from eventlog.policies.steps import Steps
    from eventlog.qlik.change_tables.settings import ChangeTableSettings
    from eventlog.qlik.messages.settings import MessageSettings
    from eventlog.sinks.change_files.settings import RowFiles
    from eventlog.sinks.database.settings import DatabaseSettings
    from eventlog.sinks.kafka.settings import KafkaSettings
    from eventlog.sinks.lake.settings import LakeSettings
    from eventlog.sources.gbase.settings import GBaseSettings
    from eventlog.sources.linter.settings import LinterSettings


def _table_settings() -> ChangeTableSettings:
    from eventlog.qlik.change_tables.settings import ChangeTableSettings

    return ChangeTableSettings()


def _message_settings() -> MessageSettings:
    from eventlog.qlik.messages.settings import MessageSettings

    return MessageSettings()


def _parquet() -> RowFiles:
    from eventlog.sinks.change_files.settings import PARQUET

    return PARQUET


PART_EVENTS = 100_000
"""Changes in a part file by default."""
LINE_BYTES = 64_000_000
"""How long a line of JSON or a record of CSV may be by default: as long as a publisher's `value_limit`."""


class TableFiles(Struct, frozen=True, kw_only=True):
    """Change tables, each a folder of part files."""

    settings: ChangeTableSettings = field(default_factory=_table_settings)
    files: RowFiles = field(default_factory=_parquet)
    task: str = "eventlog"
    who: bool = False


class MessageFiles(Struct, frozen=True, kw_only=True):
    """Messages, each topic a folder of part files: JSON lines or Avro's object containers, by their
    encoding.
    """

    settings: MessageSettings = field(default_factory=_message_settings)


class SentTables(Struct, frozen=True, kw_only=True):
    """Change tables of a database, or tables of a lake."""

    settings: ChangeTableSettings = field(default_factory=_table_settings)
    into: DatabaseSettings | LakeSettings
    who: bool = False


class SentMessages(Struct, frozen=True, kw_only=True):
    """Messages to the topics of a Kafka."""

    settings: MessageSettings = field(default_factory=_message_settings)
    into: KafkaSettings
    who: bool = False


class ChangeRows(Struct, frozen=True, kw_only=True):
    """The changes themselves, as rows: for DataFrames, which other programs go on with."""


Target = XdsFormat | TableFiles | MessageFiles | SentTables | SentMessages | ChangeRows


class FilesInput(Struct, frozen=True, kw_only=True, dict=True):
    """Files, folders and patterns of file names; rows with any status are converted.

    `clock` is whose time event_time is, as in the configuration; a file has no database that could
    be asked.
    """

    places: tuple[str, ...]
    clock: str = UTC
    line_limit: int = LINE_BYTES

    @cached_property
    def paths(self) -> Sequence[Path]:
        """Find the input files, once."""
        from eventlog.convert.inputs import files_at

        # A set: patterns overlap, and a file that is read twice has each of its rows twice.
        return sorted({path for pattern in self.places for path in files_at(pattern)})


class LogInput(Struct, frozen=True, kw_only=True):
    """An event log table. Rows are only marked where `mark` says so; `who` reads who is behind them."""

    url: str
    log: str = "event_log"
    columns: Choice | tuple[str, ...] = "auto"
    clock: str = UTC
    statuses: str = "N"
    mark: bool = False
    who: bool = False

    @property
    def names(self) -> LogNames:
        """Return the log's names, with its clock."""
        return replace(read_log_name(self.log), clock=self.clock)


class StreamInput(Struct, frozen=True, kw_only=True):
    """A captured stream: GBase's bytes, or exported rows of LINTER's queue. Every image is whole;
    nothing is read back.
    """

    places: tuple[str, ...]
    settings: GBaseSettings | LinterSettings


class DatabaseRows(Struct, frozen=True, kw_only=True):
    """Read-backs are answered by the tables of a database as they are now."""

    url: str


class SnapshotRows(Struct, frozen=True, kw_only=True):
    """Read-backs are answered by a folder of Parquet or JSON lines files, one for each table."""

    folder: Path
    line_limit: int = LINE_BYTES


class Conversion(Struct, frozen=True, kw_only=True, dict=True):
    """One conversion as it was ordered; it goes to other processes and machines as it is."""

    input: FilesInput | LogInput | StreamInput
    destination: Path
    catalog: Catalog | None = None
    options: Options = Options()
    format: Target = XdsFormat()
    part_events: int = PART_EVENTS
    read_back: DatabaseRows | SnapshotRows | None = None
    overwrite: bool = False
    steps: Steps = ()
    after: str = ""
    """The change_seq to go on from, in files of formats that number their changes."""
    transactions: Literal["mixed", "whole"] = "mixed"
    """The changes of a transaction come together, or in the order of their rows."""
    who: bool = False
    """Changes say who is behind them, and those of two people are never one."""

    @cached_property
    def units(self) -> Sequence[Unit]:
        """Cut the files of rows, once; there are none of other inputs."""
        from eventlog.convert.inputs import units

        return units(self.input) if isinstance(self.input, FilesInput) else ()

    @cached_property
    def gathers(self) -> bool:
        """Return True if changes are brought together by transaction: those of a stream come so."""
        return self.transactions == "whole" and not isinstance(self.input, StreamInput)

    @property
    def counts(self) -> bool:
        """Return True if the changes of gathered transactions are counted."""
        return self.gathers and isinstance(self.format, MessageFiles | SentMessages)

    @cached_property
    def output_catalog(self) -> Catalog | None:
        """Return the tables as they look behind the steps."""
        if not self.steps:
            return self.catalog
        return self.policy(self.catalog).catalog

    @property
    def former_names(self) -> FormerNames:
        """Choose the names for changes captured under a former definition, as a publisher does."""
        # A step names a column as it is called today.
        if self.steps:
            return FormerNames.ONLY_NEW
        if isinstance(self.format, XdsFormat):
            return self.format.former_names
        return FormerNames.OWN

    @cached_property
    def output_tables(self) -> dict[int, Table]:
        """Number all tables behind the steps for rendered rows: today's, then former ones."""
        tables = [*(self.output_catalog or ())]
        if self.catalog is not None and self.catalog.former is not None:
            former = self.catalog.former
            for table in former.former:
                span = former.span(table)
                catalog: Catalog | None = span.catalog_by_names(self.former_names)
                if self.steps:
                    catalog = self.policy(catalog).catalog
                if catalog is not None:
                    # A span's former tables stand first in its catalog, and here it has one.
                    tables.append(catalog.tables[0])
        return dict(enumerate(tables))

    @cached_property
    def hides(self) -> bool:
        """Return True if the steps hide values, or may do so for tables told by the input."""
        if self.catalog is None or not self.steps:
            return bool(self.steps)
        return any(self.policy(self.catalog).hidden.values())

    def policy(self, catalog: Catalog | None) -> Policy:
        """Bind the steps to the tables of a catalog."""
        from eventlog.policies.bound import Policy

        return Policy(self.steps, catalog)

    def __post_init__(self) -> None:
        """Refuse settings and combinations that bulk conversion cannot do."""
        if self.part_events < 1:
            raise ConfigError(f"--part-events is {self.part_events}; a part holds at least 1 event.")
        if self.options.future:
            raise ConfigError(
                "handle_future_events is on; a conversion takes rows in the order of record_id.",
                hint="Switch it off for the conversion.",
            )
        undescribed = self.catalog is None and not isinstance(self.input, StreamInput)
        if undescribed and not isinstance(self.format, XdsFormat | ChangeRows):
            raise ConfigError(
                "Change tables and messages need to know tables, columns and keys.",
                hint="Use --schema FILE (`eventlog catalog` writes it).",
            )
        if self.steps and undescribed:
            raise ConfigError(
                "Policies need to know tables, columns and keys.",
                hint="Use --schema FILE (`eventlog catalog` writes it).",
            )
        if self.steps and not isinstance(self.read_back, DatabaseRows):
            from eventlog.policies.steps import Lookup

            if any(isinstance(step, Lookup) for step in self.steps):
                what = "A step with do = 'lookup' reads rows of other tables"
                raise ConfigError(
                    f"{what}, and only a database has all of them at hand.",
                    hint="Read back from a database; or leave the step out.",
                )
        if self.read_back is not None and self.catalog is None:
            raise ConfigError(
                "Reading back needs to know tables, columns and keys.",
                hint="Use --schema FILE (`eventlog catalog`).",
            )
