"""Places that documents and rows go to by a template: folders, addresses, topics, tables. Pure:
texts in, a text out.

Law: a value never leads out of its part of a template. What it has that a place cannot have is
written otherwise where that can be undone (folders, addresses); where it cannot (topics, tables),
the value gives no place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from eventlog.core.errors import ConfigError
from eventlog.core.suggest import did_you_mean

PlaceKind = Literal["folder", "address", "topic", "table"]

PART_BYTES: Final = 200
"""Bytes of one part of a folder or an address; file systems take 255, and tools add to names."""
PLACE_BYTES: Final = 1000
"""Bytes of a whole folder or address."""
TOPIC_CHARACTERS: Final = 249
"""Characters that a broker takes in the name of a topic."""
TABLE_BYTES: Final = 55
"""Bytes in the name of a target table before its suffix; the strictest of the databases take 63 with it."""
RESERVED: Final = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)))
)
"""Names that are no files on Windows, whatever follows their first dot; a folder may be shared with one."""

topic_name = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII).fullmatch
"""Finds names that a topic can have."""

_field = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_odd_in_folder = re.compile(r"[^\w.-]|^[._~-]|\.$|\.(?=(?:xml|part)$)", re.IGNORECASE)
_odd_in_address = re.compile(r"[^A-Za-z0-9_.~-]", re.ASCII)
_leads_elsewhere = re.compile(r"\.{1,2}$|.*[\x00-\x1f\x7f/\\\\]", re.DOTALL).match
_table = re.compile(r"[^\W\d]\w*").fullmatch


class PlaceTemplate:
    """A text with fields in braces; `{{` and `}}` are braces themselves. `fields` are the names of its fields."""

    def __init__(self, text: str, key: str, known: Iterable[str] = (), prefix: str = "") -> None:
        """`key` is where it stands in the configuration. Fields are `known`, or begin with `prefix`."""
        known = tuple(known)
        self._parts: list[tuple[str, bool]] = []
        end = 0
        for found in _field.finditer(text):
            self._parts.append((text[end : found.start()], False))
            end = found.end()
            if found[1] is None:
                if found[0] in "{}":
                    raise ConfigError(f"{key} is {text!r}, which is no template; a brace is not closed.")
                self._parts.append((found[0][0], False))
            elif found[1] in known or (prefix and found[1].startswith(prefix) and found[1] != prefix):
                self._parts.append((found[1], True))
            else:
                takes = ", ".join(f"{{{name}}}" for name in (*known, *([f"{prefix}ATTRIBUTE"] if prefix else [])))
                near = did_you_mean(found[1], [*known, prefix + found[1].rpartition(".")[2]] if prefix else known)
                raise ConfigError(f"{key} names {{{found[1]}}}; it knows {takes}.", hint=near)
        self._parts.append((text[end:], False))
        self._parts = [(part, field) for part, field in self._parts if part]
        self.fields = tuple(dict.fromkeys(part for part, is_field in self._parts if is_field))

    def filled(self, values: Mapping[str, str], write: Callable[[str], str] = str) -> str:
        """The text with values in the places of fields, each written so."""
        return "".join([write(values[part]) if is_field else part for part, is_field in self._parts])


class NoPlace(Exception):  # noqa: N818  # an outcome, told in the note of a row
    """The template gives no valid place for these values; why, without the values."""


def place(template: PlaceTemplate, values: Mapping[str, str], kind: PlaceKind, taken: Iterable[str] = ()) -> str:
    """Where the values lead; NoPlace says why nowhere. `taken` are topics that have another use."""
    if not all(values[name] for name in template.fields):
        raise NoPlace("a value in it is empty")
    if kind == "topic":
        return _topic(template.filled(values), taken)
    if kind == "table":
        return _table_name(template.filled(values))
    write = _in_folder if kind == "folder" else _in_address
    # A value is written as a part of a name: what the whole part must not be is known only when it
    # is put together.
    parts = template.filled(values, lambda value: value.replace("%", "%25").replace("/", "%2f")).split("/")
    written = [write(part.replace("%2f", "/").replace("%25", "%")) for part in parts]
    if not all(written):
        raise NoPlace("a part of it is empty")
    if max(len(part.encode()) for part in written) > PART_BYTES or len("/".join(written).encode()) > PLACE_BYTES:
        raise NoPlace("it would be too long")
    return "/".join(written)


def _in_folder(part: str) -> str:
    """A name that is no other folder on any file system; who reads it finds the value in it."""
    written = _odd_in_folder.sub(_escaped, _bare(part))
    if written.partition(".")[0].lower() in RESERVED:
        return _escape(written[0]) + written[1:]
    return written


def _in_address(part: str) -> str:
    """Receivers take escapes back before they look for what leads elsewhere, so nothing like that is sent."""
    if _leads_elsewhere(part):
        raise NoPlace("a value in it has what leads elsewhere in an address")
    return _odd_in_address.sub(_escaped, _bare(part))


def _bare(part: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in part):
        raise NoPlace("a value in it has half a character")
    return part


def _escaped(found: re.Match[str]) -> str:
    return _escape(found[0])


def _escape(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def _topic(name: str, taken: Iterable[str]) -> str:
    if topic_name(name) is None or name in (".", ".."):
        raise NoPlace(f"a topic has at most {TOPIC_CHARACTERS} of a-z A-Z 0-9 . _ -")
    if name in taken or name.startswith("__"):
        raise NoPlace("the topic has another use")
    return name


def _table_name(name: str) -> str:
    if _table(name) is None or len(name.encode()) > TABLE_BYTES:
        raise NoPlace(
            f"a table's name has letters, digits and _, begins with no digit, and has at most {TABLE_BYTES} bytes"
        )
    if name.lower().startswith("attrep_"):
        raise NoPlace("the table has another use")
    return name
