"""The packed base-100 form of DECIMAL, DATETIME and INTERVAL: a sign, an exponent, pairs of digits.

The first byte holds the sign in its highest bit (1 is positive) and the exponent + 64 below; the point stands left of
the first pair. Of negative numbers the first byte is complemented, and the pairs are what is missing to 100.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import NamedTuple

_exact = Context(prec=200, Emax=999_999, Emin=-999_999)


class Packed(NamedTuple):
    """A packed number taken apart: the pairs stand right of the point, which `exponent` moves by as many pairs."""

    negative: bool
    exponent: int
    pairs: bytes


def unpack(data: bytes) -> Packed | None:
    """Takes a packed number apart; None is NULL, ValueError a byte that is no pair of digits."""
    first, pairs = data[0], data[1:]
    if first == 0:
        return None
    if pairs and max(pairs) > 99:
        raise ValueError(f"the byte {max(pairs):02X} is no pair of decimal digits")
    if first & 0x80:
        return Packed(False, (first & 0x7F) - 64, pairs)
    return Packed(True, (~first & 0x7F) - 64, _complement(pairs))


def pack(packed: Packed, size: int) -> bytes:
    """Puts a packed number together in `size` bytes; OverflowError when it has more pairs or too great an exponent."""
    pairs = packed.pairs.lstrip(b"\0")
    exponent = packed.exponent - (len(packed.pairs) - len(pairs))
    pairs = pairs.rstrip(b"\0")
    if not pairs:
        return b"\x80" + bytes(size - 1)
    highest = 62 if packed.negative else 63  # the complement of the other one would be the first byte of NULL
    if len(pairs) > size - 1 or not -64 <= exponent <= highest:
        raise OverflowError(f"{len(pairs)} pairs of digits with the exponent {exponent} do not fit into {size} bytes")
    if packed.negative:
        return bytes([~(0x80 | (exponent + 64)) & 0xFF]) + _complement(pairs.ljust(size - 1, b"\0"))
    return bytes([0x80 | (exponent + 64)]) + pairs.ljust(size - 1, b"\0")


def _complement(pairs: bytes) -> bytes:
    kept = pairs.rstrip(b"\0")
    if not kept:
        return pairs
    turned = bytes([99 - pair for pair in kept[:-1]]) + bytes([100 - kept[-1]])
    return turned.ljust(len(pairs), b"\0")


def unpack_decimal(data: bytes, precision: int, scale: int | None) -> Decimal | None:
    """A DECIMAL's value with its type's scale; without a scale it floats. ValueError when it cannot be of its type."""
    packed = unpack(data)
    if packed is None:
        return None
    number = 0
    for pair in packed.pairs:
        number = number * 100 + pair
    if packed.negative:
        number = -number
    exponent = 2 * (packed.exponent - len(packed.pairs))
    if scale is None:
        return _floating(number, exponent)
    if number and packed.exponent > (precision - scale + 1) // 2:
        raise ValueError(f"its exponent {packed.exponent} is outside decimal({precision},{scale})")
    if exponent < -scale:
        rest = 10 ** (-scale - exponent)
        if number % rest:  # more digits than the type has: all of them are kept
            return Decimal(number).scaleb(exponent, _exact)
        number //= rest
    else:
        number *= 10 ** (exponent + scale)
    return Decimal(number).scaleb(-scale, _exact)


def _floating(number: int, exponent: int) -> Decimal:
    """Without needless zeros, and without an exponent where it has no fraction."""
    value = Decimal(number).scaleb(exponent, _exact).normalize(_exact)
    _, _, least = value.as_tuple()
    return value.quantize(Decimal(1), context=_exact) if isinstance(least, int) and least > 0 else value


def pack_decimal(value: Decimal, size: int) -> bytes:
    """A DECIMAL's bytes; OverflowError when they would be more."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise OverflowError(f"{value} is no number")
    text = "".join(map(str, digits)) + "0" * (exponent % 2)
    text = text.rjust(len(text) + len(text) % 2, "0")
    pairs = bytes(int(text[at : at + 2]) for at in range(0, len(text), 2))
    return pack(Packed(bool(sign), len(pairs) + (exponent - exponent % 2) // 2, pairs), size)
