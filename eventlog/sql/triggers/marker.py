"""The marker in every trigger: what it was planned from, and a hash of its text; it makes a trigger a value."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from eventlog.sql.triggers.plan import TriggerOptions

SIGN = "eventlog "
"""What a marker begins with, wherever the database keeps it."""


class Marker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The log that the trigger writes to, the class it belongs to, the options of `track`, and its text's hash.

    `watched` are the attributes that it was made for, where columns were left out.
    """

    log: str
    table: str
    options: TriggerOptions
    hash: str
    watched: tuple[str, ...] = ()


def hash_of(texts: Iterable[str]) -> str:
    """Sixteen digits that change when any of the texts does."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def write_marker(marker: Marker) -> str:
    """The marker on one line; it never ends a SQL comment, whatever the options hold."""
    return SIGN + msgspec.json.encode(marker).decode().replace("*/", "*\\/").replace("/*", "\\/*")


def read_marker(text: str) -> Marker | None:
    """The marker in a trigger's text or comment, or None when there is none that we understand."""
    start = text.find(SIGN + "{")
    if start < 0:
        return None
    line = text[start + len(SIGN) :].partition("\n")[0].strip().removesuffix("*/").strip()
    try:
        return msgspec.json.decode(line, type=Marker)
    except msgspec.DecodeError:
        return None
