"""SQLite's column types."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from eventlog.core.limits import ColumnLimits
from eventlog.sql.column_types import ColumnTypes

TYPES: Final = ColumnTypes(
    # Any number may stand in any column, but for NaN, of which SQLite makes NULL.
    limits=ColumnLimits(sized=False, single=False, nan=False),
    # There are no decimals; as text they stay what they were.
    decimal=lambda _digits, _scale: sa.Text(),
    timestamp=lambda _zoned: sa.DateTime(),
    log_number=sa.Integer(),
    log_options={"sqlite_autoincrement": True},
)
