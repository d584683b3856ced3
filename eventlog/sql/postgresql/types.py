"""PostgreSQL's column types, and which values are read back as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eventlog.core.sql_types import Category
from eventlog.sql.column_types import ColumnTypes

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

READ_AS_TEXT: Final = frozenset({Category.STRING, Category.DATE, Category.TIME, Category.TIMESTAMP})
"""PostgreSQL's times reach further than Python's, and its other types are text to a consumer."""


class PostgresqlTypes(ColumnTypes):
    """What differs in PostgreSQL."""

    def domain(self, name: str, base: TypeEngine[Any], schema: str | None) -> TypeEngine[Any]:
        from sqlalchemy.dialects import postgresql

        return postgresql.DOMAIN(name, base, schema=schema, create_type=False)
