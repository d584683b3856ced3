"""What a request refers to that the receiver does not know yet, and what a later request makes out of date of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from eventlog.core.associations import Awaiting
from eventlog.sinks.scim.paths import Path, get_value
from eventlog.sinks.scim.requests import ScimRequest, list_references
from eventlog.sinks.scim.settings import MappedColumn


def list_unknown(
    request: ScimRequest, columns: Iterable[MappedColumn], is_unknown: Callable[[str], bool]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """List the unknown objects that a request refers to, each with its place and the operation that tells it."""
    body = request.body or {}
    for operation in body["Operations"] if request.method == "PATCH" else _as_operations(body, columns):
        value, path = operation.get("value"), operation["path"]
        if operation["op"] == "remove":
            continue
        if not isinstance(value, list):
            for name in filter(is_unknown, list_references(value)):
                yield name, path, operation
            continue
        for element in value:
            for name in filter(is_unknown, list_references(element)):
                yield name, f"{path} {name}", {"op": "add", "path": path, "value": [element]}


def _as_operations(body: Mapping[str, Any], columns: Iterable[MappedColumn]) -> Iterator[dict[str, Any]]:
    """Yield the references of a whole resource as operations."""
    for column in columns:
        path = column.path
        value = _find_references(body, path)
        if isinstance(value, list):
            yield {"op": "add", "path": path.top, "value": value}
        elif value is not None:
            yield {"op": "replace", "path": str(path), "value": value}


def _find_references(body: Mapping[str, Any], path: Path) -> Any:
    """Return the references at a path, one value or a list; None if there are none."""
    held = get_value(body, Path(path.attribute, "", (), path.urn))
    if isinstance(held, list):
        return [element for element in held if any(list_references(element))] or None
    value = get_value(body, path)
    return value if any(list_references(value)) else None


def is_past(awaiting: Awaiting, name: str, operations: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether operations make out of date what waits for the object of this name."""
    for operation in operations:
        path = operation["path"]
        if awaiting.place == path:
            return True
        if awaiting.place == f"{path} {name}":
            is_all = operation["op"] == "replace" or "value" not in operation
            if is_all or name in list_references(operation["value"]):
                return True
    return False
