"""Decimals and dates in the sixteen bytes that `packed-v1` has for them: a status, then thirty digits. Does no I/O."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Final

from eventlog.core.errors import DataError

SIZE: Final = 16
WHOLE_DIGITS: Final = 20
FRACTION_DIGITS: Final = 10
_ZERO, _NEGATIVE, _POSITIVE = 0, 1, 2
SPECIAL: Final = {3: Decimal("-Infinity"), 4: Decimal("Infinity"), 5: Decimal("NaN")}
"""What overflows and errors are told as: values that no number equals."""

_first = dt.datetime(1, 1, 1)
_tick = dt.timedelta(milliseconds=10)
_NO_FRACTION = bytes(FRACTION_DIGITS // 2)
_limit = 10 ** (WHOLE_DIGITS + FRACTION_DIGITS)


def decimal(raw: bytes) -> Decimal:
    """The number, without zeros that say nothing."""
    status = raw[0]
    if status in SPECIAL:
        return SPECIAL[status]
    digits = _digits(raw)
    if status == _ZERO:
        return Decimal(0)
    if status not in (_NEGATIVE, _POSITIVE):
        raise DataError(f"the status {status} of a number is not known")
    whole, fraction = digits[:WHOLE_DIGITS].lstrip("0") or "0", digits[WHOLE_DIGITS:].rstrip("0")
    sign = "-" if status == _NEGATIVE else ""
    return Decimal(f"{sign}{whole}.{fraction}" if fraction else sign + whole)


def decimal_bytes(value: Decimal) -> bytes:
    """The inverse of `decimal`; DataError for what does not fit into twenty digits and ten behind the point."""
    if not value.is_finite():
        status = 5 if value.is_nan() else 3 if value.is_signed() else 4
        return bytes((status,)) + bytes(SIZE - 1)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + FRACTION_DIGITS
    magnitude = int("".join(map(str, digits)))
    if shift < 0:
        magnitude, rest = divmod(magnitude, 10**-shift)
        if rest:
            raise DataError(f"{value} has more than {FRACTION_DIGITS} digits behind the point")
    else:
        magnitude *= 10 ** min(shift, WHOLE_DIGITS + FRACTION_DIGITS)
    if magnitude >= _limit:
        raise DataError(f"{value} has more than {WHOLE_DIGITS} digits before the point")
    status = _ZERO if not magnitude else _NEGATIVE if value < 0 else _POSITIVE
    return bytes((status,)) + bytes.fromhex(f"{magnitude:030d}")


def date(raw: bytes) -> dt.datetime:
    """The time, to hundredths of a second."""
    digits = _digits(raw)
    if raw[0] not in (_ZERO, _POSITIVE) or raw[1 + WHOLE_DIGITS // 2 :] != _NO_FRACTION:
        raise DataError(f"{raw.hex()} is no date")
    seconds, ticks = divmod(int(digits[:WHOLE_DIGITS]), 100)
    try:
        return _first + dt.timedelta(0, seconds, ticks * 10_000)
    except OverflowError:
        raise DataError(f"{raw.hex()} lies after the year 9999") from None


def date_bytes(value: dt.datetime) -> bytes:
    """The inverse of `date`; what is finer than hundredths of a second is cut off."""
    ticks = (value - _first) // _tick
    return decimal_bytes(Decimal(ticks))


def _digits(raw: bytes) -> str:
    digits = raw[1:].hex()
    if not digits.isdecimal():
        raise DataError(f"{raw.hex()} holds a digit above 9")
    return digits
