"""Column types of MariaDB and MySQL, and how values are asked for when rows are read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, bare_type
from eventlog.sql.column_types import ColumnTypes, TypeOptions

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

LONGEST_CHARACTERS: Final = 255
"""Longer texts count in full against the 65,535 bytes of a row."""
SHAPES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection", "geomcollection"}
)
LONG_TYPES: Final = frozenset(
    {"char", "varchar", "text", "mediumtext", "longtext", "json"}
    | {"binary", "varbinary", "blob", "mediumblob", "longblob"}
)
"""Types whose values may be long."""
_READ_AS_TEXT: Final = frozenset({Category.DATE, Category.TIME, Category.TIMESTAMP})
"""A date of MySQL may be zero, and its times are no times of day."""
_SAID: Final = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}


class MysqlTypes(ColumnTypes):
    """What differs in MariaDB and MySQL."""

    # Binary collation: a lower-case status must not pass for an upper-case one.
    table_options: ClassVar[TypeOptions] = {
        f"{database}_{option}": value for option, value in _SAID.items() for database in ("mysql", "mariadb")
    }

    def text(self, length: int | None) -> TypeEngine[Any]:
        from sqlalchemy.dialects import mysql

        return super().text(length) if length is not None and length <= LONGEST_CHARACTERS else mysql.LONGTEXT()

    def binary(self, length: int | None) -> TypeEngine[Any]:
        from sqlalchemy.dialects import mysql

        return mysql.LONGBLOB() if length is None else mysql.VARBINARY(length)

    def decimal(self, digits: int | None, scale: int | None) -> TypeEngine[Any]:
        return super().decimal(digits, scale) if digits is not None else super().decimal(65, 30)

    def timestamp(self, *, zoned: bool) -> TypeEngine[Any]:
        from sqlalchemy.dialects import mysql

        return mysql.DATETIME(fsp=6)

    def time(self) -> TypeEngine[Any]:
        from sqlalchemy.dialects import mysql

        return mysql.TIME(fsp=6)

    def keyed(self, kind: TypeEngine[Any]) -> TypeEngine[Any]:
        """There are no keys of unbounded text."""
        import sqlalchemy as sa
        from sqlalchemy.dialects import mysql

        return mysql.VARCHAR(LONGEST_CHARACTERS) if isinstance(kind, sa.Text | mysql.LONGTEXT) else kind

    def log_time(self) -> TypeEngine[Any]:
        return self.timestamp(zoned=False)

    def log_name(self) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.String(400)

    def log_key(self) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.String(4000)

    def log_value(self) -> TypeEngine[Any]:
        return self.text(None)


def mysql_value(name: str, column: Column) -> str:
    """SQL that reads a column: times as text, and what Python would get as bytes as a number or in words.

    Vectors as Base64, because the driver loses its place in what the server sends when it meets one.
    """
    if column.category in _READ_AS_TEXT:
        return f"CAST({name} AS CHAR)"
    kind = bare_type(column.type)
    if kind == "bit":
        return f"{name} + 0"
    if kind == "vector":
        return f"REPLACE(TO_BASE64({name}), CHAR(10 USING utf8mb4), '')"
    return f"ST_AsText({name})" if kind in SHAPES else name
