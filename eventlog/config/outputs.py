"""What `[[output]]` can hold: the keys of its sinks, and the tables of their formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Literal, TypeVar

from msgspec import Struct, defstruct
from msgspec.structs import asdict

from eventlog.config.environment import fields_of
from eventlog.core.errors import ConfigError
from eventlog.core.outputs import OutputKeys
from eventlog.core.plugins import EVERY_DOCUMENT, SinkPlugin
from eventlog.core.registry import format_named, names, offers, problem, sink_named, steps_plugin

Keys = TypeVar("Keys", bound=Struct)

OutputConfig = OutputKeys
"""An output of a configuration; of which class it is says its sink."""


def table_of(format_name: str) -> str:
    """Return the key of a format's own table in an output."""
    return format_name.replace("-", "_")


def kinds_of(tables: Iterable[Any]) -> tuple[type[OutputKeys], ...]:
    """Make the types of these outputs, one for each sink; where one names none, those of all sinks."""
    formats: dict[str, set[str]] = {}
    with_steps: set[str] = set()
    for table in tables:
        # What is no table at all is refused later, with what was expected.
        if not isinstance(table, Mapping) or table.get("sink") not in names("sinks"):
            return all_kinds()
        format_name = table.get("format")
        if not isinstance(format_name, str):
            format_name = ""
        formats.setdefault(str(table["sink"]), set()).add(format_name)
        if "steps" in table:
            with_steps.add(str(table["sink"]))
    # Sorted, because types are remembered by these names.
    return tuple(
        kind_of(sink, tuple(sorted(format_names)), steps=sink in with_steps)
        for sink, format_names in sorted(formats.items())
    )


def all_kinds() -> tuple[type[OutputKeys], ...]:
    """Make the types of all possible outputs; sinks that cannot be loaded have none."""
    return tuple(whole_kind(offer.name) for offer in offers("sinks") if problem(offer) is None)


def whole_kind(sink: str) -> type[OutputKeys]:
    """Make the type of an output to this sink with all formats that it takes, and none beside."""
    known = tuple(formats_of(sink_named(sink)))
    kind = kind_of(sink, known)
    chosen = next(field for field in fields_of(kind) if field.encode_name == "format")
    if chosen.type is not str:
        return kind
    return derive_type(kind, [("format", Literal[known], chosen.default)], sink)


@cache
def kind_of(sink: str, formats: tuple[str, ...], *, steps: bool = True) -> type[OutputKeys]:
    """Make the type of an output to this sink: its keys, steps if it may have any, and a table for each of
    the formats that has one.

    An empty name is the default format of an output.
    """
    plugin = sink_named(sink)
    keys = {field.encode_name: field for field in fields_of(plugin.settings)}
    tables: dict[str, type[Struct]] = {}
    for name in formats:
        format_name = name or keys["format"].default
        if format_name not in names("formats") or not takes(plugin, format_name):
            continue
        settings = format_named(format_name).settings
        if settings is not None and table_of(format_name) not in keys:
            tables[table_of(format_name)] = settings
    more = [own_key(table, settings) for table, settings in tables.items()]
    if steps:  # else nobody needs to know what a step is
        step: Any = reduce(or_, steps_plugin().steps)
        more.append(("steps", tuple[step, ...], ()))
    return derive_type(plugin.settings, more, sink)


def own_key(table: str, settings: type[Struct]) -> tuple[str, Any, Any]:
    """Define the key of a format's or a source's own table, None if it must hold something."""
    if any(field.required for field in fields_of(settings)):
        return table, settings | None, None
    return table, settings, settings()


def fill_table(table: Any, settings: type[Struct], key: str) -> Any:
    """Return the table with its defaults; raise ConfigError where one must be written."""
    if table is not None:
        return table
    needed = [field.encode_name for field in fields_of(settings) if field.required]
    if needed:
        keys = ", ".join(needed)
        raise ConfigError(f"The table [{key}] is missing; it must have the keys {keys}.")
    return settings()


def derive_type(base: type[Keys], fields: Sequence[tuple[str, Any, Any]], sink: str | None = None) -> type[Keys]:
    """Add keys to a type under the same name; to that of an output under the name of its sink."""
    made: Any = defstruct(
        base.__name__,
        fields,
        bases=(base,),
        module=base.__module__,
        namespace={"__doc__": base.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        # By its tag msgspec knows which type of a union a table is.
        tag_field=None if sink is None else "sink",
        tag=sink,
    )
    kind: type[Keys] = made
    return kind


def takes(sink: SinkPlugin, format_name: str) -> bool:
    """Return True if the sink takes documents of the format."""
    if format_name in sink.formats:
        return True
    if EVERY_DOCUMENT not in sink.formats or format_name not in names("formats"):
        return False
    return format_named(format_name).content == "documents"


def formats_of(sink: SinkPlugin) -> list[str]:
    """List the formats that a sink takes."""
    usable = [offer.name for offer in offers("formats") if problem(offer) is None]
    return [name for name in usable if takes(sink, name)]


def own_table(output: OutputKeys) -> Any:
    """Return the table of the output's format with its defaults; None where it has none."""
    settings = format_named(output.format).settings
    if settings is None:
        return None
    table = table_of(output.format)
    return fill_table(getattr(output, table, None), settings, f"output.{table}")


def plugin_of(output: OutputKeys) -> SinkPlugin:
    """Load the sink of an output; raise ConfigError if it does not exist or take the format."""
    plugin = sink_named(output.sink)
    if not takes(plugin, output.format):
        known = ", ".join(formats_of(plugin))
        raise ConfigError(f"output.format takes {known}, and not {output.format}.")
    return plugin


def as_declared(output: OutputKeys) -> OutputKeys:
    """Convert the output to its sink's own type, where no format has a table beside: so it can be sent to
    another process.
    """
    base: Any = type(output).__base__
    declared = base.__struct_fields__, base.__struct_config__.tag
    if sorted(declared[0]) == sorted(output.__struct_fields__) and declared[1] == output.sink:
        plain: OutputKeys = base(**asdict(output))
        return plain
    return output


def output_to(sink: str, **keys: Any) -> OutputKeys:
    """Make an output to this sink with these keys."""
    return as_declared(kind_of(sink, ("",), steps="steps" in keys)(**keys))


def default_output() -> OutputKeys:
    """Make the output used where none is configured: standard output."""
    return output_to("stdout")
