"""PostgreSQL's column types, and which values are read back as text."""

from __future__ import annotations

from typing import Final

from sqlalchemy.dialects import postgresql

from eventlog.core.limits import ColumnLimits
from eventlog.core.sql_types import Category
from eventlog.databases.postgresql.times import read_beyond
from eventlog.sql.column_types import ColumnTypes

READ_AS_TEXT: Final = frozenset({Category.STRING, Category.NUMBER, Category.DATE, Category.TIME, Category.TIMESTAMP})
"""PostgreSQL's times reach further than Python's, its numbers are read as triggers write them, and
its other types are text to a consumer.
"""

TYPES: Final = ColumnTypes(
    limits=ColumnLimits(exact_nan=True, nul=False, beyond=read_beyond),
    domain=postgresql.DOMAIN,
)
