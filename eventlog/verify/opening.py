"""What an output holds, opened so that it can be compared with: its database, its files, its
topics, or its lake.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from eventlog.config.build import name_of, require_packages
from eventlog.config.outputs import OutputConfig
from eventlog.core.errors import UsageError
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.lake.plugin import lake_tables
from eventlog.sinks.lake.settings import LakeSettings
from eventlog.sinks.outputs import FilesOutput
from eventlog.sinks.scim.plugin import ScimOutput
from eventlog.sinks.store.address import is_address
from eventlog.verify.targets import ChangeTableTarget, MirrorTarget, Target

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.log import Log

MIRROR_SUFFIX = "__mirror"


def target_of(
    output: OutputConfig,
    opened: Callable[[str], Engine],
    *,
    mirrors: bool = False,
    into: str | None = None,
    suffix: str | None = None,
    log: Log | None = None,
) -> Target:
    """Make the side to compare with; `opened` opens a database, `log` has a receiver's names of objects.
    Raise UsageError where the output's documents cannot be read back.
    """
    if isinstance(output, DatabaseOutput):
        engine = opened(output.url)
        if mirrors:
            ending = MIRROR_SUFFIX if suffix is None else suffix
            return MirrorTarget(engine, output.schema, into or output.schema, ending)
        return ChangeTableTarget(engine, output.schema)
    if isinstance(output, FilesOutput) and output.format == "change-tables":
        if is_address(output.path):
            message = f"Change tables at {output.path} cannot be read back."
            raise UsageError(message, hint="Compare with a copy in a folder.")
        from eventlog.verify.files import FileTarget

        require_packages(output)
        form = output.row_files.choose_files(output.row_format)
        return FileTarget(Path(output.path), form, output.change_tables)
    if isinstance(output, LakeSettings):
        from eventlog.verify.lakes import LakeTarget

        require_packages(output)
        return LakeTarget(output, lambda: lake_tables(output))
    if isinstance(output, KafkaOutput) and output.format == "messages":
        return _topics(output)
    if log is not None and keeps_objects(output):
        from eventlog.publisher.associated import KeptAssociations
        from eventlog.verify.scim import ScimTarget

        kept = KeptAssociations(log, name_of(output))
        return ScimTarget(output, kept.read_all, kept.find)
    sent = f"{output.format} to {type(output).__name__.removesuffix('Output').lower()}"
    raise UsageError(
        f"What this output holds cannot be read: it sends {sent}.",
        hint="--against URL compares with a database, --associations FILE with a vault.",
    )


def keeps_objects(output: OutputConfig) -> TypeGuard[ScimOutput]:
    """Return True if the receiver has objects as they are now, which can be read, and nothing that grows."""
    return isinstance(output, ScimOutput) and not output.is_entra


def _topics(output: KafkaOutput) -> Target:
    """Open the topics of an output to Kafka."""
    from eventlog.sinks.kafka.reading import topic_values
    from eventlog.sinks.kafka.registry import registry_of
    from eventlog.verify.topics import TopicTarget

    require_packages(output)
    # What asks the registry for a schema by the number that a message begins with.
    numbered = registry_of(output).schema_of if output.registry else None
    return TopicTarget(output.messages, lambda topic: topic_values(output, topic), numbered)
