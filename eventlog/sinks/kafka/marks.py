"""What Kafka itself knows of an output: its last document and plan, whose it is, and how each table
was described.

KafkaMarks are messages in a compacted topic, written in the same transaction as the messages that
they speak of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import Position
from eventlog.sinks.kafka.reading import messages_of
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.ownership import Owner

Of = TypeVar("Of")

SHORT_CHARACTERS: Final = 60
"""Characters of a note where whole notes would make a mark too large."""

NO_SPACE: Final = (
    "The message was refused, as so many others of its batch that there was no space for the reasons;"
    " requeue it to learn its own."
)

Refusals = tuple[tuple[Position, str], ...]
"""Events that are not sent, and why."""

Run = tuple[Position, int]
"""The first of some positions, and how many there are: the last number of each is the next one."""


class KnownStructure(Struct, frozen=True):
    """With which structure a table was sent last, and which version of it that was."""

    schema_id: str
    version: int


class Taken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan that was taken. `part` are those of its documents that are there where they had to go
    one by one; None is all.

    `notes` say why messages of the plan were not sent, each with the positions of their rows.
    """

    plan: str = ""
    part: tuple[str, ...] | None = None
    notes: tuple[tuple[str, tuple[Run, ...]], ...] = ()

    def refusals(self) -> Refusals:
        """List the rows of unsent messages, with reasons."""
        found = list[tuple[Position, str]]()
        for note, runs in self.notes:
            for (*before, last), count in runs:
                found += [((*before, number), note) for number in range(last, last + count)]
        return tuple(found)

    def with_refusals(self, refused: Refusals) -> Taken:
        """Return the plan with these messages noted as unsent."""
        positions: dict[str, list[Position]] = {}
        for position, note in refused:
            positions.setdefault(note, []).append(position)
        notes = tuple([(note, _runs(found)) for note, found in positions.items()])
        return replace(self, notes=notes)


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

    state: TopicState = TopicState()
    tables: Mapping[str, KnownStructure] = {}


def _runs(positions: list[Position]) -> tuple[Run, ...]:
    runs: list[Run] = []
    for position in sorted(positions):
        if runs:
            (*before, last), count = runs[-1]
            if position == (*before, last + count):
                runs[-1] = runs[-1][0], count + 1
                continue
        runs.append((position, 1))
    return tuple(runs)


def mark_messages(
    settings: KafkaSettings, state: TopicState, tables: Mapping[str, KnownStructure]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of messages for these marks."""
    key = _key(settings)
    value = msgspec.json.encode(state)
    # A mark that no broker takes would stop the output for ever, so rather the reasons are cut.
    for characters in (SHORT_CHARACTERS, 0):
        if len(key) + len(value) <= settings.max_message_bytes:
            break
        taken, converted = _cut_notes(state.taken, characters), _cut_notes(state.converted, characters)
        value = msgspec.json.encode(replace(state, taken=taken, converted=converted))
    yield key, value
    for table, structure in tables.items():
        yield key + f"/{table}".encode(), msgspec.json.encode(structure)


def _cut_notes(taken: Taken, characters: int) -> Taken:
    """Shorten each note to so many characters; with 0, replace it by `NO_SPACE`."""

    def cut(note: str) -> str:
        if not characters:
            return NO_SPACE
        return note if len(note) <= characters else f"{note[:characters]}…"

    return taken.with_refusals(tuple([(at, cut(note)) for at, note in taken.refusals()]))


def read_marks(settings: KafkaSettings, partitions: list[int]) -> KafkaMarks:
    """Read this output's marks; waits for earlier transactions of others."""
    own = _key(settings)
    marks = dict(_read(settings, partitions, "read_committed"))  # the last of each key counts
    state = TopicState()
    if own in marks:
        state = _decode(settings, marks[own], TopicState)
    before = own + b"/"
    tables = {}
    for key, value in marks.items():
        if key.startswith(before):
            table = key.removeprefix(before).decode()
            tables[table] = _decode(settings, value, KnownStructure)
    return KafkaMarks(state=state, tables=tables)


def latest_owner(settings: KafkaSettings, partitions: list[int]) -> Owner:
    """Return the last owner to attempt a takeover, uncommitted ones included; does not wait."""
    own = _key(settings)
    marks = _read(settings, partitions, "read_uncommitted")
    owners = [_decode(settings, value, TopicState).owner for key, value in marks if key == own]
    return max(owners, key=lambda owner: owner.epoch, default=Owner())


def _read(
    settings: KafkaSettings,
    partitions: list[int],
    isolation: str,
) -> list[tuple[bytes, bytes]]:
    """Read keys and values of all outputs' marks."""
    messages = messages_of(settings, settings.marks_topic, partitions, isolation)
    return [(message.key() or b"", message.value() or b"") for message in messages]


def _key(settings: KafkaSettings) -> bytes:
    return settings.transactional_id.encode()


def _decode(settings: KafkaSettings, value: bytes, kind: type[Of]) -> Of:
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError as error:
        where = f"A mark of {settings.transactional_id} in topic {settings.marks_topic}"
        hint = "It says how far the output is;"
        hint = f"{hint} another output.transactional_id starts from the beginning."
        problem = f"{where} cannot be read: {error}."
        raise DataError(problem, hint=hint) from None
