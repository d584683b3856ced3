"""Rows of change tables and mirrors as their database has them: times that Python lacks, and NaN as a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from eventlog.sql.dialect import dialect_of

_NAN: Final = Decimal("NaN")


def read_rows(connection: Connection, query: Any) -> Sequence[Any]:
    """Read what a query finds; times that Python has not come as texts."""
    try:
        return connection.execute(query).all()
    except DBAPIError as error:
        read_far = dialect_of(connection).driver.read_far
        session = connection.connection.driver_connection
        if read_far is None or error.orig is None or not read_far(session, error.orig):
            raise
        return connection.execute(query).all()


def one_nan(cell: Any) -> Any:
    """Put one NaN in the place of each: a key that has it equals itself in a database, and in Python as one object."""
    if isinstance(cell, float | Decimal) and cell != cell:  # noqa: PLR0124  # which only NaN does
        return _NAN if isinstance(cell, Decimal) else math.nan
    return cell
