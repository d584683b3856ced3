"""What is wrong with a key of the configuration: where it belongs, what it takes, which word was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, get_args, get_origin

from msgspec import Struct

from eventlog.config.environment import fields_of
from eventlog.config.outputs import all_kinds, kinds_of
from eventlog.core.registry import names, steps_plugin, table_named
from eventlog.core.suggest import nearest

Sections = Mapping[str, tuple[type[Struct], ...]]
"""What a section can hold, by its name."""


def find_home(key: str, where: str, sections: Sections, sink: Any = None) -> str | None:
    """Find where a key belongs that stands in the wrong place; the likeliest place."""
    for section in ("source", "publisher"):
        if section != where and _has(sections[section], key):
            return f"[{section}]"
    if where != "output" and (key == "sink" or _has(all_kinds(), key)):
        return "[[output]]"
    if where == "output":
        for other in names("sinks"):
            if other != sink and _has(kinds_of([{"sink": other}]), key):
                return f'an output with sink = "{other}"'
    for table in names("tables"):
        if table != where and _has((table_named(table).settings,), key):
            return f"[{table}]"
    return None


def _has(kinds: Sequence[type[Struct]], key: str) -> bool:
    return any(field.encode_name == key for kind in kinds for field in fields_of(kind))


_one_key = re.compile(r"Object (?:missing required|contains (?P<unknown>unknown)) field `(?P<name>.+)`").match


VALUE_NAMES: Final = {
    "int": "a whole number",
    "float": "a number with a point",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "datetime": "a time",
    "date": "a date",
    "time": "a time of day",
}
"""What kinds of values are called where a key has another one."""

BOUNDS: Final = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}
"""What msgspec's signs of a bound are called."""

_bounded = re.compile(r"Expected `(?P<kind>[^`]+)`(?P<of> of length)? (?P<bound>[<>]=?) (?P<limit>\S+)").fullmatch
_other_kind = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<found>[^`]+)`").fullmatch


def describe_problem(problem: str, sections: Sections) -> str:
    """Say the expected type and the place; the value itself may be a secret and is not repeated."""
    what, _, path = problem.partition(" - at `$.")
    where = path.rstrip("`")
    if what.startswith("Invalid "):
        return f"{where} takes {', '.join(_choices(where, sections))}."
    key = _one_key(what)
    if key and key["unknown"]:
        return f"{where}.{key['name']} is not a key."
    if key:
        choices = ""
        if where.startswith("output["):
            choices = ", ".join(_choices(f"{where}.{key['name']}", sections))
        need = f"{where} needs the key `{key['name']}`"
        return f"{need}: {choices}." if choices else f"{need}."
    kinds = _other_kind(what)
    if kinds:
        # Where a number with a point is wanted, a whole one does as well.
        known = VALUE_NAMES | {"float": "a number"}
        wanted = " or ".join(known.get(kind, kind) for kind in kinds["wanted"].split(" | ") if kind != "null")
        return f"{where} takes {wanted}, not {VALUE_NAMES.get(kinds['found'], kinds['found'])}."
    bounded = _bounded(what)
    if bounded:
        wanted = "a number" if bounded["kind"] == "float" else VALUE_NAMES.get(bounded["kind"], bounded["kind"])
        return f"{where} takes {wanted}{bounded['of'] or ','} {BOUNDS[bounded['bound']]} {bounded['limit']}."
    if where:
        return f"{where}: {what.rstrip('.')}."
    return f"{what.rstrip('.')}."


_invalid = re.compile(r"Invalid (?:enum )?value '?(?P<value>[^'`]{1,40})'?").match


def find_near_choice(problem: str, sections: Sections) -> str | None:
    """Name the choice that was probably meant, of keys that take one of several words."""
    what, _, path = problem.partition(" - at `$.")
    written = _invalid(what)
    near = nearest(written["value"], _choices(path.rstrip("`"), sections)) if written else None
    return f"Did you mean {near}?" if near else None


def _choices(where: str, sections: Sections) -> list[str]:
    """List the choices for a key such as `output[0].format`."""
    section, _, key = re.sub(r"\[[^\]]*\]", "", where).partition(".")
    if key == "sink":
        return names("sinks")
    kinds: Sequence[type[Struct]] = sections[section]
    if key.startswith("steps."):
        kinds, key = steps_plugin().steps, key.removeprefix("steps.")
    *tables, key = key.split(".")
    for table in tables:
        kinds = [inner for kind in _types_of(kinds, table) for inner in _structs(kind)]
    return sorted({str(value) for kind in _types_of(kinds, key) for value in _literals(kind)})


def _types_of(kinds: Iterable[type[Struct]], key: str) -> list[Any]:
    return [field.type for kind in kinds for field in fields_of(kind) if field.encode_name == key]


def _structs(kind: Any) -> list[type[Struct]]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return [kind]
    return [struct for inner in get_args(kind) for struct in _structs(inner)]


def _literals(kind: Any) -> list[Any]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [value for inner in get_args(kind) for value in _literals(inner)]
