"""The types of columns that eventlog makes: SQLAlchemy's general ones, or those of a room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from eventlog.core.limits import ColumnLimits

ColumnType = sa.types.TypeEngine[Any]


class KeyText(sa.String):
    """A text by which rows are found: no two that differ in a byte are equal, whatever the
    database's default is.

    A room says what that is in its database, where texts are not compared so anyway.
    """


def general_text(length: int | None) -> ColumnType:
    """Make a type for text of at most so many characters."""
    return sa.Text() if length is None else sa.String(length)


class ColumnTypes(Struct, frozen=True, kw_only=True):
    """One database's types for columns of change tables, mirrors, the log and its companions."""

    text: Callable[[int | None], ColumnType] = general_text
    """For texts of at most so many characters; None where nobody knows how many."""
    binary: Callable[[int | None], ColumnType] = lambda _length: sa.LargeBinary()
    """For so many bytes, which are few; None where they may be many."""
    decimal: Callable[[int | None, int | None], ColumnType] = sa.Numeric
    """For exact numbers of so many digits, so many of them a fraction."""
    timestamp: Callable[[bool], ColumnType] = lambda zoned: sa.DateTime(timezone=zoned)
    """For times to the microsecond, with a zone or without; in UTC where no type has a zone."""
    time: ColumnType = sa.Time()
    truth: ColumnType = sa.Boolean()
    """For truth values, and whatever else such a column of the same database may hold."""
    keyed: Callable[[ColumnType], ColumnType] = lambda kind: kind
    """The type where the column is a part of a primary key."""
    limits: ColumnLimits = ColumnLimits()
    """What its columns hold."""
    domain: Callable[..., ColumnType] | None = None
    """A type of the log's own, made of another one; None where there are none.
    A writer pays a twentieth of a table's CHECK for its condition.
    """
    log_number: ColumnType = sa.BigInteger()
    log_time: ColumnType = sa.DateTime()
    """When an event took place."""
    log_moment: ColumnType = sa.DateTime()
    """When something was done to a row of the log."""
    log_name: ColumnType = sa.Text()
    """The name of a table, a column or a user."""
    log_context: ColumnType = sa.Text()
    """What a session says of who is behind its changes: one that takes whatever a session may hold."""
    log_key: ColumnType = sa.Text()
    log_value: ColumnType = sa.Text()
    fingerprint: ColumnType = sa.String(200)
    """What stands for a trigger's text: a hash, where the database has one."""
    log_options: Mapping[str, Any] = {}
    """Options of the log, in SQLAlchemy's words, besides those of all tables."""
    table_options: Mapping[str, Any] = {}
    number_options: Mapping[str, Any] = {}
    """Options of a sequence, or of a column that numbers itself."""
