"""The JSON schema of configuration files: made from the types that read them, with the meanings and bounds of docs/configuration.toml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from eventlog.config.environment import SEVERAL, members
from eventlog.config.settings import make_config_type
from eventlog.init.editors import all_tables

SECRET: Final = {"type": "string", "pattern": r"\$\{[^}]+\}"}
"""A value that comes from the environment or a file; what it is, only the reader sees."""

WORDS: Final = {"enum": ["yes", "no"]}

_link = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def schema(tables: Mapping[str, tuple[type[Struct], ...]], said_of: Any) -> str:
    """The text of the schema; `tables` are the sections with their types, `said_of` what is said of one."""
    config = make_config_type(tables["output"], tables["source"][0], all_tables(), tables["policy"])
    made = msgspec.json.schema(config)
    definitions: dict[str, Any] = made["$defs"]
    _dress(definitions["Config"], config, {"about": "The configuration of eventlog.", "keys": {}, "bounds": {}})
    for section, kinds in tables.items():
        for kind in kinds:
            _dress(definitions[kind.__name__], kind, said_of(section))
    for several in SEVERAL:
        definitions["Config"]["properties"][several]["minItems"] = 1
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "eventlog.toml", **made}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _dress(definition: dict[str, Any], kind: type[Struct], said: Mapping[str, Any]) -> None:
    """Gives a table and its keys their meanings, and the keys what a reader takes besides."""
    definition["description"] = _plain(said["about"])
    types = {field.encode_name: members([field.type]) for field in msgspec.structs.fields(kind)}
    tag = kind.__struct_config__.tag
    for key, known in definition["properties"].items():
        widened = _widened(known, types.get(key, []), said["bounds"].get(key, ()))
        meaning = said["keys"].get(f"{tag}.{key}") or said["keys"].get(key)
        definition["properties"][key] = widened | ({"description": _plain(meaning)} if meaning else {})


def _widened(known: dict[str, Any], types: list[Any], bounds: tuple[Any, ...]) -> dict[str, Any]:
    """A key with all that the reader takes: words for truth values, lists with commas, secrets; without JSON's null."""
    if "$ref" in known:
        return {"$ref": known["$ref"]}
    choices = [_bounded(one, bounds) for one in known.get("anyOf", [known]) if one.get("type") != "null"]
    kept = {name: value for name, value in known.items() if name == "default" and _can_be_shown(value)}
    for choice in choices:
        choice.pop("default", None)
        choice.pop("discriminator", None)
    choices += _besides(types)
    return {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **kept}


def _besides(types: list[Any]) -> Iterator[dict[str, Any]]:
    """What a text may be in the place of a value of these types."""
    if bool in types:
        yield WORDS
    listed = [kind for kind in types if get_origin(kind) is tuple and not _is_struct(get_args(kind)[0])]
    if listed and str not in types:
        with_choices = any(get_origin(kind) is Literal for kind in types)
        yield {"type": "string", "pattern": ","} if with_choices else {"type": "string"}
    elif str not in types and any(kind in (bool, int, float) or get_origin(kind) is Literal for kind in types):
        yield SECRET


def _is_struct(kind: Any) -> bool:
    return any(isinstance(one, type) and issubclass(one, Struct) for one in members([kind]))


def _bounded(choice: dict[str, Any], bounds: tuple[Any, ...]) -> dict[str, Any]:
    """A number with its bounds, as far as they are numbers."""
    if choice.get("type") not in ("integer", "number"):
        return choice
    limits = zip(("minimum", "maximum"), bounds, strict=False)
    return choice | {name: bound for name, bound in limits if not isinstance(bound, str)}


def _can_be_shown(default: Any) -> bool:
    return default not in (None, "", {}) and not isinstance(default, Mapping)


def _plain(markdown: str) -> str:
    return _link.sub(r"\1", markdown).replace("`", "")
