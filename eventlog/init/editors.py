"""The JSON schema of configuration files, with the keys of sinks, formats and sources that other
packages bring.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal

import msgspec

from eventlog.config.outputs import all_kinds, derive_type
from eventlog.config.settings import LOG, SourceConfig, make_config_type, may_be_table, source_kind
from eventlog.core.registry import Group, offers, problem, steps_plugin
from eventlog.init.first import SCHEMA_FILE

GROUPS: tuple[Group, ...] = ("sinks", "formats", "sources", "tables")


def whole_source() -> type[SourceConfig]:
    """Make the type of the source with all its possible keys."""
    usable = _usable("sources")
    return derive_type(source_kind(usable), [("kind", Literal[(*usable, LOG)], LOG)])


def all_tables() -> tuple[str, ...]:
    """Name the tables of all usable capabilities."""
    return tuple(filter(may_be_table, _usable("tables")))


def _usable(group: Group) -> tuple[str, ...]:
    return tuple(offer.name for offer in offers(group) if problem(offer) is None)


def schema_text() -> str:
    """Return docs/generate.py's schema of our own types, and of further packages."""
    ours = files("eventlog.config").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    if all(offer.is_ours for group in GROUPS for offer in offers(group)):
        return ours
    whole = json.loads(ours)
    made = msgspec.json.schema(make_config_type(all_kinds(), whole_source(), all_tables(), (steps_plugin().policy,)))
    known: dict[str, Any] = whole["$defs"]
    for name, definition in made["$defs"].items():
        former = known.setdefault(name, definition)
        for key, schema in definition.get("properties", {}).items():
            # Formats and kinds of sources are more than ours; all other keys of ours are described
            # better there.
            if key not in former["properties"] or (name, key) == ("SourceConfig", "kind") or key == "format":
                described = {
                    key: value for key, value in former["properties"].get(key, {}).items() if key == "description"
                }
                former["properties"][key] = schema | described
    known["Config"]["properties"]["output"]["items"] = made["$defs"]["Config"]["properties"]["output"]["items"]
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
