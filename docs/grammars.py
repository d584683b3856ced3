"""The grammars that the documentation draws: table_key as it is parsed, and every definition of the XDS schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docs import masks
from docs.railroad import Again, Either, Line, Part, Word, diagram

if TYPE_CHECKING:
    from lxml.etree import _Element

SCHEMA: Final = Path(__file__).resolve().parents[1] / "eventlog" / "xds" / "xds.rng"
NAMESPACE: Final = "{http://relaxng.org/ns/structure/1.0}"

_quote, _backslash = Word('"'), Word("\\")
TABLE_KEY: Final[Mapping[str, Part]] = {
    "table-key": Again(Word("identifier", name=True), Word("+")),
    "identifier": Line((Word("column", name=True), Word("="), Word("value", name=True))),
    "value": Either(
        (
            Again(Word("any but , ; ' + \" = \\ < >")),
            Line(
                (
                    _quote,
                    Either(
                        (None, Again(Either((Word('any but " \\'), Line((_backslash, Either((_quote, _backslash))))))))
                    ),
                    _quote,
                )
            ),
        )
    ),
}
"""The grammar of eventlog.core.tablekey; a test holds it against the parser."""


def pictures() -> dict[str, str]:
    """Every picture: the name of its file, and what is in it."""
    drawn = {"mask.svg": masks.picture()}
    drawn |= {f"{name}.svg": diagram(part) for name, part in TABLE_KEY.items()}
    return drawn | {f"xds-{name}.svg": diagram(part) for name, part in definitions().items()}


def definitions() -> dict[str, Part]:
    """The definitions of the XDS schema as diagrams, in its order."""
    from lxml import etree

    root = etree.parse(SCHEMA).getroot()
    return {str(one.get("name")): _sequence(one) for one in root.iterfind(f"{NAMESPACE}define")}


def _sequence(node: _Element) -> Part:
    parts = tuple(part for child in node.iterchildren("*") for part in _parts(child))
    return parts[0] if len(parts) == 1 else Line(parts or (Word("nothing"),))


def _parts(node: _Element) -> Iterator[Part]:
    """What a node of the schema stands for."""
    tag, name = str(node.tag).removeprefix(NAMESPACE), node.get("name")
    if tag == "element":
        inner = [part for child in node.iterchildren("*") for part in _parts(child)]
        yield Line((Word(f"<{name or 'any'}"), *inner, Word(">")))
    elif tag == "attribute":
        values = [part for child in node.iterchildren("*") for part in _parts(child)]
        yield Line((Word(f"{name or 'any'}="), *(values or [Word("text")])))
    elif tag == "ref":
        yield Word(str(name), name=True)
    elif tag in ("choice", "interleave"):
        yield Either(tuple(part for child in node.iterchildren("*") for part in _parts(child)))
    elif tag == "optional":
        yield Either((None, _sequence(node)))
    elif tag == "zeroOrMore":
        yield Either((None, Again(_sequence(node))))
    elif tag == "oneOrMore":
        yield Again(_sequence(node))
    elif tag == "mixed":
        yield Either((None, Again(Either((Word("text"), _sequence(node))))))
    elif tag == "group":
        yield _sequence(node)
    elif tag in ("text", "data", "value"):
        yield Word(node.text.strip() if tag == "value" and node.text else "text")
