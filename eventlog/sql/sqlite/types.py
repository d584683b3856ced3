"""SQLite's column types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from eventlog.sql.column_types import ColumnTypes, TypeOptions

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine


class SqliteTypes(ColumnTypes):
    """What differs in SQLite."""

    log_options: ClassVar[TypeOptions] = {"sqlite_autoincrement": True}

    def decimal(self, digits: int | None, scale: int | None) -> TypeEngine[Any]:
        """SQLite has no decimals; as text they stay what they were."""
        import sqlalchemy as sa

        return sa.Text()

    def timestamp(self, *, zoned: bool) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.DateTime()

    def log_number(self) -> TypeEngine[Any]:
        import sqlalchemy as sa

        return sa.Integer()
