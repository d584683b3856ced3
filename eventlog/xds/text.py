"""Characters: what XML 1.0 can carry, what must be escaped, and the refusal of what it cannot carry.

The rule: U+0000 to U+0008, U+000B, U+000C, U+000E to U+001F, U+FFFE, U+FFFF and lone surrogates have no form in
XML 1.0, not even an escaped one. They are refused by name and place, because a replacement would be a silent loss.
"""

from __future__ import annotations

import re

from eventlog.core.errors import ExpressionError, shortened

_FORBIDDEN = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
special = re.compile(f"[&<>\r{_FORBIDDEN}]").search
"""Finds a character that cannot stand as it is; nearly every value has none, and is written untouched."""
_forbidden = re.compile(f"[{_FORBIDDEN}]").search
_ATTRIBUTE = str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


def escaped(text: str) -> str:
    """The text as element content. A carriage return is written as a reference, for parsers drop a bare one."""
    if special(text) is None:
        return text
    check(text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def attribute(text: str) -> str:
    """The text as an attribute's value, where parsers would turn a bare tab or newline into a blank."""
    return escaped(text).translate(_ATTRIBUTE)


def check(text: str) -> None:
    """Refuses text that XML 1.0 cannot carry."""
    found = _forbidden(text)
    if found is not None:
        raise ExpressionError(
            f"character {found.start() + 1} is U+{ord(found[0]):04X}, which XML 1.0 cannot carry; remove it,"
            " or keep the data in a binary column"
        )


def shown(value: object) -> str:
    """The value as a message shows it: short, and without characters that a log or a database would choke on."""
    if isinstance(value, str):
        return repr(shortened(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return f"binary data ({memoryview(value).nbytes} bytes)"
    try:
        return shortened(repr(value))
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "a number of thousands of digits"
