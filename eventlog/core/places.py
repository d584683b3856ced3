"""Places that documents and rows go to by a template: folders, addresses, topics, tables. Pure:
texts in, a text out.

Law: a value never leads out of its part of a template. What it has that a place cannot have is
written otherwise where that can be undone (folders, addresses); where it cannot (topics, tables),
the value gives no place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import PlaceKind
from eventlog.core.suggest import did_you_mean

PART_BYTES: Final = 200
"""Bytes of one part of a folder or an address; file systems take 255, and tools add to names."""
PLACE_BYTES: Final = 1000
"""Bytes of a whole folder or address."""
TOPIC_CHARACTERS: Final = 249
"""Characters that a broker takes in the name of a topic."""
TABLE_BYTES: Final = 55
"""Bytes in the name of a target table before its suffix; the strictest of the databases take 63
with it.
"""
RESERVED: Final = frozenset(
    (
        *("con", "prn", "aux", "nul"),
        *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)),
    )
)
"""Names that are no files on Windows, whatever follows their first dot; a folder may be shared with
one.
"""

topic_name = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII).fullmatch
"""Finds names that a topic can have."""

# Doubled braces first, so that `{{name}}` has no field.
_field = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
# A dot or a dash at an end, our own hidden names, and what looks like one of our files.
_odd_in_folder = re.compile(r"[^\w.-]|^[._~-]|\.$|\.(?=(?:xml|part)$)", re.IGNORECASE)
# All but the unreserved characters of RFC 3986, which are never escaped.
_odd_in_address = re.compile(r"[^A-Za-z0-9_.~-]", re.ASCII)
_leads_elsewhere = re.compile(r"\.{1,2}$|.*[\x00-\x1f\x7f/\\\\]", re.DOTALL).match
_table = re.compile(r"[^\W\d]\w*").fullmatch


class PlaceTemplate:
    """A text with fields in braces; `{{` and `}}` are braces themselves. `fields` are the names of its
    fields.
    """

    def __init__(self, text: str, key: str, known: Iterable[str] = (), prefix: str = "") -> None:
        """Parse a template; `key` names the setting. Fields are `known`, or begin with `prefix`."""
        known = tuple(known)
        self._parts: list[tuple[str, bool]] = []
        end = 0
        for match in _field.finditer(text):
            self._parts.append((text[end : match.start()], False))
            end = match.end()
            name = match[1]
            if name is None:
                if match[0] in "{}":
                    raise ConfigError(f"{key} is {text!r}, which is no template; a brace is not closed.")
                self._parts.append((match[0][0], False))
            elif name in known or (prefix and name.startswith(prefix) and name != prefix):
                self._parts.append((name, True))
            else:
                raise _unknown(name, key, known, prefix)
        self._parts.append((text[end:], False))
        self._parts = [(part, is_field) for part, is_field in self._parts if part]
        self.fields = tuple(dict.fromkeys(part for part, is_field in self._parts if is_field))

    def fill(self, values: Mapping[str, str], write: Callable[[str], str] = str) -> str:
        """Fill the fields with values, each written so."""
        texts = [write(values[part]) if is_field else part for part, is_field in self._parts]
        return "".join(texts)


def _unknown(name: str, key: str, known: tuple[str, ...], prefix: str) -> ConfigError:
    """Make the error for an unknown field, with the fields of the template and the nearest one."""
    takes = [f"{{{field}}}" for field in known]
    near = [*known]
    if prefix:
        takes.append(f"{{{prefix}ATTRIBUTE}}")
        near.append(prefix + name.rpartition(".")[2])  # an attribute that was written without it
    hint = did_you_mean(name, near)
    return ConfigError(f"{key} names {{{name}}}; it knows {', '.join(takes)}.", hint=hint)


class NoPlace(Exception):  # noqa: N818  # an outcome, shown in the note of a row
    """The template gives no valid place for these values; why, without the values."""


def place(
    template: PlaceTemplate,
    values: Mapping[str, str],
    kind: PlaceKind,
    taken: Iterable[str] = (),
) -> str:
    """Format the place of the values; raise NoPlace if there is none. `taken` are topics in other use."""
    if not all(values[name] for name in template.fields):
        raise NoPlace("a value in it is empty")
    if kind == "topic":
        return _topic(template.fill(values), taken)
    if kind == "table":
        name = template.fill(values)
        if _table(name) is None or len(name.encode()) > TABLE_BYTES:
            problem = "a table's name has letters, digits and _, begins with no digit,"
            raise NoPlace(f"{problem} and has at most {TABLE_BYTES} bytes")
        if name.lower().startswith("attrep_"):  # the control tables of Qlik Replicate
            raise NoPlace("the table has another use")
        return name
    write = _in_folder if kind == "folder" else _in_address
    # A slash of a value must not part the place, so it is hidden until the template's own have. A value is
    # written as a part of a name: what the whole part must not be is known only when it is put
    # together.
    parts = template.fill(values, lambda value: value.replace("%", "%25").replace("/", "%2f")).split("/")
    written = [write(part.replace("%2f", "/").replace("%25", "%")) for part in parts]
    if not all(written):
        raise NoPlace("a part of it is empty")
    longest = max(len(part.encode()) for part in written)
    if longest > PART_BYTES or len("/".join(written).encode()) > PLACE_BYTES:
        raise NoPlace("it would be too long")
    return "/".join(written)


def _in_folder(part: str) -> str:
    """Write a folder name valid on any file system, from which the value can be read."""
    written = _odd_in_folder.sub(_escape_match, _bare(part))
    if written.partition(".")[0].lower() in RESERVED:
        return _escape(written[0]) + written[1:]
    return written


def _in_address(part: str) -> str:
    """Escape a value for an address; refuse path steps such as `..`.

    Receivers undo escapes before they resolve a path.
    """
    if _leads_elsewhere(part):
        raise NoPlace("a value in it has what leads elsewhere in an address")
    return _odd_in_address.sub(_escape_match, _bare(part))


def _bare(part: str) -> str:
    # Half of a surrogate pair has no bytes in UTF-8.
    if any("\ud800" <= character <= "\udfff" for character in part):
        raise NoPlace("a value in it has half a character")
    return part


def _escape_match(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def _topic(name: str, taken: Iterable[str]) -> str:
    if topic_name(name) is None or name in (".", ".."):
        raise NoPlace(f"a topic has at most {TOPIC_CHARACTERS} of a-z A-Z 0-9 . _ -")
    # Names with two underscores are the broker's own.
    if name in taken or name.startswith("__"):
        raise NoPlace("the topic has another use")
    return name
