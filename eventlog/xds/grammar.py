"""The vocabulary of XDS, read from its RELAX NG grammar: what each element may have and hold.

libxml2 says whether a document follows the grammar, but not in words that help; these tables can.
The grammar stays the only place where the vocabulary is written down, and a property test proves
that both judge alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from xml.etree import ElementTree as ET

from msgspec import Struct

_RNG = "{http://relaxng.org/ns/structure/1.0}"
_COUNTS = {"optional": "?", "zeroOrMore": "*", "oneOrMore": "+"}
ANYTHING = "anything"

_Node = ET.Element
_Defines = Mapping[str, _Node]


class Word(Struct, frozen=True, kw_only=True):
    """One element: its attributes with the values they may have (none: any), and what it holds, as
    people write it.
    """

    attributes: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...]
    children: frozenset[str]
    text: bool
    content: str

    @property
    def open(self) -> bool:
        """Return True if the element may hold anything at all."""
        return ANYTHING in self.children

    def follows(self, names: list[str]) -> bool:
        """Return True if these children are allowed in this order and number."""
        pattern = _pattern(self.content)
        return pattern.fullmatch("".join([f"<{name}>" for name in names])) is not None


def grammar_text() -> bytes:
    return files("eventlog.xds").joinpath("xds.rng").read_bytes()


@cache
def vocabulary() -> Mapping[str, Word]:
    """Read every element of the grammar, by name."""
    root = ET.fromstring(grammar_text())  # noqa: S314 - a file of this package
    defines = {define.get("name", ""): define for define in root.iter(f"{_RNG}define")}
    words: dict[str, Word] = {}
    for name, define in defines.items():
        element = define[0]
        # The other definitions only give a part of an element a name.
        if not _is(element, "element"):
            continue
        nodes = list(_nodes(element, defines, optional=False))
        attributes = [(node, optional) for node, optional in nodes if _is(node, "attribute")]
        held = [node for node, _ in nodes if _is(node, "ref") or _is(node, "element")]
        words[name] = Word(
            attributes={_attribute(node): _list_allowed(node, defines) for node, _ in attributes},
            required=tuple(_attribute(node) for node, optional in attributes if not optional),
            children=frozenset(map(_child, held)),
            text=any(_is(node, "text") or _is(node, "mixed") for node, _ in nodes),
            content=_content(list(element), defines),
        )
    return words


def _nodes(parent: _Node, defines: _Defines, *, optional: bool) -> Iterator[tuple[_Node, bool]]:
    """Yield the nodes directly in an element, following references to mere parts."""
    for node in parent:
        part = _part(node, defines)
        if part is None:
            yield node, optional
        # What stands within an attribute or another element is not of this one.
        if not _is(node, "attribute") and not _is(node, "element"):
            inner = optional or _is(node, "optional") or _is(node, "zeroOrMore")
            holder = node
            if part is not None:
                holder = part
            yield from _nodes(holder, defines, optional=inner)


def _content(nodes: list[_Node], defines: _Defines) -> str:
    """Write a content model as people do: `association?, modify-attr+, operation-data?`."""
    return ", ".join(filter(None, [_particle(node, defines) for node in nodes]))


def _particle(node: _Node, defines: _Defines) -> str:
    part = _part(node, defines)
    if part is not None:
        return _content(list(part), defines)
    kind = node.tag.removeprefix(_RNG)
    if kind in ("ref", "element"):
        return _child(node)
    if kind == "choice":
        return f"({' | '.join([_particle(branch, defines) for branch in node])})"
    # An attribute is no content, and neither is text: both have no word of their own.
    if kind not in (*_COUNTS, "mixed"):
        return ""
    inner = _content(list(node), defines)
    if not inner:
        return ""
    return inner + _COUNTS.get(kind, "")


@cache
def _pattern(content: str) -> re.Pattern[str]:
    """Compile the content model to a regular expression over the children's names, written `<name>`."""
    # The model is nearly one already: names become groups, and the commas between them go.
    names = re.sub(r"[a-z-]+", lambda name: f"(?:<{name[0]}>)", content)
    return re.compile(names.replace(", ", "").replace(" | ", "|"))


def _list_allowed(attribute: _Node, defines: _Defines) -> tuple[str, ...]:
    parts = [_part(node, defines) for node in attribute]
    nodes = [attribute, *[part for part in parts if part is not None]]
    return tuple(value.text or "" for node in nodes for value in node.iter(f"{_RNG}value"))


def _attribute(node: _Node) -> str:
    """Return the attribute's name; of a whole name space, the space."""
    space = node.find(f"{_RNG}nsName")
    if space is None:
        return node.get("name", ANYTHING)
    return f"{{{space.get('ns')}}}"


def _part(node: _Node, defines: _Defines) -> _Node | None:
    """Resolve a reference to a part of an element; None for a reference to an element."""
    if not _is(node, "ref"):
        return None
    define = defines[node.get("name", "")]
    if _is(define[0], "element"):
        return None
    return define


def _child(node: _Node) -> str:
    return node.get("name", ANYTHING)


def _is(node: _Node, kind: str) -> bool:
    return node.tag == _RNG + kind
