"""What a document asks: `<query>` and `<query-schema>`, read as the grammar of XDS has them. Pure."""

from __future__ import annotations

from msgspec import Struct

from eventlog.core.errors import DataError, XmlError, shorten, value_shown
from eventlog.xds.read import XmlElement, parse

SCOPES = ("entry", "subordinates", "subtree")


class ObjectQuery(Struct, frozen=True, kw_only=True):
    """One `<query>`: for the object of an `association`, or for objects of `classes` that have all
    values of `search`.

    `read` are the attributes that are wanted; None is all of them.
    """

    event_id: str = ""
    scope: str = "subtree"
    association: str | None = None
    classes: tuple[str, ...] = ()
    search: tuple[tuple[str, str], ...] = ()
    read: frozenset[str] | None = None


class SchemaQuery(Struct, frozen=True, kw_only=True):
    """One `<query-schema>`."""

    event_id: str = ""


class RefusedQuestion(Struct, frozen=True, kw_only=True):
    """What stands in a document and is not answered, and why."""

    event_id: str = ""
    why: str


Asked = ObjectQuery | SchemaQuery | RefusedQuestion


def read_asked(body: bytes) -> list[Asked]:
    """Read what a document asks, in its order; XmlError where it is none of XDS."""
    root = parse(body)
    asked = root if root.tag == "input" else root.find("input")
    if asked is None or root.tag not in ("nds", "input"):
        raise XmlError("a document that asks has <nds> with <input>", line=1)
    return [_read(element) for element in asked]


def _read(element: XmlElement) -> Asked:
    event_id = element.get("event-id") or ""
    if element.tag == "query-schema":
        return SchemaQuery(event_id=event_id)
    if element.tag != "query":
        why = f"<{shorten(str(element.tag))}> is not answered here: this address reads, and changes nothing."
        return RefusedQuestion(event_id=event_id, why=why)
    try:
        return _query(element, event_id)
    except DataError as error:
        return RefusedQuestion(event_id=event_id, why=str(error))


def _query(element: XmlElement, event_id: str) -> ObjectQuery:
    scope = element.get("scope") or "subtree"
    if scope not in SCOPES:
        raise DataError(f"The scope is {value_shown(scope)}; it is one of {', '.join(SCOPES)}.")
    if element.get("dest-dn") or element.get("dest-entry-id"):
        raise DataError("There are no DNs here; write an <association>.")
    association = element.find("association")
    classes = [found.get("class-name") or "" for found in element.iterchildren("search-class")]
    if not classes and element.get("class-name"):
        classes = [element.get("class-name") or ""]
    return ObjectQuery(
        event_id=event_id,
        scope=scope,
        association=None if association is None else (association.text or "").strip(),
        classes=tuple(classes),
        search=tuple(_read_search(element)),
        read=_read_attributes(element),
    )


def _read_search(element: XmlElement) -> list[tuple[str, str]]:
    """Read the attributes and values searched for; all must match."""
    found = []
    for searched in element.iterchildren("search-attr"):
        values = ["".join(map(str, value.itertext())) for value in searched.iterchildren("value")]
        if not values:
            raise DataError("A <search-attr> has no <value>; it needs one.")
        found += [(searched.get("attr-name") or "", value) for value in values]
    return found


def _read_attributes(element: XmlElement) -> frozenset[str] | None:
    """Read the attributes wanted: all without a <read-attr>, none with a nameless one."""
    names = [read.get("attr-name") for read in element.iterchildren("read-attr")]
    if not names:
        return None
    return frozenset(name for name in names if name)
