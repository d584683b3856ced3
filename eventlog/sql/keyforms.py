"""What the text of a key becomes before it meets a column: a value of the column's type, or nothing. Pure.

Text that cannot be a value of the type finds no row; it must never reach the database, where it would be an error
that takes the other keys with it. The index of a key column is only used when both sides have its type, hence the
types here; whatever is not listed is compared as text.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

_integer = re.compile(r"[+-]?[0-9]{1,19}").fullmatch
_number = re.compile(r"[+-]?[0-9]{0,300}(?:\.[0-9]{0,300})?(?:[eE][+-]?[0-9]{1,2})?").fullmatch
_true = frozenset({"1", "t", "true", "y", "yes", "on"})
_false = frozenset({"0", "f", "false", "n", "no", "off"})


class KeyForm(Struct, frozen=True, kw_only=True):
    """How keys of one column type are bound: `read` gives None for text that is no such value."""

    bound: str
    read: Callable[[str], Any]
    as_text: bool = False


def text(written: str) -> str | None:
    """The text itself, where Unicode can carry it."""
    try:
        written.encode()
    except UnicodeEncodeError:
        return None
    return written


def state(written: str) -> bool | None:
    """A truth value in one of the ways in which databases write it."""
    folded = written.strip().lower()
    return True if folded in _true else False if folded in _false else None


def octets(written: str) -> bytes | None:
    """Bytes from Base64, with or without line breaks."""
    try:
        return binascii.a2b_base64("".join(written.split()), strict_mode=True)
    except ValueError:
        return None


def _text_without_nul(written: str) -> str | None:
    return None if "\0" in written else text(written)


def _whole(written: str) -> int | None:
    value = int(written) if _integer(written.strip()) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def number(written: str) -> Decimal | None:
    """A number exactly as it is written."""
    return Decimal(written.strip()) if _number(written.strip()) and any(map(str.isdigit, written)) else None


def _of(reading: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader that answers None where the standard library raises."""

    def read(written: str) -> Any:
        try:
            return reading(written.strip())
        except (ValueError, OverflowError):
            return None

    return read


def _plain_time(written: str) -> dt.time | None:
    found = dt.time.fromisoformat(written)
    return found if found.tzinfo is None else None


def _plain_moment(written: str) -> dt.datetime | None:
    found = dt.datetime.fromisoformat(written)
    return found if found.tzinfo is None else None


def _moment(written: str) -> dt.datetime:
    """Without a zone a time is in UTC, as our triggers write it."""
    found = dt.datetime.fromisoformat(written)
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


_TEXT: Final = KeyForm(bound="text", read=_text_without_nul)
_AS_TEXT: Final = KeyForm(bound="text", read=_text_without_nul, as_text=True)
_WHOLE: Final = KeyForm(bound="bigint", read=_whole)
_NUMERIC: Final = KeyForm(bound="numeric", read=number)
_TIMESTAMP: Final = KeyForm(bound="timestamp", read=_of(_plain_moment))
_TIMESTAMPTZ: Final = KeyForm(bound="timestamptz", read=_of(_moment))
_TIME: Final = KeyForm(bound="time", read=_of(_plain_time))
_DOUBLE: Final = KeyForm(bound="double precision", read=_of(float))

POSTGRESQL: Final = {
    **dict.fromkeys(("smallint", "integer", "bigint", "int", "int2", "int4", "int8"), _WHOLE),
    **dict.fromkeys(("serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"), _WHOLE),
    **dict.fromkeys(("numeric", "decimal"), _NUMERIC),
    **dict.fromkeys(("double precision", "float8"), _DOUBLE),
    **dict.fromkeys(("boolean", "bool"), KeyForm(bound="boolean", read=state)),
    **dict.fromkeys(("varchar", "character varying", "text"), _TEXT),
    **dict.fromkeys(("char", "character", "bpchar"), KeyForm(bound="bpchar", read=_text_without_nul)),
    **dict.fromkeys(("time", "time without time zone"), _TIME),
    **dict.fromkeys(("timestamp", "timestamp without time zone"), _TIMESTAMP),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), _TIMESTAMPTZ),
    "date": KeyForm(bound="date", read=_of(dt.date.fromisoformat)),
    "uuid": KeyForm(bound="uuid", read=_of(UUID)),
    "bytea": KeyForm(bound="bytea", read=octets),
}
_arguments = re.compile(r"\([^)]*\)")


def postgresql_form(sql_type: str) -> KeyForm:
    """How keys of a column of this type are bound on PostgreSQL; types that are not listed are compared as text."""
    name = _arguments.sub("", sql_type.lower()).partition(" collate ")[0]
    return POSTGRESQL.get(" ".join(name.split()), _AS_TEXT)
