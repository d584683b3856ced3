"""What a conversion writes and where to: by an order's target and a configuration's outputs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from eventlog.config.build import name_of
from eventlog.convert.settings import MessageFiles, SentMessages, SentTables, TableFiles, Target
from eventlog.core.errors import UsageError
from eventlog.core.suggest import did_you_mean

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlog.config.outputs import OutputConfig
    from eventlog.config.settings import Config
    from eventlog.convert.orders import Order, TargetOrder
    from eventlog.core.outputs import PlaceKind
    from eventlog.policies.steps import Steps
    from eventlog.sinks.lake.settings import LakeSettings

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


def refuse_target(order: Order) -> None:
    """Refuse words about the target that cannot be combined."""
    target = order.target
    if target.to_database is not None:
        if target.to != "change-tables":
            raise UsageError("--to-database needs --to change-tables.")
        if target.file_format is not None:
            what = "--format says what files are written"
            raise UsageError(f"{what}, and with --to-database there are none.")
    if target.kafka is not None and target.to != "messages":
        raise UsageError("--kafka needs --to messages.")
    known = FORMATS[target.to]
    if target.file_format is not None and target.file_format not in known:
        what = f"it takes {' or '.join(known)}" if known else "it has no choice of files"
        message = f"--format {target.file_format} cannot be combined with --to {target.to}"
        raise UsageError(f"{message}; {what}.")
    if target.metadata_topic is not None and target.to != "messages":
        raise UsageError("--metadata-topic needs --to messages.")


def target_of(target: TargetOrder, config: Config) -> Target:
    """Make the target: as the configuration's outputs of this format have it, with the command
    line's words in their place.
    """
    if target.to == "change-tables":
        return _tables(target, config)
    if target.to == "messages":
        return _messages(target, config)
    from eventlog.xds.plugin import xds_format

    who = _nearest(target, config, lambda output: output.who, other=False)
    # Parts have a size of their own.
    return xds_format(config.publisher, config.source.schema, batch_size=1, who=who)


def steps_of_order(order: Order, config: Config) -> Steps:
    """Return the policy of the output named by --output, else of the only one of this format.

    Route steps get places of the kind the conversion writes. If several outputs have different
    policies, refuse to guess: hidden values must not get out.
    """
    if not config.output and order.target.output is None:
        return ()
    from eventlog.policies.settings import steps_of

    target = order.target
    if target.output is not None:
        return _place_steps(steps_of(_output_named(target.output, config), config.policy), target, config)
    of_format = [output for output in config.output if output.format == target.to]
    if not of_format and any(output.steps or output.policies for output in config.output):
        cause = f"The configuration has policies, but no output of the format {target.to}"
        raise UsageError(
            f"{cause}, so none would count here.",
            hint="Use --output NAME for those of an output, or name a configuration without any.",
        )
    steps_of_outputs = [_place_steps(steps_of(output, config.policy), target, config) for output in of_format]
    if any(steps != steps_of_outputs[0] for steps in steps_of_outputs):
        cause = "The configuration has several outputs of this format with different policies"
        raise UsageError(f"{cause}: use --output NAME.")
    if not steps_of_outputs:
        return ()
    return steps_of_outputs[0]


def _output_named(name: str, config: Config) -> OutputConfig:
    # Of two with one name the first counts, which comes last here.
    outputs = {name_of(output): output for output in reversed(config.output)}
    if name not in outputs:
        hint = "The configuration has no output."
        if config.output:
            hint = did_you_mean(name, [name_of(output) for output in config.output])
        hint += " A folder is named by --out."
        raise UsageError(f"The configuration has no output named {name}. {hint}")
    return outputs[name]


def refuse_unread_policies(order: Order, file: Path) -> None:
    """Refuse to ignore a configuration with policies here: hidden values must not get out."""
    if order.config is not None or not file.exists():
        return
    try:
        outputs = tomllib.loads(file.read_text(encoding="utf-8-sig")).get("output", [])
    except (OSError, ValueError):
        # It was not asked for, so its mistakes are none of this conversion's.
        return
    tables = [output for output in outputs if isinstance(output, dict)]
    if any(output.get("steps") or output.get("policies") for output in tables):
        raise UsageError(
            f"{file} here has policies, and a conversion reads it only where --config names it.",
            hint=f"Use --config {file}, or --config /dev/null to publish everything.",
        )


def _place_steps(steps: Steps, target: TargetOrder, config: Config) -> Steps:
    from eventlog.policies.steps import place_steps

    form = target_of(target, config)
    # Topics that hold something else than changes, into which no step may send any.
    taken: list[str] = []
    if isinstance(form, MessageFiles | SentMessages):
        taken.append(form.settings.metadata_topic)
    if isinstance(form, SentMessages):
        taken.append(form.into.marks_topic)
    return place_steps(steps, PLACES[target.to], target.to, tuple(taken))


def _nearest_first(target: TargetOrder, config: Config) -> list[OutputConfig]:
    """Sort the outputs by nearness: the one named by --output, the format's, the others."""
    # False sorts before True.
    return sorted(
        config.output,
        key=lambda output: (name_of(output) != target.output, output.format != target.to),
    )


def transactions_of(target: TargetOrder, config: Config) -> Literal["mixed", "whole"]:
    """Return whole or mixed transactions, as the nearest output has them."""
    return _nearest(target, config, lambda output: output.transactions, other="mixed")


def _nearest(target: TargetOrder, config: Config, read: Callable[[OutputConfig], T], *, other: T) -> T:
    """Read a setting of the named output, or of the first of this format; else `other`."""
    nearest = next(iter(_nearest_first(target, config)), None)
    if nearest is None or (name_of(nearest) != target.output and nearest.format != target.to):
        return other
    return read(nearest)


def lake_of(target: TargetOrder, config: Config) -> LakeSettings | None:
    """Return the lake of the output named by --output, if it is one."""
    if target.output is None or not config.output:
        return None
    from eventlog.sinks.lake.settings import LakeSettings

    named = next((output for output in config.output if name_of(output) == target.output), None)
    return named if isinstance(named, LakeSettings) else None


def _tables(target: TargetOrder, config: Config) -> TableFiles | SentTables:
    from eventlog.qlik.change_tables.settings import ChangeTableSettings
    from eventlog.sinks.change_files.settings import RowFormat
    from eventlog.sinks.database.plugin import DatabaseOutput
    from eventlog.sinks.database.settings import DatabaseSettings
    from eventlog.sinks.outputs import FilesOutput

    lake = lake_of(target, config)
    if lake is not None and target.to_database is None and target.file_format is None:
        return SentTables(settings=lake.change_tables, into=lake, who=lake.who)
    who = _nearest(target, config, lambda output: output.who, other=False)
    outputs = _nearest_first(target, config)
    databases = [output for output in outputs if isinstance(output, DatabaseOutput)]
    files = [output for output in outputs if isinstance(output, FilesOutput)]
    # What an output of the other kind says of change tables is better than nothing.
    sent = [output.change_tables for output in databases]
    written = [output.change_tables for output in files]
    if target.to_database is None:
        settings = [*written, *sent, ChangeTableSettings()][0]
        known_files = [*files, FilesOutput(path=".", task=OWN_TASK)][0]
        form = msgspec.convert(target.file_format or known_files.row_format, RowFormat)
        row_files = known_files.row_files.choose_files(form)
        return TableFiles(settings=settings, files=row_files, task=known_files.task, who=who)
    settings = [*sent, *written, ChangeTableSettings()][0]
    known: DatabaseSettings = DatabaseSettings(url="", task=OWN_TASK)
    if databases:
        known = databases[0]
    return SentTables(settings=settings, into=replace(known, url=target.to_database), who=who)


def _messages(target: TargetOrder, config: Config) -> MessageFiles | SentMessages:
    from eventlog.qlik.messages.settings import MessageSettings
    from eventlog.sinks.kafka.plugin import KafkaOutput
    from eventlog.sinks.kafka.settings import KafkaSettings
    from eventlog.sinks.outputs import FilesOutput, StdoutOutput

    outputs = _nearest_first(target, config)
    kafkas = [output for output in outputs if isinstance(output, KafkaOutput)]
    sent = [output.messages for output in kafkas]
    written = [output.messages for output in outputs if isinstance(output, FilesOutput | StdoutOutput)]
    if target.kafka:
        settings = [*sent, *written, MessageSettings()][0]
    else:
        settings = [*written, *sent, MessageSettings()][0]
    if target.file_format in ("json", "avro"):
        settings = replace(settings, encoding="avro" if target.file_format == "avro" else "json")
    if target.metadata_topic:
        settings = replace(settings, mode="metadata", metadata_topic=target.metadata_topic)
    if target.kafka is None:
        return MessageFiles(settings=settings)
    known: KafkaSettings = KafkaSettings(servers=target.kafka, transactional_id=OWN_TASK)
    if kafkas:
        known = kafkas[0]
    who = _nearest(target, config, lambda output: output.who, other=False)
    return SentMessages(settings=settings, into=replace(known, servers=target.kafka), who=who)
