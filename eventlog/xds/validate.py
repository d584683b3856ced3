"""Validation: what is wrong with an XDS document, line by line, in words.

The RELAX NG grammar decides about the vocabulary. Beyond it stand the rules of publishing: an event
names its object by an association, and a `<modify>` names its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from lxml import etree
from msgspec import Struct

from eventlog.core.errors import XmlError, shorten, value_shown
from eventlog.xds.grammar import ANYTHING, Word, grammar_text, vocabulary
from eventlog.xds.read import XmlElement, attributes_of, line_of, parse, start_lines

EVENTS: Final = ("add", "modify", "delete", "rename", "move", "modify-password", "sync")
"""What is published of an object, which its association names; the rest asks or answers."""

Fault = tuple[XmlElement, str]


class Problem(Struct, frozen=True, kw_only=True, order=True):
    """One thing that is wrong, and the line it stands in."""

    line: int
    message: str


def validate(body: bytes) -> list[Problem]:
    """List the problems of a document in the order of its lines; none if it can be published."""
    try:
        root = parse(body, huge=True)
    except XmlError as error:
        return [Problem(line=error.line, message=f"{error.problem}.")]
    faults: list[Fault] = []
    grammar = _grammar()
    fits = grammar.validate(root)
    if not fits and root.tag not in ("nds", "input", "output"):
        # The words know many elements, and only these three are documents.
        faults.append((root, f"a document is <nds>, <input> or <output>, not {_tag(root)}."))
    elif not fits:
        faults += _misfits(root)
        # The log speaks where the words have nothing to say, so that a document is never called valid
        # by omission.
        faults = faults or [(root, f"{shorten(each.message, 300)}.") for each in grammar.error_log]
    for events in root.iter("input"):
        for event in events.iterchildren(*EVENTS):
            association = event.find("association")
            if association is None or not (association.text or "").strip():
                problem = f"{_tag(event)} has no <association>"
                faults.append((event, f"{problem}, which every published event needs."))
            if event.tag == "modify" and event.get("class-name") is None:
                faults.append((event, "<modify> has no class-name, which every published modify needs."))
    lines: dict[XmlElement, int] = {}
    if faults:
        # Not strict: where expat gives up, the elements behind have no line.
        lines = dict(zip(root.iter(), start_lines(body), strict=False))
    problems = [Problem(line=lines.get(element) or line_of(element), message=message) for element, message in faults]
    return sorted(problems)


@cache
def _grammar() -> etree.RelaxNG:
    # Compiling it takes longer than judging most documents.
    return etree.RelaxNG(etree.fromstring(grammar_text()))


def _misfits(root: XmlElement) -> Iterator[Fault]:
    """Yield every misfit of elements in the grammar; do not look into elements that may hold anything."""
    words = vocabulary()
    waiting = [root]  # not recursion: a document may nest as deep as its sender likes
    while waiting:
        element = waiting.pop()
        word = words.get(str(element.tag))
        if word is None:
            yield (element, f"{_tag(element)} is not an element of XDS.")
            continue
        yield from _attributes(element, word)
        if not word.open:
            yield from _content(element, word)
            waiting.extend(element)


def _attributes(element: XmlElement, word: Word) -> Iterator[Fault]:
    for name, value in attributes_of(element).items():
        # Attributes of a foreign name space are allowed by the space: `{space}name` by `{space}`.
        allowed = word.attributes.get(name, word.attributes.get(f"{name.partition('}')[0]}}}"))
        if allowed is None:
            if ANYTHING not in word.attributes:
                yield (element, f"{_tag(element)} cannot have the attribute {name}.")
        elif allowed and " ".join(value.split()) not in allowed:
            # The grammar's values are tokens, round which blanks do not count.
            needed = f"it must be one of {', '.join(allowed)}"
            yield (element, f"{_tag(element)} has {name}={value_shown(value)}; {needed}.")
    for name in word.required:
        if name not in element.attrib:
            yield (element, f"{_tag(element)} needs the attribute {name}.")


def _content(element: XmlElement, word: Word) -> Iterator[Fault]:
    names = [str(child.tag) for child in element]
    strange = [child for child in element if child.tag not in word.children]
    for child in strange:
        if child.tag in vocabulary():  # a word that nobody knows is reported where it stands
            yield (child, f"{_tag(element)} cannot hold {_tag(child)}.")
    if not word.text and any(text and text.strip(" \t\r\n") for text in _texts(element)):
        yield (element, f"{_tag(element)} cannot hold text.")
    if not strange and not word.follows(names):
        held = shorten(", ".join(names) or "nothing")
        wanted = word.content or "nothing"
        yield (element, f"{_tag(element)} must hold {wanted} in this order; it holds {held}.")


def _texts(element: XmlElement) -> list[str | None]:
    return [element.text, *[child.tail for child in element]]


def _tag(element: XmlElement) -> str:
    return f"<{element.tag}>"
