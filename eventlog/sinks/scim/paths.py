"""Paths of SCIM: `name.givenName`, `emails[type eq "work"].value`, `urn:…:User:department`; and what a resource has there.

Law: what a path without a match sets is made, what it removes may be missing: after it the resource is as it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from eventlog.core.errors import ConfigError

CORE_USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
CORE_GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE_USER: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"

_CORE: Final = {CORE_USER.lower(), CORE_GROUP.lower()}
_name = re.compile(r"[A-Za-z$][\w$-]*", re.ASCII).fullmatch
_urn = re.compile(r"urn:[\w.:-]+", re.ASCII | re.IGNORECASE).fullmatch
_term = re.compile(
    r'\s*([A-Za-z$][\w$-]*)\s+eq\s+("(?:[^"\\]|\\.)*"|true|false)\s*(?:and\b|\Z)', re.ASCII | re.IGNORECASE
)
_whole = re.compile(r"([^\[\]]+)(?:\[(.*)\](?:\.([^\[\].]+))?)?", re.DOTALL).fullmatch


class Path(Struct, frozen=True):
    """Where a value stands in a resource. `urn` is that of an extension, "" in the core schema."""

    attribute: str
    sub: str = ""
    filter: tuple[tuple[str, Any], ...] = ()
    urn: str = ""

    def __str__(self) -> str:
        return self.whole + (f".{self.sub}" if self.sub else "")

    @property
    def whole(self) -> str:
        """Return the path of the attribute or of its selected values, without a sub-attribute."""
        begin = f"{self.urn}:{self.attribute}" if self.urn else self.attribute
        return begin + write_filter(self.filter)

    @property
    def top(self) -> str:
        """Return the path of the whole attribute."""
        return f"{self.urn}:{self.attribute}" if self.urn else self.attribute


def write_filter(terms: Sequence[tuple[str, Any]]) -> str:
    """Write what values must have to be meant."""
    if not terms:
        return ""
    return "[" + " and ".join(f"{name} eq {json.dumps(value, ensure_ascii=False)}" for name, value in terms) + "]"


def read_path(text: str, where: str) -> Path:
    """Read a path; ConfigError, which begins with `where`, where it is none."""
    found = _whole(text.strip())
    if found is None:
        raise _no_path(text, where)
    begin, terms, sub = found.groups()
    urn = ""
    if begin.lower().startswith("urn:"):
        urn, _, begin = begin.rpartition(":")
    if terms is None:
        # The version of a schema has a dot too, but stands before the last colon.
        begin, dot, sub = begin.partition(".")
        sub = sub if dot else None
    if not _name(begin) or (sub is not None and not _name(sub)) or (urn and not _urn(urn)):
        raise _no_path(text, where)
    if urn.lower() in _CORE:
        urn = ""
    return Path(begin, sub or "", tuple(_read_terms(terms, text, where)), urn)


def _read_terms(terms: str | None, text: str, where: str) -> Iterator[tuple[str, Any]]:
    if terms is None:
        return
    at = 0
    while at < len(terms) or at == 0:
        found = _term.match(terms, at)
        if found is None:
            raise ConfigError(f'{where} is {text!r}; a filter is written as [type eq "work"], several with `and`.')
        yield found[1], json.loads(found[2].lower() if found[2][0] != '"' else found[2])
        at = found.end()


def _no_path(text: str, where: str) -> ConfigError:
    forms = 'userName, name.givenName, emails[type eq "work"].value or urn:…:User:department'
    return ConfigError(f"{where} is {text!r}, which is no path of SCIM; write it as {forms}.")


# --- what a resource has at a path ----------------------------------------------------------------


def set_value(resource: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at the path; None removes it."""
    holder = _holder(resource, path, make=value is not None)
    if holder is None:
        return
    key = find_key(holder, path.attribute)
    if path.filter:
        _set_element(holder, key, path, value)
    elif not path.sub:
        _put(holder, key, value)
    else:
        held = holder.get(key)
        if isinstance(held, str) and path.sub == "value":  # as some servers show a reference
            held = {"value": held}
        part = dict(held) if isinstance(held, Mapping) else {}
        _put(part, find_key(part, path.sub), value)
        _put(holder, key, part or None)


def get_value(resource: Mapping[str, Any], path: Path) -> Any:
    """Get what a resource says at the path; None where it says nothing."""
    holder = resource
    if path.urn:
        holder = resource.get(find_key(resource, path.urn)) or {}
    held = holder.get(find_key(holder, path.attribute))
    if path.filter:
        held = next((element for element in _elements(held) if _is_meant(element, path.filter)), None)
    if not path.sub:
        return held
    if isinstance(held, list):
        return [element.get(find_key(element, path.sub)) for element in _elements(held)]
    if isinstance(held, Mapping):
        return held.get(find_key(held, path.sub))
    return held if path.sub == "value" else None


def list_values(resource: Mapping[str, Any], path: Path, others: Iterable[Path]) -> list[Any]:
    """List what an attribute with several values says at the path; a path without a filter means no value that
    another one selects by its filter.
    """
    holder = resource
    if path.urn:
        holder = resource.get(find_key(resource, path.urn)) or {}
    filters = [] if path.filter else [other.filter for other in others if other.filter and other.top == path.top]
    return [
        element.get(find_key(element, path.sub or "value"))
        for element in _elements(holder.get(find_key(holder, path.attribute)))
        if _is_meant(element, path.filter) and not any(_is_meant(element, terms) for terms in filters)
    ]


def add_elements(resource: dict[str, Any], path: Path, elements: Sequence[Mapping[str, Any]]) -> None:
    """Add values to an attribute that has several; those that are there already are left."""
    holder = _holder(resource, path, make=True)
    assert holder is not None  # it was made
    key = find_key(holder, path.attribute)
    held = list(_elements(holder.get(key)))
    for element in elements:
        if not any(_is_meant(other, tuple(element.items())) for other in held):
            held.append(dict(element))
    holder[key] = held


def remove_elements(resource: dict[str, Any], path: Path, elements: Sequence[Mapping[str, Any]] | None) -> None:
    """Take values out of an attribute that has several; None takes out all that are meant."""
    holder = _holder(resource, path, make=False)
    if holder is None:
        return
    key = find_key(holder, path.attribute)
    terms = [path.filter] if elements is None else [tuple(element.items()) for element in elements]
    held = [e for e in _elements(holder.get(key)) if not any(_is_meant(e, several) for several in terms)]
    _put(holder, key, held or None)


def find_key(held: Mapping[str, Any], name: str) -> str:
    """Find how a resource spells a name: cases do not count there."""
    if name in held:
        return name
    folded = name.lower()
    return next((key for key in held if key.lower() == folded), name)


def _holder(resource: dict[str, Any], path: Path, *, make: bool) -> dict[str, Any] | None:
    if not path.urn:
        return resource
    key = find_key(resource, path.urn)
    if not isinstance(resource.get(key), dict):
        if not make:
            return None
        resource[key] = {}
    holder: dict[str, Any] = resource[key]
    return holder


def _set_element(holder: dict[str, Any], key: str, path: Path, value: Any) -> None:
    held = [dict(element) for element in _elements(holder.get(key))]
    meant = [element for element in held if _is_meant(element, path.filter)]
    if not meant and value is not None:
        meant = [dict(path.filter)]
        held += meant
    for element in meant:
        if path.sub:
            _put(element, find_key(element, path.sub), value)
        if value is None and path.sub in ("", "value"):
            held.remove(element)
    _put(holder, key, held or None)


def _elements(held: Any) -> Iterator[Mapping[str, Any]]:
    for element in held if isinstance(held, list) else []:
        yield element if isinstance(element, Mapping) else {"value": element}


def _is_meant(element: Mapping[str, Any], terms: Sequence[tuple[str, Any]]) -> bool:
    return all(is_same(element.get(find_key(element, name)), value) for name, value in terms)


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values of a filter are the same: the words of types differ in case only."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or one.lower() == other.lower()
    return type(one) is type(other) and bool(one == other)


def _put(holder: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        holder.pop(key, None)
    else:
        holder[key] = value
