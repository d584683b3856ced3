"""Settings as people write them, in a file or in the environment, made fit for the types of their
keys.

A truth value may also be `yes` or `no`, and a list a text with commas, as the product's own
parameters are written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from eventlog.core.errors import ConfigError

PREFIX: Final = "EVENTLOG_"
SEVERAL: Final = ("output", "policy")
"""Sections of which there may be any number."""

WORDS: Final = {"yes": True, "no": False}
STATEMENTS: Final = "post_poll_statements"
"""Commas stand inside of SQL; its statements are separated as SQL does it."""


def with_environment(
    settings: dict[str, Any],
    environment: Mapping[str, str],
    sections: Mapping[str, Sequence[type[Struct]]],
) -> None:
    """Puts over the settings what `EVENTLOG_SECTION__KEY` says, and `EVENTLOG_SECTION__GROUP__KEY`
    of a key's keys.
    """
    for _, section, path, value in settings_in(environment, sections):
        # Of several outputs or policies a variable speaks of the first.
        if section in SEVERAL:
            table = settings.setdefault(section, [{}])[0]
        else:
            table = _open_table(settings, section)
        for group in path[:-1]:
            table = _open_table(table, group)
        table[path[-1]] = value


def settings_in(
    environment: Mapping[str, str], sections: Mapping[str, Sequence[type[Struct]]]
) -> Iterator[tuple[str, str, list[str], Any]]:
    """Yield each variable about a key: name, section, the key behind its tables, value."""
    for name, text in environment.items():
        section, *path = name.removeprefix(PREFIX).lower().split("__")
        if name.startswith(PREFIX) and section in sections and all(path) and path:
            kinds: Sequence[Any] = sections[section]
            for group in path[:-1]:
                kinds = types_of(kinds, group)
            wanted = types_of(kinds, path[-1])
            if _takes_list(wanted) and text.lstrip().startswith("["):
                _refuse_torn(name, text)
            yield name, section, path, _read(text, wanted)


def fit_value(value: Any, kinds: Sequence[Any], key: str = "") -> Any:
    """Convert a value for a key of one of these types; leave one that fits none, to be refused."""
    if isinstance(value, str):
        return _read_word(value, kinds, key)
    if isinstance(value, list):
        lists = [get_args(kind) for kind in kinds if get_origin(kind) is tuple]
        inner = [kind for members_of_list in lists for kind in members_of_list]
        # `tuple[str, ...]`: the dots are a member too.
        known = members([kind for kind in inner if kind is not Ellipsis])
        return [fit_value(item, known) for item in value]
    if isinstance(value, Mapping):
        return {name: fit_value(inner, types_of(kinds, name), name) for name, inner in value.items()}
    return value


def _open_table(settings: dict[str, Any], group: str) -> dict[str, Any]:
    # What stands there otherwise is refused later, with what the key takes.
    if not isinstance(settings.get(group), dict):
        settings[group] = {}
    table: dict[str, Any] = settings[group]
    return table


def _takes_list(kinds: Sequence[Any]) -> bool:
    return any(get_origin(kind) is tuple for kind in kinds)


def _refuse_torn(name: str, text: str) -> None:
    """Refuse a list in brackets that is no TOML; its first item would begin with a bracket."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{name} begins with [ and is no list of TOML.",
            hint='Write ["a", "b"], each item in quotes, or a,b without brackets.',
        ) from error


def _read(text: str, kinds: Sequence[Any]) -> Any:
    """Parse a value written as in TOML; for a key of text it is text, whatever it looks like."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        # No TOML, or more digits than a number may have.
        return text
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        return value if _takes_list(kinds) or str not in kinds else text
    # A password of digits is a text, and so is a time of TOML.
    if str in kinds or not isinstance(value, bool | int | float):
        return text
    return value


def _read_word(text: str, kinds: Sequence[Any], key: str) -> Any:
    word = text.strip().lower()
    if bool in kinds and word in WORDS:
        return WORDS[word]
    listed = _takes_list(kinds) and str not in kinds
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if not listed or (choices and "," not in text):
        return text
    # A statement may have commas.
    separator = ";" if key == STATEMENTS else ","
    return [part.strip() for part in text.split(separator) if part.strip()]


def types_of(kinds: Sequence[Any], key: str) -> list[Any]:
    """List a key's types in any of these kinds of tables."""
    structs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)]
    fields = [field for kind in structs for field in fields_of(kind)]
    return members([field.type for field in fields if field.encode_name == key])


@cache
def fields_of(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """List the keys of a table, looked up once: msgspec evaluates all annotations each time."""
    return fields(kind)


def members(kinds: Sequence[Any]) -> list[Any]:
    """List the types, those of unions one by one."""
    flat = []
    for kind in kinds:
        # `Union[A, B]` and `A | B` are not the same to Python.
        if get_origin(kind) in (Union, UnionType):
            flat += members(get_args(kind))
        else:
            flat.append(kind)
    return flat
