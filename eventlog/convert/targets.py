"""The order given to `eventlog convert`, as one value; and what it writes and where to, by that and
a configuration's outputs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.config.build import name_of
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.convert.settings import LINE_BYTES, MessageFiles, SentMessages, SentTables, TableFiles, Target
from eventlog.core.errors import UsageError
from eventlog.core.outputs import PlaceKind
from eventlog.core.suggest import did_you_mean
from eventlog.policies.settings import steps_of
from eventlog.policies.steps import Steps, placed
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFormat
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.database.settings import DatabaseSettings
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.lake.settings import LakeSettings
from eventlog.sinks.outputs import FilesOutput, StdoutOutput


class ConversionOrder(Struct, frozen=True, kw_only=True):
    """The command line's words; those of other commands than the one that was called are not there."""

    inputs: tuple[str, ...]
    source: str
    from_database: bool = False
    target: str
    out: Path
    overwrite: bool
    engine: str
    jobs: int | None
    master: str | None
    conf: tuple[str, ...]
    log: str | None = None
    statuses: str | None = None
    mark: bool = False
    schema: Path | None = None
    keys: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    code_page: str | None = None
    dirty: bool = False
    database: str | None = None
    snapshot: Path | None = None
    line_limit: int = LINE_BYTES
    file_format: str | None
    metadata_topic: str | None
    to_database: str | None
    to_lake: str | None = None
    kafka: str | None
    part_events: int
    transactions: Literal["mixed", "whole"] | None
    coalesce: bool = False
    strict: bool | None
    """Whether bad rows are an error; None: only where there were no others."""
    resume: bool
    follow: bool = False
    until_empty: bool = False
    output: str | None
    no_policies: bool
    config: Path | None
    as_json: bool
    addresses: Mapping[str, str] = {}
    """Addresses of file systems as they were written, by `--out`, `--snapshot` and the inputs that
    are some.
    """
    stored: str = ""
    """The address of an object store to which the local engine brings what it has made in `out`."""
    fetched: Mapping[str, str] = {}
    """Addresses of an object store from which the local engine reads, by the folders of their copies, which stand
    in the place of `inputs` and `snapshot`.
    """

    def address(self, name: str, path: Path) -> str:
        """What was written there as an address; a path is one too."""
        return self.addresses.get(name) or f"file:{path.absolute()}"


FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "xds": (),
    "change-tables": ("parquet", "csv", "json"),
    "messages": ("json", "avro"),
}
"""The files that a target can be written to, by their names on the command line."""

PLACES: Final[dict[str, PlaceKind]] = {"xds": "folder", "change-tables": "table", "messages": "topic"}
"""What kind of places a conversion writes to, by its target."""

OWN_TASK: Final = "eventlog-convert"
"""Who a conversion is where the position is kept, unless the configuration names a task."""


def refuse_target(order: ConversionOrder) -> None:
    """UsageError says which words about the target do not go together."""
    _refuse_sending(order)
    known = FORMATS[order.target]
    if order.file_format is not None and order.file_format not in known:
        what = f"it takes {' or '.join(known)}" if known else "it has no choice of files"
        message = f"--format {order.file_format} cannot be combined with --to {order.target}"
        raise UsageError(f"{message}; {what}.")
    if order.metadata_topic is not None and order.target != "messages":
        raise UsageError("--metadata-topic needs --to messages.")


def _refuse_sending(order: ConversionOrder) -> None:
    """What cannot be combined with a database or a Kafka as the destination."""
    if order.to_database is not None and order.target != "change-tables":
        raise UsageError("--to-database needs --to change-tables.")
    names_spark = order.engine == "spark" or order.master or order.conf
    if order.to_lake is not None:
        if order.target != "change-tables":
            raise UsageError("--to-lake needs --to change-tables.")
        if order.file_format is not None or order.to_database is not None:
            message = "--to-lake writes no files and into no database"
            raise UsageError(f"{message}; leave --format and --to-database out.")
        if names_spark:
            raise UsageError("--to-lake needs the local engine: use --engine local.")
    if order.kafka is not None and order.target != "messages":
        raise UsageError("--kafka needs --to messages.")
    if order.to_database is not None and order.file_format is not None:
        what = "--format says what files are written"
        raise UsageError(f"{what}, and with --to-database there are none.")
    if order.to_database is not None and names_spark:
        raise UsageError("--to-database needs the local engine: use --engine local.")


def target_of(order: ConversionOrder, config: Config) -> Target:
    """What is written: as the configuration's outputs of this format have it, and the command line
    over them.
    """
    if order.target == "change-tables":
        return _tables(order, config)
    if order.target == "messages":
        return _messages(order, config)
    from eventlog.xds.plugin import xds_format

    # Parts have a size of their own.
    return replace(xds_format(config.publisher, config.source.schema), batch_size=1)


def steps_of_order(order: ConversionOrder, config: Config) -> Steps:
    """The policy of the conversion: that of the output that --output names; without, that of the
    only one of this format.

    Places are those of what the conversion writes. Nothing is guessed: who has several with
    different policies must say which, for what a policy hides must not get out.
    """
    if order.no_policies:
        if order.output is not None:
            what = "--output takes the policies of an output, and --no-policies takes none"
            raise UsageError(f"{what}; say one of them.")
        return ()
    if order.output is not None:
        # Of two with one name the first counts, which comes last here.
        outputs = {name_of(output): output for output in reversed(config.output)}
        if order.output not in outputs:
            hint = "The configuration has no output."
            if config.output:
                hint = did_you_mean(order.output, [name_of(output) for output in config.output])
            hint += " A folder is named by --out."
            raise UsageError(f"--output {order.output} is no output of the configuration. {hint}")
        return _placed(steps_of(outputs[order.output], config.policy), order, config)
    of_format = [output for output in config.output if output.format == order.target]
    if not of_format and any(output.steps or output.policies for output in config.output):
        cause = f"The configuration has policies, but no output of the format {order.target}"
        raise UsageError(
            f"{cause}, so none would count here.",
            hint="Use --output NAME for those of an output, or --no-policies to publish everything.",
        )
    steps_of_outputs = [_placed(steps_of(output, config.policy), order, config) for output in of_format]
    if any(steps != steps_of_outputs[0] for steps in steps_of_outputs):
        cause = "The configuration has several outputs of this format with different policies"
        raise UsageError(f"{cause}: use --output NAME.")
    if not steps_of_outputs:
        return ()
    return steps_of_outputs[0]


def refuse_unread_policies(order: ConversionOrder, file: Path) -> None:
    """UsageError where a configuration lies here that has policies, and was not named: what they
    hide must not get out.
    """
    if order.config is not None or order.no_policies or not file.exists():
        return
    try:
        outputs = tomllib.loads(file.read_text(encoding="utf-8-sig")).get("output", [])
    except (OSError, ValueError):
        # Nobody asked for it, so nobody wants to know what is wrong with it.
        return
    tables = [output for output in outputs if isinstance(output, dict)]
    if any(output.get("steps") or output.get("policies") for output in tables):
        raise UsageError(
            f"{file} here has policies, and a conversion reads it only where --config names it.",
            hint=f"Use --config {file}, or --no-policies to publish everything.",
        )


def _placed(steps: Steps, order: ConversionOrder, config: Config) -> Steps:
    target = target_of(order, config)
    # Topics that hold something else than changes, into which no step may send any.
    taken: list[str] = []
    if isinstance(target, MessageFiles | SentMessages):
        taken.append(target.settings.metadata_topic)
    if isinstance(target, SentMessages):
        taken.append(target.into.marks_topic)
    return placed(steps, PLACES[order.target], order.target, tuple(taken))


def _nearest_first(order: ConversionOrder, config: Config) -> list[OutputConfig]:
    """The outputs whose settings may be meant: the one that --output names, then those of the
    format, then the others.
    """
    # False sorts before True.
    return sorted(
        config.output,
        key=lambda output: (name_of(output) != order.output, output.format != order.target),
    )


def transactions_of(order: ConversionOrder, config: Config) -> Literal["mixed", "whole"]:
    """Whether transactions come whole: as was asked, else as that output has it of which the
    settings are.
    """
    if order.transactions is not None:
        return order.transactions
    nearest = next(iter(_nearest_first(order, config)), None)
    if nearest is None:
        return "mixed"
    if name_of(nearest) != order.output and nearest.format != order.target:
        return "mixed"
    return nearest.transactions


def _tables(order: ConversionOrder, config: Config) -> TableFiles | SentTables:
    outputs = _nearest_first(order, config)
    if order.to_lake is not None:
        lakes = {name_of(lake): lake for lake in config.output if isinstance(lake, LakeSettings)}
        if order.to_lake not in lakes:
            hint = "The configuration has no output with sink = delta or iceberg."
            if lakes:
                hint = did_you_mean(order.to_lake, lakes)
            message = f"--to-lake {order.to_lake} is no output of the configuration into a lake."
            raise UsageError(f"{message} {hint}")
        lake = lakes[order.to_lake]
        return SentTables(settings=lake.change_tables, into=lake)
    databases = [output for output in outputs if isinstance(output, DatabaseOutput)]
    files = [output for output in outputs if isinstance(output, FilesOutput)]
    # What an output of the other kind says of change tables is better than nothing.
    sent = [output.change_tables for output in databases]
    written = [output.change_tables for output in files]
    if order.to_database is None:
        settings = [*written, *sent, ChangeTableSettings()][0]
        known_files = [*files, FilesOutput(path="", task=OWN_TASK)][0]
        form = msgspec.convert(order.file_format or known_files.file_format, RowFormat)
        row_files = known_files.row_files.chosen(form)
        return TableFiles(settings=settings, files=row_files, task=known_files.task)
    settings = [*sent, *written, ChangeTableSettings()][0]
    known: DatabaseSettings = DatabaseSettings(url="", task=OWN_TASK)
    if databases:
        known = databases[0]
    return SentTables(settings=settings, into=replace(known, url=order.to_database))


def _messages(order: ConversionOrder, config: Config) -> MessageFiles | SentMessages:
    outputs = _nearest_first(order, config)
    kafkas = [output for output in outputs if isinstance(output, KafkaOutput)]
    sent = [output.messages for output in kafkas]
    written = [output.messages for output in outputs if isinstance(output, FilesOutput | StdoutOutput)]
    if order.kafka:
        settings = [*sent, *written, MessageSettings()][0]
    else:
        settings = [*written, *sent, MessageSettings()][0]
    if order.file_format in ("json", "avro"):
        settings = replace(settings, encoding="avro" if order.file_format == "avro" else "json")
    if order.metadata_topic:
        settings = replace(settings, mode="metadata", metadata_topic=order.metadata_topic)
    if order.kafka is None:
        return MessageFiles(settings=settings)
    known: KafkaSettings = KafkaSettings(servers=order.kafka, transactional_id=OWN_TASK)
    if kafkas:
        known = kafkas[0]
    return SentMessages(settings=settings, into=replace(known, servers=order.kafka))
