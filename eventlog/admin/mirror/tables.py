"""The tables of a mirror: the change table that is read, the mirror that is kept, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, MetaData, Table

from eventlog.admin.mirror.fold import ChangeRow
from eventlog.core.errors import DataError
from eventlog.qlik.masks import bits_of_bytes, bits_of_hex
from eventlog.sinks.database.control import Record, add_columns
from eventlog.sinks.database.types import target_type
from eventlog.sql.dialect import dialect_of

BEGINNING: Final = "0"
"""The watermark before every change; it stands outside the data, because a delete may take the last row with it."""


class Origin(Struct, frozen=True, kw_only=True):
    """A change table as it is read: its header columns by their names without the prefix, and the key."""

    table: Any
    headers: dict[str, str]
    key: tuple[str, ...]
    names: tuple[str, ...]
    """All columns in the order in which they stand, which is what the bits of masks count."""

    def told(self, row: Sequence[Any]) -> ChangeRow:
        """What one of its rows says."""
        cells = dict(zip(self.names, row, strict=True))
        taken = set(self.headers.values())
        values = {name: cell for name, cell in cells.items() if name not in taken}
        oper = cells[self.headers["change_oper"]]
        return ChangeRow(oper=oper, values=values, changed=self._changed(cells, values, oper))

    def _changed(self, cells: dict[str, Any], values: dict[str, Any], oper: str) -> frozenset[str]:
        """The columns that the row is about; without a mask those that are not NULL."""
        mask = self.headers.get("change_mask")
        if mask is None or oper == "B":
            return frozenset([name for name, value in values.items() if value is not None])
        found = cells[mask]
        bits = bits_of_hex(found) if isinstance(found, str) else bits_of_bytes(None if found is None else bytes(found))
        return frozenset([name for place, name in enumerate(self.names) if bits >> place & 1 and name in values])


def origin(connection: Connection, record: Record, schema: str | None) -> Origin:
    """The change table of the record; DataError where a mirror cannot be kept from it."""
    types = {column.name.casefold(): column.type for column in record.columns}
    heads = {column.name.casefold() for column in record.columns if column.header}
    names = [column["name"] for column in sa.inspect(connection).get_columns(record.target, schema)]
    headers = {
        ending: name for ending in _HEADERS for name in names if name.casefold() in heads and name.endswith(ending)
    }
    for needed in ("change_seq", "change_oper"):
        if needed not in headers:
            raise DataError(
                f"{record.target} has no {needed}, without which nothing can be applied; add it to change_tables.headers."
            )
    actual = {name.casefold(): name for name in names}
    keyed = sorted([(column.key, actual[column.name.casefold()]) for column in record.columns if column.key])
    if not keyed:
        hint = "Give the source table a primary key, then publish a change of it."
        raise DataError(f"{record.target}: nobody knows the key of {record.table}.", hint=hint)
    there = dialect_of(connection).types
    made: list[sa.Column[Any]] = [
        sa.Column(name, target_type(types.get(name.casefold(), "text"), there)) for name in names
    ]
    table = sa.Table(record.target, sa.MetaData(schema=schema), *made)
    return Origin(table=table, headers=headers, key=tuple(name for _, name in keyed), names=tuple(names))


_HEADERS: Final = (
    *("change_seq", "change_oper", "change_mask", "stream_position", "operation", "transaction_id", "timestamp"),
    "partition_name",
)


def mirror_table(connection: Connection, of: Origin, name: str, schema: str | None) -> Table:
    """The mirror, made or widened where that is needed."""
    taken, types = set(of.headers.values()), dialect_of(connection).types
    columns = [column for column in of.table.columns if column.name not in taken]
    made = [
        sa.Column(c.name, types.keyed(c.type) if c.name in of.key else c.type, primary_key=c.name in of.key)
        for c in columns
    ]
    for column in made:
        column.autoincrement = False
    table = sa.Table(name, sa.MetaData(schema=schema), *made)
    inspector = sa.inspect(connection)
    if not inspector.has_table(name, schema):
        table.create(connection)
        return table
    there = {column["name"].casefold() for column in inspector.get_columns(name, schema)}
    missing = [column for column in made if column.name.casefold() not in there]
    if missing:
        add_columns(connection, name, schema, {column.name: column.type for column in missing})
    return table


class Watermarks:
    """How far each mirror is, in a table beside the mirrors."""

    def __init__(self, metadata: MetaData) -> None:
        self.table = sa.Table(
            "eventlog_applied",
            metadata,
            sa.Column("mirror", sa.String(128), primary_key=True),
            sa.Column("change_seq", sa.String(35), nullable=False),
        )

    def of(self, connection: Connection, mirror: str) -> str:
        """The change_seq of the last change that the mirror shows."""
        query = sa.select(self.table.c.change_seq).where(self.table.c.mirror == mirror).with_for_update()
        return connection.scalar(query) or BEGINNING

    def advance(self, connection: Connection, mirror: str, former: str, change_seq: str) -> None:
        """Notes how far it is now."""
        if former == BEGINNING:
            connection.execute(self.table.insert().values(mirror=mirror, change_seq=change_seq))
        else:
            changed = self.table.update().where(self.table.c.mirror == mirror)
            connection.execute(changed.values(change_seq=change_seq))
