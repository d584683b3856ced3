"""Who is behind a change, as outputs tell it: cleaned once, so that no format meets a strange character."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eventlog.core.model import Who

MOST_CHARACTERS: Final = 400
"""Characters of a user, or of what a session said; the rest is cut off."""

HEADERS: Final = {"user": "eventlog.user", "context": "eventlog.context"}
"""What headers of messages are called."""


def make_who(user: str | None, context: object) -> Who:
    """Describe who made a change, from the log; nobody in particular if empty."""
    return Who(_clean(user), _clean(read_context(context)))


def read_context(said: object) -> str | None:
    """Read a session's context from the log.

    A trigger writes the bytes unchecked, to spare its writer the cost; bytes other than UTF-8 are
    read as Latin 1.
    """
    if isinstance(said, bytes):
        try:
            return said.decode()
        except UnicodeDecodeError:
            return said.decode("latin-1")
    return None if said is None else str(said)


def _clean(text: str | None) -> str | None:
    """Cut a text, without padding, and put � for characters that cannot be shown."""
    if text is None:
        return None
    text = text[:MOST_CHARACTERS].rstrip(" ")
    if not text.isprintable():
        text = "".join([one if one.isprintable() else "\ufffd" for one in text])
    return text or None


def who_fields(who: Who | None) -> dict[str, str | None]:
    """Write who made a change as fields of an object, known or not."""
    if who is None:
        return {"user": None, "context": None}
    return {"user": who.user, "context": who.context}


def who_headers(who: Who | None) -> tuple[tuple[str, bytes], ...]:
    """Write who made a change as headers of a message, if known."""
    fields: Mapping[str, str | None] = who_fields(who)
    return tuple([(HEADERS[name], text.encode()) for name, text in fields.items() if text is not None])
