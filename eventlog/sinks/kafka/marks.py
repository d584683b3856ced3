"""What Kafka itself knows of an output: its last document and plan, whose it is, and how each table
was described.

KafkaMarks are messages in a compacted topic, written in the same transaction as the messages that
they speak of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Position
from eventlog.sinks.kafka.reading import messages_of
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.ownership import Owner

Of = TypeVar("Of")


class KnownStructure(Struct, frozen=True):
    """With which structure a table was sent last, and which version of it that was."""

    schema_id: str
    version: int


class Taken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan that was taken. `part` are those of its documents that are there where they had to go
    one by one; None is all.

    `refused` are the messages of the plan that no broker took.
    """

    plan: str = ""
    part: tuple[str, ...] | None = None
    refused: tuple[tuple[Position, str], ...] = ()


class TopicState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far an output is: its last document, who writes it, and the last plan of a publisher and
    of a conversion.
    """

    last: str = ""
    owner: Owner = Owner()
    taken: Taken = Taken()
    converted: Taken = Taken()


class KafkaMarks(Struct, frozen=True, kw_only=True):
    """How far the output is, and what was sent of each table."""

    standing: TopicState = TopicState()
    tables: Mapping[str, KnownStructure] = {}


def mark_messages(
    identity: str, standing: TopicState, tables: Mapping[str, KnownStructure]
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the messages that keep these marks."""
    yield identity.encode(), msgspec.json.encode(standing)
    for table, structure in tables.items():
        yield f"{identity}/{table}".encode(), msgspec.json.encode(structure)


def read_marks(settings: KafkaSettings, partitions: list[int]) -> KafkaMarks:
    """The marks of this output; waits for transactions of others that stand before them."""
    own = _key(settings)
    marks = dict(_read(settings, partitions, "read_committed"))  # the last of each key counts
    standing = TopicState()
    if own in marks:
        standing = _decoded(settings, marks[own], TopicState)
    before = own + b"/"
    tables = {}
    for key, value in marks.items():
        if key.startswith(before):
            table = key.removeprefix(before).decode()
            tables[table] = _decoded(settings, value, KnownStructure)
    return KafkaMarks(standing=standing, tables=tables)


def latest_owner(settings: KafkaSettings, partitions: list[int]) -> Owner:
    """Who has tried last to take the output over, also where that was not committed (yet): nothing
    is waited for.
    """
    own = _key(settings)
    marks = _read(settings, partitions, "read_uncommitted")
    owners = [_decoded(settings, value, TopicState).owner for key, value in marks if key == own]
    return max(owners, key=lambda owner: owner.epoch, default=Owner())


def _read(
    settings: KafkaSettings,
    partitions: list[int],
    isolation: str,
) -> list[tuple[bytes, bytes]]:
    """Keys and values of the marks of all outputs."""
    messages = messages_of(settings, settings.marks_topic, partitions, isolation)
    return [(message.key() or b"", message.value() or b"") for message in messages]


def _key(settings: KafkaSettings) -> bytes:
    return settings.transactional_id.encode()


def _decoded(settings: KafkaSettings, value: bytes, kind: type[Of]) -> Of:
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError as error:
        where = f"A mark of {settings.transactional_id} in topic {settings.marks_topic}"
        hint = "It says how far the output is;"
        hint = f"{hint} another output.transactional_id starts from the beginning."
        problem = f"{where} cannot be read: {error}."
        raise DataError(problem, hint=hint) from None
