"""Whether a column of a target can hold a value: the one place that says so.

A format asks before a row is made, so that what becomes of the value is the setting's word,
whatever the target is. What is none of the column's type is refused by its reading already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.limits import ColumnLimits
from eventlog.core.sql_types import Category, category
from eventlog.qlik.readings import Reading, is_whole_text, reading_of
from eventlog.qlik.typemap import DECIMAL_DIGITS, qlik_type

_largest_single: Final = 3.4028235677973366e38
"""Half a step above the largest number of single precision, which is what rounds to infinity."""
_WHOLE_BITS: Final = {"integer": 32, "bigint": 64}
_FAR: Final = frozenset({Category.DATE, Category.TIME, Category.TIMESTAMP, Category.STATE})
Quick = Callable[[Reading], Reading]


class Limit(Struct, frozen=True):
    """What one column holds: whether all of many values, and why not, of one. `quick` makes a reading of
    its own for texts that surely are such values, as most are, and leaves others to the one it is given.
    """

    holds: Callable[[Sequence[Any]], bool]
    problem: Callable[[Any], str | None]
    quick: Quick = lambda read: read

    def check(self, read: Reading) -> Reading:
        """Wrap a reading to refuse values beyond the column's limit."""
        problem = self.problem

        def read_checked(cell: Any) -> Any:
            value = read(cell)
            why = problem(value)
            if why is not None:
                raise ExpressionError(f"{value_shown(cell)} is {why}")
            return value

        return self.quick(read_checked)


def reading_within(sql_type: str, limits: ColumnLimits | None) -> Reading:
    """Read what a column of this type holds there: also a value that Python lacks, where the target has it."""
    read = reading_of(sql_type)
    if limits is None:
        return read
    bound = limit_of(sql_type, limits)
    if bound is not None:
        read = bound.check(read)
    far = _far_reading(sql_type, limits)
    if far is None:
        return read

    def read_also_far(cell: Any) -> Any:
        try:
            return read(cell)
        except ExpressionError:
            value = far(str(cell)) if isinstance(cell, str | int | Decimal) else None
            if value is None:
                raise
            return value

    return read_also_far


def _far_reading(sql_type: str, limits: ColumnLimits) -> Callable[[str], Any] | None:
    """Choose a reading for values that Python lacks; None where the target has none."""
    kind, beyond = category(sql_type), limits.beyond
    if kind in _FAR and beyond is not None:
        return lambda text: beyond(sql_type, kind, text)
    # A whole number with more digits than a BIGINT's is an exact one there.
    if limits.exact_nan and kind is Category.INT and qlik_type(sql_type).forms.sql == "decimal":
        return {"NaN": Decimal("NaN")}.get
    return None


@lru_cache(maxsize=4096)
def limit_of(sql_type: str, limits: ColumnLimits) -> Limit | None:
    """Find the limit of a column of this type; None where it holds every value of the type."""
    kind = qlik_type(sql_type)
    word = kind.forms.sql
    if word == "text":
        return _TEXT if limits.nul else _TEXT_WITHOUT_NUL
    if word in ("real", "double"):
        return _fraction(limits, single=word == "real" and limits.single)
    if not limits.sized:
        return None
    if word in _WHOLE_BITS:
        return _whole(_WHOLE_BITS[word])
    if word == "decimal" and kind.digits is not None and kind.digits[0] <= DECIMAL_DIGITS:
        return _exact(*kind.digits, nan=limits.exact_nan)
    return None


def _whole(bits: int) -> Limit:
    beyond = 2 ** (bits - 1)
    digits = len(str(beyond))

    def problem(value: int) -> str | None:
        return None if -beyond <= value < beyond else f"beyond what {bits} bits hold"

    def holds(values: Sequence[int | None]) -> bool:
        most, least = max(filter(None, values), default=0), min(filter(None, values), default=0)
        return bool(-beyond <= least and most < beyond)

    def quick(read: Reading) -> Reading:
        def read_whole(cell: Any) -> Any:
            if type(cell) is str and len(cell) < digits and cell.isdigit() and cell.isascii():
                return int(cell)
            return read(cell)

        return read_whole

    return Limit(holds, problem, quick)


def _exact(precision: int, scale: int, *, nan: bool) -> Limit:
    quantum, digits = Decimal((0, (1,), -scale)), precision - scale

    def problem(value: Decimal | int) -> str | None:
        number = Decimal(value)
        if not number.is_finite():
            return None if nan and number.is_nan() else "no number that an exact type holds"
        if number and number.adjusted() >= digits:
            return f"longer than the {digits} digits that the column has before the point"
        if number.same_quantum(quantum) or -int(number.normalize().as_tuple().exponent) <= scale:
            return None
        return f"longer than the {scale} digits that the column has behind the point"

    def holds(values: Sequence[Decimal | None]) -> bool:
        there = [value for value in values if value is not None]
        # Nearly all databases write numbers with as many digits as the column has; whole ones are no Decimals.
        if scale == 0 or not all(map(quantum.same_quantum, there)):
            return not any(map(problem, there))
        return not there or max(map(Decimal.adjusted, there)) < digits

    point = slice(-scale - 1, -scale or None)

    def quick(read: Reading) -> Reading:
        def read_exact(cell: Any) -> Any:
            if type(cell) is str and len(cell) <= precision and cell[point] == ".":
                try:
                    return Decimal(cell)
                except InvalidOperation:
                    pass
            return read(cell)

        return read_exact

    return Limit(holds, problem, quick)


def _fraction(limits: ColumnLimits, *, single: bool) -> Limit | None:
    if limits.nan and limits.infinite and not single:
        return None
    nan, infinite = limits.nan, limits.infinite

    def problem(value: float) -> str | None:
        if not math.isfinite(value):
            held = nan if math.isnan(value) else infinite
            return None if held else "no number that the column holds"
        if single and abs(value) >= _largest_single:
            return "too large for a number of single precision"
        return None

    def holds(values: Sequence[float | None]) -> bool:
        return not any(map(problem, filter(None, values)))

    return Limit(holds, problem)


def _text(*, nul: bool) -> Limit:
    def problem(value: str) -> str | None:
        if not nul and "\0" in value:
            return "text with a NUL, which the target cannot hold"
        if is_whole_text(value):
            return None
        return "text with half a character, which UTF-8 cannot carry; correct the value"

    def holds(values: Sequence[str | None]) -> bool:
        return problem("".join(filter(None, values))) is None

    def quick(read: Reading) -> Reading:
        def read_text(cell: Any) -> Any:
            if type(cell) is str and cell.isascii() and (nul or "\0" not in cell):
                return cell
            return read(cell)

        return read_text

    return Limit(holds, problem, quick)


_TEXT: Final = _text(nul=True)
_TEXT_WITHOUT_NUL: Final = _text(nul=False)
