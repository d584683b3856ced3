"""Reading XDS: safe parsing, and the `<status>` replies of a receiver.

What is read comes from outside. Nothing is fetched, a document type declaration (the home of
entities) is refused before it can do harm, and a reply may neither hold a text of more than 10 MB
nor nest deeper than 256 elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from xml.parsers import expat

from lxml import etree
from msgspec import Struct

from eventlog.core.errors import XmlError, shorten, value_shown

XmlElement = etree._Element  # noqa: SLF001 - lxml has no public name for the type of its elements


class Level(StrEnum):
    """How an event fared, from best to worst."""

    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"
    RETRY = "retry"
    FATAL = "fatal"


_NOT_UNDERSTOOD = (expat.ExpatError, LookupError, ValueError)
"""What expat raises for what it cannot read, encodings included; libxml2 knows more of them and
says what is wrong.
"""
_BADNESS = {level: rank for rank, level in enumerate(Level)}


class StatusReply(Struct, frozen=True, kw_only=True):
    """One `<status>`: what a receiver says of the event with this id, or of everything where it
    names none.
    """

    level: Level
    event_id: str | None = None
    type: str | None = None
    text: str = ""


def read_statuses(body: bytes) -> list[StatusReply]:
    """Parse a reply: `<nds><output>`, a bare `<output>` or a bare `<status>`; raise DataError for
    anything else.
    """
    root = parse(body)
    output: XmlElement | None = root
    if root.tag == "nds":
        output = root.find("output")
    if output is not None and output.tag == "status":
        return [_status(output)]
    if output is None or output.tag != "output":
        outline = f"<{root.tag}>"
        if inside := shorten(", ".join(f"<{child.tag}>" for child in root)):
            outline += f" with {inside}"
        expected = "a reply is <nds> with <output>, <output> or <status>"
        raise XmlError(f"{expected}, not {outline}", line=line_of(root))
    return [_status(element) for element in output.iterchildren("status")]


def worst(levels: Iterable[Level]) -> Level:
    """Choose the level that counts among several for one event; success if there is none."""
    return max(levels, key=_BADNESS.__getitem__, default=Level.SUCCESS)


def parse(body: bytes, *, huge: bool = False) -> XmlElement:
    """Parse to the root element; raise XmlError. `huge` admits texts of any length; a document type is
    never admitted.
    """
    # The limits go only where no entity can be declared, whatever libxml2 guards against without
    # them.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        huge_tree=huge and _starts_plainly(body),
    )
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        # Without the place, which is given apart, and without advice for programmers.
        message = error.msg or "it is empty"
        reason = re.sub(r"(, (use|try|see) .*)?, line \d+, column \d+$", "", message)
        if not reason[1:2].isupper():
            # It goes on in the middle of a sentence; an abbreviation such as PCDATA stays.
            reason = reason[:1].lower() + reason[1:]
        problem = f"this is not well-formed XML: {shorten(reason, 300)}"
        raise XmlError(problem, line=error.lineno or 1) from error
    declared: object = root.getroottree().docinfo.internalDTD
    if declared is not None:
        problem = "a document type declaration is not accepted"
        raise XmlError(f"{problem}; send the document without it", line=1)
    return root


def _starts_plainly(body: bytes) -> bool:
    """Return True if no document type declaration precedes the first element."""
    met: list[bool] = []

    def meet(*, element: bool) -> None:
        met.append(element)
        # The rest of the document is not read: an error in it is libxml2's to tell.
        raise StopIteration

    reader = expat.ParserCreate()
    reader.StartElementHandler = lambda *_: meet(element=True)
    reader.StartDoctypeDeclHandler = lambda *_: meet(element=False)
    with suppress(StopIteration, *_NOT_UNDERSTOOD):
        reader.Parse(body, True)
    return met == [True]


def start_lines(body: bytes) -> list[int]:
    """List the line of each element in document order. libxml2 counts to 65535 and guesses from there on."""
    lines: list[int] = []
    reader = expat.ParserCreate()
    # expat keeps nothing of what it reads, and so has no limit to the length of a text.
    reader.StartElementHandler = lambda *_: lines.append(reader.CurrentLineNumber)
    with suppress(*_NOT_UNDERSTOOD):
        reader.Parse(body, True)
    return lines


def _status(element: XmlElement) -> StatusReply:
    level = element.get("level")
    if level not in _BADNESS:
        shown, known = value_shown(level), ", ".join(_BADNESS)
        problem = f"the level of a <status> is {shown}; it must be one of {known}"
        raise XmlError(problem, line=line_of(element))
    return StatusReply(
        level=Level(level),
        event_id=element.get("event-id"),
        type=element.get("type"),
        text=" ".join(" ".join(map(str, element.itertext())).split()),
    )


def attributes_of(element: XmlElement) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def line_of(element: XmlElement) -> int:
    # lxml says None of an element that it did not read from text.
    line: object = element.sourceline
    return line if isinstance(line, int) else 1
