"""Values as policies see them: text that is the same however a value came, and what hides it.

A log has every value as text, and a database hands out numbers and times. Both become one text
here, so that equal values have equal hashes.
"""

from __future__ import annotations

import binascii
import datetime as dt
import hashlib
import hmac
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from eventlog.core.model import ABSENT, CellOrAbsent, Value
from eventlog.core.sql_types import Category, truth_of
from eventlog.core.times import moment

ValueChange = Callable[[Value], Value]
"""What a step puts in the place of a value that is not NULL."""

NONCE_BYTES = 12
DAY_CHARACTERS = 10
"""Characters of a day without a time, which is the same in every zone."""
BLOCK_BYTES = 64
"""Bytes that SHA-256 takes at once."""


def each(cell: CellOrAbsent, change: ValueChange) -> CellOrAbsent:
    """Change a cell's value, or each of its values; NULL and unknown ones stay."""
    if cell is None or cell is ABSENT:
        return cell
    if isinstance(cell, tuple):
        return tuple([None if value is None else change(value) for value in cell])
    return change(cell)


def text_of(value: Value, category: Category) -> str:
    """Write the one text of a non-NULL value."""
    if type(value) is str and category is Category.STRING:
        return value
    plain = plain_of(value, category)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, bytes):
        return binascii.b2a_base64(plain, newline=False).decode("ascii")
    if isinstance(plain, Decimal):
        return format(plain, "f")
    return str(plain)


def plain_of(value: Value, category: Category) -> Value:
    """Convert a value to its column's meaning, from text or not; other text stays text."""
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return _moment_text(value)
    # The shortest text of a float is what a log has of it; format() would show its binary tail.
    if isinstance(value, float) and category is Category.NUMBER:
        return _number(repr(value))
    if isinstance(value, Decimal):
        return _number(format(value, "f"))
    if not isinstance(value, str):
        if category is Category.STATE and value in (0, 1):
            return bool(value)
        return value
    text = value.strip(" ")
    if category in (Category.INT, Category.NUMBER):
        return _number(text)
    if category is Category.STATE:
        state = truth_of(text)
        return value if state is None else state
    if category is Category.TIMESTAMP:
        time = moment(text)
        return value if time is None else _moment_text(time)
    return value


def _moment_text(value: dt.datetime | dt.date | dt.time) -> str:
    """Write a time in ISO 8601; without a zone it counts as UTC, as everywhere here."""
    if isinstance(value, dt.datetime):
        utc = moment(value) or value.replace(tzinfo=None)
        return utc.isoformat() + "Z"
    return value.isoformat()


def _number(text: str) -> Value:
    """Parse a whole number, or a decimal one without zeros at its end."""
    try:
        number = Decimal(text)
        # One of thousands of digits would take its time, and stays the text that it is.
        if not number.is_finite() or abs(number.adjusted()) > 400:
            return text
        whole = number == number.to_integral_value()
    except InvalidOperation:
        return text
    return int(number) if whole else number.normalize()


def format_date(value: Value, form: str, zone: dt.tzinfo) -> str | None:
    """Write a time in another form; None where the value is none."""
    # A day without a time is the same day in every zone, so it is read as the text that it is.
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = value.isoformat()
    time = moment(value) if isinstance(value, str | dt.datetime) else None
    if time is None:
        return None
    is_day = isinstance(value, str) and len(value.strip()) == DAY_CHARACTERS
    try:
        there = time if is_day else time.replace(tzinfo=dt.UTC).astimezone(zone)
    # Near the years 1 and 9999 the time of another zone is beyond Python's.
    except OverflowError:
        return None
    # Systems write years before 1000 with or without zeros.
    year = f"{there.year:04d}"
    # %% goes first, so that the Y behind an escaped percent sign is left alone.
    return there.strftime(re.sub(r"%%|%Y", lambda part: year if part[0] == "%Y" else "%%", form))


def format_number(value: Value, decimals: int | None, mark: str, group: str) -> str | None:
    """Write a number with so many decimals and these marks; None where the value is none."""
    if isinstance(value, bool | bytes):
        return None
    try:
        number = Decimal(str(value).strip())
        if not number.is_finite() or abs(number.adjusted()) > 400:
            return None
        if decimals is not None:
            with localcontext(prec=1000):  # else 28 digits would be too few to be rounded
                number = number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    except InvalidOperation:
        return None
    whole, _, rest = format(number, ",f").partition(".")
    text = whole.replace(",", group)
    if rest:
        text += mark + rest
    return text


def hashing(secret: str, category: Category) -> ValueChange:
    """Make a function hashing a value's text with HMAC-SHA256, in hexadecimal."""
    key = hmac.new(secret.encode(), b"eventlog policy hash", hashlib.sha256).digest()
    key = key.ljust(BLOCK_BYTES, b"\0")
    # What the standard library does with a key for each value anew is more than half of the work
    # (RFC 2104).
    inner, outer = (hashlib.sha256(bytes([byte ^ pad for byte in key])) for pad in (0x36, 0x5C))
    is_text = category is Category.STRING

    def hash_value(value: Value) -> Value:
        text = value if is_text and type(value) is str else text_of(value, category)
        first, second = inner.copy(), outer.copy()
        # A log may have half a character, which UTF-8 has no bytes for.
        first.update(text.encode(errors="surrogatepass"))
        second.update(first.digest())
        return second.hexdigest()

    return hash_value


def encrypting(secret: str, category: Category, attribute: str) -> ValueChange:
    """Make a function encrypting a value's text with AES-256-GCM: nonce and cipher text in Base64.

    The nonce is derived from the value, with a key of its own: a repeated batch gives the same
    bytes, and no nonce serves two values of an attribute. Equal values of an attribute are visible
    as equal.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # One key for the cipher and one for the nonces, so that neither tells anything of the other.
    key, nonce_key = [
        hmac.new(secret.encode(), b"eventlog policy " + use, hashlib.sha256).digest() for use in (b"key", b"nonce")
    ]
    # Half of a surrogate pair may stand in a name or a value, and has to come back as it was.
    cipher, beside = AESGCM(key), attribute.encode(errors="surrogatepass")

    def encrypt_value(value: Value) -> Value:
        plain = text_of(value, category).encode(errors="surrogatepass")
        nonce = hmac.new(nonce_key, beside + b"\0" + plain, hashlib.sha256).digest()[:NONCE_BYTES]
        sealed = nonce + cipher.encrypt(nonce, plain, beside)
        return binascii.b2a_base64(sealed, newline=False).decode("ascii")

    return encrypt_value


def decrypt(secret: str, attribute: str, text: str) -> str:
    """Decrypt a text of `encrypting` with the secret; raise ValueError where it is not ours."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sealed = binascii.a2b_base64(text)
    key = hmac.new(secret.encode(), b"eventlog policy key", hashlib.sha256).digest()
    beside = attribute.encode(errors="surrogatepass")
    try:
        plain = AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], beside)
    except InvalidTag:
        raise ValueError("The value was not encrypted with this secret for this attribute.") from None
    return plain.decode(errors="surrogatepass")
