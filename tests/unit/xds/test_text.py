"""Characters: which XML 1.0 carries, how they are escaped, and how a message shows a value."""

from __future__ import annotations

import pytest

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.xds.values import attribute, check, escape

FORBIDDEN = [*range(9), 0xB, 0xC, *range(0xE, 0x20), 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFFFE, 0xFFFF]
CARRIED = [0x9, 0xA, 0xD, 0x20, 0x7F, 0x85, 0xA0, 0x2028, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x1FFFE, 0x10FFFF]


@pytest.mark.parametrize("code", FORBIDDEN, ids=hex)
@pytest.mark.parametrize("write", [check, escape, attribute])
def test_a_forbidden_character_is_refused_by_place_and_name(write: object, code: int) -> None:
    with pytest.raises(ExpressionError, match=rf"character 4 is U\+{code:04X}, which XML 1.0 cannot carry"):
        write("<é&" + chr(code))  # type: ignore[operator] # three functions of one shape


@pytest.mark.parametrize("code", CARRIED, ids=hex)
def test_every_other_character_is_carried(code: int) -> None:
    check(chr(code))
    assert escape(chr(code)) == ("&#13;" if code == 0xD else chr(code))


@pytest.mark.parametrize(
    "value, expected",
    [
        ("a", "'a'"),
        ("\ud800\0", r"'\ud800\x00'"),
        ("x" * 99, "'" + "x" * 80 + "… (19 more characters)'"),
        (b"ab", "binary data (2 bytes)"),
        (memoryview(b"abc"), "binary data (3 bytes)"),
        (5, "5"),
        (10**5000, "a number of thousands of digits"),
        (None, "None"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_shows_a_value_short_and_printable(value: object, expected: str) -> None:
    assert value_shown(value) == expected


def test_only_what_must_be_is_escaped() -> None:
    assert escape("a<b>&c\r\n\t\"'") == "a&lt;b&gt;&amp;c&#13;\n\t\"'"
    assert attribute("a<b>&c\r\n\t\"'") == "a&lt;b&gt;&amp;c&#13;&#10;&#9;&quot;'"
    text = "nothing to do"
    assert escape(text) is text
