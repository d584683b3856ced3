"""Which values XDS cannot say, and which of those that it can is the nearest."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Value
from eventlog.core.sql_types import Category
from eventlog.on_value import BeyondSide, side_of
from eventlog.xds.values import EPOCH, FORBIDDEN, AsText, Fields, TimeSyntax, moment, values

REPLACEMENT = "\ufffd"
"""Unicode's character for one that cannot be shown."""
_TIMES = frozenset({Category.DATE, Category.TIME, Category.TIMESTAMP})
_ENDS = {
    1: ("1970-01-01 00:00:00", "2106-02-07 06:28:15"),
    2: ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999999"),
    3: ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999999"),
}
"""The first and the last time of each syntax."""
_clocks = ("00:00:00", "23:59:59.999999999")
# Syntax 1 counts seconds in 32 bits; the others have four digits of the year.
_forbidden = re.compile(f"[{FORBIDDEN}]")


class XdsSayer:
    """What is known about the values of one table."""

    def __init__(self, fields: Fields, syntax: TimeSyntax) -> None:
        self._fields = fields
        self._syntax = syntax

    def check(self, column: str, value: Value) -> None:
        values(self._fields[column], value, column)

    def nearest(self, column: str, value: Value) -> Value:
        """Find the nearest expressible value; None for a reference, where it would be another object."""
        try:
            field = self._fields[column]
        except ExpressionError:  # its name cannot be said either
            return None
        if field.reference or isinstance(value, bytes):
            return None
        if field.category in _TIMES:
            side = _side(value, field.category)
            if side is not None:
                return self._end(field.category, side)
        if field.category is Category.STATE and _is_number(value):
            return True  # every number but 0 is, where there are such
        return AsText(_forbidden.sub(REPLACEMENT, str(value)))

    def holds_several(self, column: str) -> bool:
        """Return True for a child table's column."""
        return self._fields[column].several

    def _end(self, category: Category | None, side: BeyondSide) -> str:
        ends = _ENDS[self._syntax]
        if category is Category.TIME:
            ends = _clocks
        end = ends[side is BeyondSide.LATE]
        if category is Category.DATE:
            return end[:10]
        return end


def _side(value: Value, category: Category | None) -> BeyondSide | None:
    """Return the side on which a time lies outside the syntax; None if it is not of its column's
    kind.
    """
    try:
        at = moment(value)
    except ExpressionError:
        # Text that is no time may still say that it is after all times, as `infinity` does.
        return side_of(value)
    if at.day is None or category is Category.TIME:
        return None
    # A time that can be read was refused by syntax 1 only, so it lies on one side of its range.
    if at.day < EPOCH:
        return BeyondSide.EARLY
    return BeyondSide.LATE


def _is_number(value: Value) -> bool:
    try:
        return Decimal(str(value)).is_finite()
    except InvalidOperation:
        return False
