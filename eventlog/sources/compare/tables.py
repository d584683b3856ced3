"""The tables of a state: in a file of its own without a prefix, in a database of others with one."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from eventlog.sql.dialect import Dialect

PREFIX: Final = "eventlog_compare"
"""How the names of a state's tables begin in a database."""


class KeptTables:
    """The tables that a state has."""

    def __init__(self, dialect: Dialect, prefix: str) -> None:
        self._types = dialect.types
        self._prefix = prefix
        self._metadata = sa.MetaData()
        number, value = self._types.log_number, self._types.log_value
        self.about = self._table("about", _key("name", self._make_key_type(200)), sa.Column("value", value))
        self.shape = self._table(
            "shape",
            _key("name", self._make_key_type(300)),
            sa.Column("held", self._make_key_type(60), nullable=False),
            sa.Column("compared", value, nullable=False),
        )
        self.ranges = self._table(
            "ranges",
            sa.Column("name", self._make_key_type(300), nullable=False, index=bool(prefix)),
            sa.Column("after", number, quote=True),
            sa.Column("upto", number),
            sa.Column("rows", number, quote=True),
            sa.Column("total", self._make_key_type(60), nullable=False),
        )
        self.queue = self._table(
            "queue", _key("step", number), _key("place", number), sa.Column("image", value, nullable=False)
        )

    def make(self, connection: sa.Connection) -> None:
        """Makes those that are missing."""
        self._metadata.create_all(connection, [self.about, self.shape, self.ranges, self.queue])

    def define_held(self, name: str) -> sa.Table:
        """Define the table that stores one table's rows."""
        number, value = self._types.log_number, self._types.log_value
        return self._table(
            name,
            _key("place", number),
            _key("id", self._make_key_type(300)),
            sa.Column("spot", number, nullable=False),
            sa.Column("hash", number, nullable=False, quote=True),
            sa.Column("long_key", value),
            sa.Column("cells", value, nullable=False),
        )

    def _table(self, name: str, *columns: sa.Column[Any]) -> sa.Table:
        whole = f"{self._prefix}_{name}" if self._prefix else name
        table = self._metadata.tables.get(whole)
        return sa.Table(whole, self._metadata, *columns, **self._types.table_options) if table is None else table

    def _make_key_type(self, characters: int) -> Any:
        return self._types.keyed(sa.String(characters))


def _key(name: str, kind: Any) -> sa.Column[Any]:
    # SQLAlchemy would let the database count a key that is one whole number.
    return sa.Column(name, kind, primary_key=True, autoincrement=False)
