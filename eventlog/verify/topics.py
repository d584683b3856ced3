"""What a topic holds of a table: messages with keys, whole or compacted, folded in the order of
their partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.core.errors import DataError
from eventlog.core.schema import Table
from eventlog.qlik.messages.names import field_names, topic_of
from eventlog.qlik.messages.reader import MessageReader, Read
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.values import TableValues
from eventlog.verify.history import octets, read_hex
from eventlog.verify.targets import PlainTarget

Values = Callable[[str], Iterable[tuple[str, bytes | None]]]
"""Where each message of a topic stands, and its value."""

WHOLE: Final = frozenset({"INSERT", "REFRESH"})
"""Operations whose messages have the whole row."""


class TopicTarget(PlainTarget):
    """The topics of an output. Messages of one row must be in one partition, so their key must be
    the row's.
    """

    def __init__(
        self,
        settings: MessageSettings,
        values: Values,
        registered: Callable[[int], str] | None = None,
    ) -> None:
        if settings.key != "row":
            problem = f'output.messages.key is "{settings.key}", so a row\'s messages have no order.'
            raise DataError(problem, hint='verify needs topics with key = "row".')
        self._settings = settings
        self._values = values
        self._registered = registered

    def columns(self, table: Table) -> frozenset[str] | None:
        return frozenset(name.casefold() for name in TableValues(table).names)

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        reader = MessageReader(self._registered)
        # Before all others: what has metadata names its table only by the id of a schema.
        if self._settings.mode == "metadata":
            for _, value in self._values(self._settings.metadata_topic):
                reader.read(value)
        names = TableValues(table).names
        taking = MessageRows(compared, dict(zip(names, field_names(names, self._settings), strict=True)))
        # A bare message names no table; the topic is its table's.
        mine = {None, table.name, table.whole}
        with taking.side.working():
            for position, value in self._values(topic_of(table, self._settings)):
                message = _read(reader, position, value)
                if message.kind == "data" and message.table in mine:
                    taking.take(position, message)
        return taking.side

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()


class MessageRows:
    """The rows that messages add up to; `fields` are the names of columns in messages."""

    def __init__(self, compared: Compared, fields: dict[str, str]) -> None:
        self.side = ScratchSide(compared)
        self._key = [fields[name] for name in compared.key]
        self._indexes = {fields[name]: index for index, name in enumerate(compared.names)}
        hexed = octets(compared)
        self._hexed = {field for name, field in fields.items() if name.casefold() in hexed}

    def take(self, position: str, message: Read) -> None:
        if message.operation == "TRUNCATE":
            self.side.empty()
            return
        row, before = self._plain(message.row), self._plain(message.before)
        try:
            key = [row[name] for name in self._key]
        except KeyError as error:
            raise DataError(
                f"The message at {position} has no {error.args[0]}, which is part of the key.",
                hint="Publish the table again with `eventlog refresh`.",
            ) from None
        if message.operation == "DELETE":
            self.side.change(key, None, whole=True)
            return
        # `before` may have no more than what changed.
        former = [before.get(name, value) for name, value in zip(self._key, key, strict=True)]
        if former != key:
            self.side.move(former, key)
        # A message has every field; NULL may mean that a column was not logged.
        known = message.present if message.operation not in WHOLE else None
        cells: dict[int, Any] = {
            index: row[name]
            for name, index in self._indexes.items()
            if name in row and (known is None or name in known)
        }
        self.side.change(key, cells, whole=message.operation in WHOLE)

    def _plain(self, row: Mapping[str, Any] | None) -> dict[str, Any]:
        """Convert a row, with bytes as such."""
        return {name: read_hex(cell) if name in self._hexed else cell for name, cell in (row or {}).items()}


def _read(reader: MessageReader, position: str, value: bytes | None) -> Read:
    message = reader.read(value)
    if message.kind == "unread":
        raise DataError(
            f"The message at {position} cannot be read: {message.note}.",
            hint="`eventlog decode messages` shows what can be read of a topic.",
        )
    return message
