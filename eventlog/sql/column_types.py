"""The types of columns that eventlog makes: SQLAlchemy's general ones, where a database's room has no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

TypeOptions = Mapping[str, Any]
"""What is said beside a table's or column's type, in SQLAlchemy's words."""


class ColumnTypes:
    """One database's types for the columns of change tables and mirrors, and for those of the log and its companions."""

    log_options: ClassVar[TypeOptions] = {}
    """What is said of the log, besides what is said of all tables."""
    table_options: ClassVar[TypeOptions] = {}
    number_options: ClassVar[TypeOptions] = {}
    """What is said of a sequence, or of a column that numbers itself."""

    def text(self, length: int | None) -> TypeEngine[Any]:
        """Text of at most so many characters; None where nobody knows how many."""
        import sqlalchemy as sa

        return sa.Text() if length is None else sa.String(length)

    def binary(self, length: int | None) -> TypeEngine[Any]:
        """So many bytes, which are few; None where they may be many."""
        import sqlalchemy as sa

        return sa.LargeBinary()

    def decimal(self, digits: int | None, scale: int | None) -> TypeEngine[Any]:
        """A number that stays exactly what it is; None where nobody knows how many digits it has."""
        import sqlalchemy as sa

        return sa.Numeric(digits, scale)

    def timestamp(self, *, zoned: bool) -> TypeEngine[Any]:
        """Date and time to the microsecond; one with a zone is UTC where there is no type for it."""
        import sqlalchemy as sa

        return sa.DateTime(timezone=zoned)

    def time(self) -> TypeEngine[Any]:
        """A time of day to the microsecond."""
        import sqlalchemy as sa

        return sa.Time()

    def keyed(self, kind: TypeEngine[Any]) -> TypeEngine[Any]:
        """The type where the column is a part of a primary key."""
        return kind

    def log_number(self) -> TypeEngine[Any]:
        """The number of a row of the log."""
        import sqlalchemy as sa

        return sa.BigInteger()

    def log_time(self) -> TypeEngine[Any]:
        """When an event took place."""
        import sqlalchemy as sa

        return sa.DateTime()

    def log_moment(self) -> TypeEngine[Any]:
        """When something was done to a row of the log."""
        return self.log_time()

    def log_name(self) -> TypeEngine[Any]:
        """The name of a table, a column or a user."""
        import sqlalchemy as sa

        return sa.Text()

    def log_key(self) -> TypeEngine[Any]:
        """A table_key."""
        import sqlalchemy as sa

        return sa.Text()

    def log_value(self) -> TypeEngine[Any]:
        """A value, which may be long."""
        import sqlalchemy as sa

        return sa.Text()

    def domain(self, name: str, base: TypeEngine[Any], schema: str | None) -> TypeEngine[Any]:
        """A type of the log's own with conditions, where the database has domains."""
        raise NotImplementedError
