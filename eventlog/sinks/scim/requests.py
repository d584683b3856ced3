"""Requests as the journal keeps them: what SCIM is asked to do, but for ids that only the receiver gives.

In the place of an id stands a reference, an object of JSON with one key that no resource has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from eventlog.core.model import RowId
from eventlog.core.table_names import write_name

ID_OF: Final = "$id-of"
"""The key of a reference; what it holds is the name of an object."""

PATCH_OP: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Unique(Struct, frozen=True, omit_defaults=True):
    """By what an object is found: a path, and the values that it may have there."""

    path: str
    values: tuple[str, ...] = ()


class ScimRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked of a receiver for one object. `path` has {id} where the receiver's id goes. `mapping` is the
    table in [output.scim.tables]. `ends` says that the object is gone. A PATCH that `is_whole` tells all that the object
    has, but for what its `key` says.
    """

    method: Literal["POST", "PATCH", "DELETE"]
    path: str
    object: str
    unique: Unique
    mapping: str
    ends: bool = False
    is_whole: bool = False
    key: dict[str, Any] = {}
    body: dict[str, Any] | None = None


def name_object(row: RowId) -> str:
    """Name an object as the log's table of associations does."""
    return f"{write_name(row.schema, row.table)} {row.key}"


def refer_to(row: RowId) -> dict[str, str]:
    """Refer to an object, whose id the receiver has given."""
    return {ID_OF: name_object(row)}


def list_references(value: Any) -> Iterator[str]:
    """List the objects that a part of a request refers to."""
    if isinstance(value, Mapping):
        if value.keys() == {ID_OF}:
            yield value[ID_OF]
        else:
            for part in value.values():
                yield from list_references(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from list_references(part)


def fill_ids(value: Any, find: Callable[[str], str | None]) -> Any:
    """Fill ids in for references; what refers to something that has none is left out, and so is what is empty then."""
    if isinstance(value, Mapping):
        if value.keys() == {ID_OF}:
            return find(value[ID_OF])
        parts = {key: fill_ids(part, find) for key, part in value.items()}
        kept = {key: part for key, part in parts.items() if part is not None or value[key] is None}
        # Of a value that refers to nothing the rest says nothing either.
        is_lost = any(
            isinstance(value[key], Mapping) and value[key].keys() == {ID_OF} and part is None
            for key, part in parts.items()
        )
        return None if is_lost else kept
    if isinstance(value, list | tuple):
        parts_of = [fill_ids(part, find) for part in value]
        kept_parts = [part for part in parts_of if part is not None]
        return kept_parts if kept_parts or not value else None
    return value


_decoder = msgspec.json.Decoder(ScimRequest)
encode: Final = msgspec.json.Encoder().encode


def read_requests(body: bytes) -> list[ScimRequest]:
    """Read what a document asks for, a request in each line."""
    return [_decoder.decode(line) for line in body.splitlines()]


def show_request(text: str) -> str:
    """Show a request as people read it; {id} and $id-of stand for what the receiver calls objects."""
    [request] = read_requests(text.encode())
    lines = [f"{request.method} {request.path}"]
    if request.body is not None:
        lines.append(msgspec.json.format(encode(request.body), indent=2).decode())
    return "\n".join(lines)
