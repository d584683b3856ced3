"""What a SCIM server has: what it can do, its resources by id, by a value, and page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from eventlog.sinks.http.post import UnreadableAnswer
from eventlog.sinks.scim.client import ScimAnswer, ScimClient
from eventlog.sinks.scim.paths import Path, get_value, is_same

PAGE_ROWS: Final = 100
"""Resources that are asked for at once."""

_UNREPORTED: Final = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_IMPLEMENTED,
    HTTPStatus.METHOD_NOT_ALLOWED,
)


class Abilities(Struct, frozen=True, kw_only=True):
    """What a server says of itself; one that says nothing is thought to do what most can."""

    patches: bool = True
    filters: bool = True
    tags: bool = False


def read_abilities(client: ScimClient) -> Abilities:
    """Ask a server what it can do."""
    answer = client.ask("GET", "/ServiceProviderConfig")
    if answer.status in _UNREPORTED:
        return Abilities()
    if not answer.is_taken:
        raise client.wrong_address(answer)

    def is_supported(name: str, unsaid: bool) -> bool:
        said = answer.content.get(name)
        return bool(said.get("supported", unsaid)) if isinstance(said, dict) else unsaid

    return Abilities(
        patches=is_supported("patch", True), filters=is_supported("filter", True), tags=is_supported("etag", False)
    )


def resource_path(place: str, id: str) -> str:  # noqa: A002  # as SCIM calls it
    """Return a resource's path below the address."""
    return f"{place}/{quote(id, safe='')}"


def find_resources(client: ScimClient, place: str, path: Path, value: str, *, filters: bool) -> list[dict[str, Any]]:
    """Find the resources that have a value; what a server gives beside them is left out."""
    if not filters:
        found = read_pages(client, place)
    else:
        query = {"filter": f"{path} eq {json.dumps(value, ensure_ascii=False)}"}
        answer = client.ask("GET", place, query=query | _without_members(place))
        if answer.status == HTTPStatus.BAD_REQUEST or answer.type == "invalidFilter":
            return find_resources(client, place, path, value, filters=False)
        if not answer.is_taken:
            raise RefusedError(answer)
        found = iter(_resources(answer))
    return [resource for resource in found if is_same(get_value(resource, path), value)]


def read_pages(client: ScimClient, place: str) -> Iterator[dict[str, Any]]:
    """Read all resources, page by page; each once, though others come and go meanwhile."""
    known: set[str] = set()
    start = 1
    while True:
        query = {"startIndex": str(start), "count": str(PAGE_ROWS)}
        answer = client.ask("GET", place, query=query | _without_members(place))
        if not answer.is_taken:
            raise RefusedError(answer)
        page = _resources(answer)
        for resource in page:
            if str(resource.get("id")) not in known:
                known.add(str(resource.get("id")))
                yield resource
        start += len(page)
        total = answer.content.get("totalResults")
        if not page or (isinstance(total, int) and start > total):
            return


def _without_members(place: str) -> dict[str, str]:
    """Groups are listed without their members, of which there may be very many."""
    return {"excludedAttributes": "members"} if place == "/Groups" else {}


def _resources(answer: ScimAnswer) -> list[dict[str, Any]]:
    found = answer.content.get("Resources") or []
    if not isinstance(found, list) or not all(isinstance(resource, dict) for resource in found):
        raise UnreadableAnswer("its Resources are no list of objects.")
    return found


class RefusedError(Exception):
    """A receiver will not do what it was asked for; the answer says why."""

    def __init__(self, answer: ScimAnswer | None, note: str = "") -> None:
        self.answer = answer
        self.note = note or (answer.note if answer is not None else "")
        super().__init__(self.note)


class NameTakenError(RefusedError):
    """Another object of ours has the name that one is to get; `holder` is None where nobody has it any more."""

    def __init__(self, answer: ScimAnswer | None, note: str = "", *, holder: str | None) -> None:
        super().__init__(answer, note)
        self.holder = holder
