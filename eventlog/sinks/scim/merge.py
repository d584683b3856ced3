"""What a resource becomes by a request: for servers without PATCH, for those that refuse a path, and for objects
that are there already.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from eventlog.sinks.scim.paths import (
    Path,
    add_elements,
    find_key,
    get_value,
    read_path,
    remove_elements,
    set_value,
    write_filter,
)

Operation = Mapping[str, Any]


def apply_operations(resource: Mapping[str, Any], operations: Sequence[Operation]) -> dict[str, Any]:
    """Apply what PATCH would do; what a path without a match sets is made."""
    after: dict[str, Any] = copy.deepcopy(dict(resource))
    for operation in operations:
        path, value = read_path(operation["path"], "path"), operation.get("value")
        if operation["op"] == "remove":
            if isinstance(value, list):
                remove_elements(after, path, value)
            elif path.filter and not path.sub:
                remove_elements(after, path, None)
            else:
                set_value(after, path, None)
        elif operation["op"] == "add" and isinstance(value, list):
            add_elements(after, path, value)
        else:
            set_value(after, path, value)
    return after


def apply_whole(resource: Mapping[str, Any], body: Mapping[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Set a resource to a whole one at these paths; keep the rest."""
    after: dict[str, Any] = copy.deepcopy(dict(resource))
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        groups.setdefault(Path(path.attribute, "", path.filter, path.urn), []).append(path)
    for group, members in groups.items():
        top = Path(group.attribute, "", (), group.urn)
        sent, there = get_value(body, top), get_value(after, top)
        if not (isinstance(sent, list) or isinstance(there, list)):
            for path in members:
                set_value(after, path, get_value(body, path))
            continue
        subs = {path.sub or "value" for path in members} | {name for name, _ in group.filter}
        set_value(after, top, [*_merge_values(_elements(sent), _elements(there), group, subs)] or None)
    return after


def _merge_values(
    sent: Sequence[Mapping[str, Any]], there: Sequence[Mapping[str, Any]], group: Path, subs: set[str]
) -> Iterator[dict[str, Any]]:
    """Merge an attribute's values: those the filter selects as given, others as they are."""
    meant = [element for element in sent if _fits(element, group.filter)]
    known = [element for element in there if _fits(element, group.filter)]
    yield from (dict(element) for element in there if not _fits(element, group.filter))
    for element in meant:
        value = element.get(find_key(element, "value"))
        same = [other for other in known if other.get(find_key(other, "value")) == value]
        if not same and group.filter and len(meant) == 1:
            same = list(known)
        former = {} if not same else {key: part for key, part in same[0].items() if key not in subs}
        yield {**former, **element}


def _elements(held: Any) -> list[Mapping[str, Any]]:
    if not isinstance(held, list):
        return []
    return [element if isinstance(element, Mapping) else {"value": element} for element in held]


def _fits(element: Mapping[str, Any], terms: Sequence[tuple[str, Any]]) -> bool:
    return all(element.get(find_key(element, name)) == value for name, value in terms)


def list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List what PATCH has to do to make one resource of the other: whole attributes."""
    operations: list[dict[str, Any]] = []
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old == new or key in ("schemas", "meta", "id"):
            continue
        if key.lower().startswith("urn:"):
            parts = list_changes(old or {}, new or {})
            operations += [{**part, "path": f"{key}:{part['path']}"} for part in parts]
        elif key.lower() == "members":
            operations += _list_changed_members(key, old or [], new or [])
        elif new is None:
            operations.append({"op": "remove", "path": key})
        elif isinstance(old, Mapping) and isinstance(new, Mapping):
            parts = list_changes(old, new)
            operations += [{**part, "path": f"{key}.{part['path']}"} for part in parts]
        else:
            operations.append({"op": "replace", "path": key, "value": new})
    return operations


def _list_changed_members(
    key: str, old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """List who comes and who goes: a group may have very many members."""
    before, after = ({element.get("value"): element for element in several} for several in (old, new))
    operations: list[dict[str, Any]] = []
    if gone := [value for value in before if value not in after]:
        operations.append({"op": "remove", "path": key, "value": [{"value": value} for value in gone]})
    if come := [element for value, element in after.items() if value not in before]:
        operations.append({"op": "add", "path": key, "value": come})
    return operations


MOST_VALUES: Final = 100
"""Values, such as members, that are told at once: a server may need longer for more than it gives a request."""


def cut_operations(written: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut operations into requests that each add or remove few values."""
    piece: list[dict[str, Any]] = []
    size = 0
    for operation in written:
        value, parts = operation.get("value"), [operation]
        if operation["op"] == "add" and isinstance(value, list):
            starts = range(0, len(value), MOST_VALUES)
            parts = [operation | {"value": value[at : at + MOST_VALUES]} for at in starts]
        for part in parts:
            weight = len(part["value"]) if part is not operation else 1
            if piece and size + weight > MOST_VALUES:
                yield piece
                piece, size = [], 0
            piece.append(part)
            size += weight
    if piece:
        yield piece


def write_operations(operations: Sequence[Operation]) -> list[dict[str, Any]]:
    """Write operations as RFC 7644 has them: what is removed is found by a filter."""
    written: list[dict[str, Any]] = []
    for operation in operations:
        value = operation.get("value")
        if operation["op"] == "remove" and isinstance(value, list):
            paths = [operation["path"] + write_filter(tuple(element.items())) for element in value]
            written += [{"op": "remove", "path": path} for path in paths]
        else:
            written.append(dict(operation))
    return written
