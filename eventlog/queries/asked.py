"""What a document asks: `<query>`, `<query-ex>` and `<query-schema>`, read as the grammar of XDS has them. Pure."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, XmlError, shorten, value_shown
from eventlog.xds.read import XmlElement, parse

SCOPES = ("entry", "subordinates", "subtree")
MOST_ROWS: Final = 1_000_000_000
"""What `max-result-count` is where a `<query-ex>` does not say it."""


class PagePlace(Struct, frozen=True, kw_only=True):
    """The last object of a page: the name of its table, and its key as the log writes it."""

    table: str
    key: str


class ObjectQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `<query>`: for the object of an `association`, or for objects of `classes` that have all
    values of `search`.

    `read` are the attributes that are wanted; None is all of them. A `<query-ex>` has pages of `page` objects, and
    goes on `after` an object.
    """

    event_id: str = ""
    scope: str = "subtree"
    association: str | None = None
    classes: tuple[str, ...] = ()
    search: tuple[tuple[str, str], ...] = ()
    read: frozenset[str] | None = None
    page: int | None = None
    after: PagePlace | None = None


class EndedQuery(Struct, frozen=True, kw_only=True):
    """A `<query-ex>` of which nobody wants the rest."""

    event_id: str = ""


class SchemaQuery(Struct, frozen=True, kw_only=True):
    """One `<query-schema>`."""

    event_id: str = ""


class RefusedQuestion(Struct, frozen=True, kw_only=True):
    """What stands in a document and is not answered, and why."""

    event_id: str = ""
    why: str


Asked = ObjectQuery | EndedQuery | SchemaQuery | RefusedQuestion


def read_asked(body: bytes) -> list[Asked]:
    """Read what a document asks, in its order; XmlError where it is none of XDS."""
    root = parse(body)
    inputs = [root] if root.tag == "input" else list(root.iterchildren("input"))
    if len(inputs) != 1 or root.tag not in ("nds", "input"):
        raise XmlError("a document that asks has <nds> with one <input>", line=1)
    [asked] = inputs
    return [_read(element) for element in asked]


def _read(element: XmlElement) -> Asked:
    event_id = element.get("event-id") or ""
    if element.tag == "query-schema":
        return SchemaQuery(event_id=event_id)
    if element.tag not in ("query", "query-ex"):
        why = f"<{shorten(str(element.tag))}> is not answered here: this address reads, and changes nothing."
        return RefusedQuestion(event_id=event_id, why=why)
    try:
        return _query(element, event_id) if element.tag == "query" else _paged_query(element, event_id)
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


def _paged_query(element: XmlElement, event_id: str) -> ObjectQuery | EndedQuery:
    """Read a `<query-ex>`; the search of one that goes on is the first one's, whatever else stands in it."""
    if element.get("cancel") == "true":
        return EndedQuery(event_id=event_id)
    token = element.find("query-token")
    if token is not None:
        return replace(read_token("".join(map(str, token.itertext()))), event_id=event_id)
    most = element.get("max-result-count") or ""
    # Digits of other scripts are none here, and thousands of them nobody means.
    if most and not (most.isascii() and most.isdigit() and len(most) < 10 and int(most)):
        raise DataError(f"The max-result-count is {value_shown(most)}; it takes a number from 1 on.")
    return replace(_query(element, event_id), page=int(most or MOST_ROWS))


def write_token(asked: ObjectQuery) -> str:
    """Write the rest of a search, with all that somebody needs who answers it: nobody keeps it here."""
    return urlsafe_b64encode(msgspec.json.encode(replace(asked, event_id=""))).decode()


def read_token(token: str) -> ObjectQuery:
    """Read the rest of a search. Whoever made it may ask for nothing else than in a query."""
    try:
        asked = msgspec.json.decode(urlsafe_b64decode(token.strip()), type=ObjectQuery)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        asked = ObjectQuery()
    if asked.after is None or not asked.page or asked.page < 1 or asked.scope not in SCOPES:
        raise DataError("The <query-token> is none that was given here; ask without it again.")
    return asked


def _read_search(element: XmlElement) -> list[tuple[str, str]]:
    """Read the attributes and values searched for; all must match."""
    found = []
    for searched in element.iterchildren("search-attr"):
        values = ["".join(map(str, value.itertext())) for value in searched.iterchildren("value")]
        name = searched.get("attr-name")
        if not values or not name:
            raise DataError(f"A <search-attr> has no {'attr-name' if values else '<value>'}; it needs one.")
        found += [(name, value) for value in values]
    return found


def _read_attributes(element: XmlElement) -> frozenset[str] | None:
    """Read the attributes wanted: all without a <read-attr>, none with a nameless one."""
    names = [read.get("attr-name") for read in element.iterchildren("read-attr")]
    if not names:
        return None
    return frozenset(name for name in names if name)
