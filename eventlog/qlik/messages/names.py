"""Names in messages: what topics, Avro fields and Avro namespaces are called, and what no name can
be made of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.places import TOPIC_CHARACTERS, topic_name
from eventlog.core.schema import Table
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.readings import is_whole_text

NAMESPACE: Final = "com.attunity.queue.msg"
RESERVED: Final = frozenset({"MetadataMessage", "Lineage", "TableStructure", "TableColumns"})
"""Types of a metadata message, in which each column is a type too."""

# What the specification of Avro takes for a name.
_fits = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII).fullmatch
_odd = re.compile(r"[^A-Za-z0-9_]", re.ASCII)


def topic_of(table: Table, settings: MessageSettings, *, free: bool = False) -> str:
    """Name the topic of the table's messages; raise ExpressionError for an impossible name. With `free` it
    is none of Kafka's, and may have any name.
    """
    fields = {
        "schema": table.schema or "",
        "table": table.name,
        "task": settings.task,
        "server": settings.server,
    }
    # Fields that are empty leave points at the ends.
    topic = settings.topic_template().fill(fields).strip(".")
    if not topic or (not free and topic_name(topic) is None):
        raise ExpressionError(
            f"no topic can be called {value_shown(topic)}: it takes at most {TOPIC_CHARACTERS}"
            " of a-z A-Z 0-9 . _ -; change output.messages.topic"
        )
    return topic


def namespace(table: Table, settings: MessageSettings) -> str:
    """Write the namespace of a table's schemas in a registry.

    Replace every character forbidden in Avro by an underscore.
    """
    parts = [settings.task, table.schema or "", table.name]
    return ".".join([NAMESPACE, *[avro_name(part) for part in parts if part]])


def field_names(columns: Sequence[str], settings: MessageSettings) -> tuple[str, ...]:
    """Name the columns in messages.

    Raise ExpressionError where Avro cannot hold a name that is to stay.
    """
    types = settings.mode == "metadata"
    for name in columns:
        if not is_whole_text(name):
            shown = value_shown(name)
            raise ExpressionError(f"the name of a column, {shown}, holds half a character; rename it")
    # JSON without a schema takes any name; only with one are its columns types of Avro.
    if settings.encoding == "json" and not types:
        return tuple(columns)
    taken = RESERVED if types else frozenset[str]()
    unfit = [name for name in columns if _fits(name) is None or name in taken]
    if not unfit:
        return tuple(columns)
    if settings.names == "refuse":
        raise ExpressionError(
            f'Avro cannot hold a column called {value_shown(unfit[0])}; rename it, or set output.messages.names = "map"'
        )
    return map_names(columns, taken)


def avro_name(text: str) -> str:
    name = _odd.sub("_", text)
    # No name of Avro begins with a digit.
    if name[:1].isdigit():
        return f"_{name}"
    return name


def map_names(columns: Sequence[str], taken: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Replace names that do not fit; number the later ones of those that come to the same name."""
    # Names that stay are taken first, so that no made name takes one of a later column.
    used = {*taken, *[name for name in columns if _fits(name) is not None and name not in taken]}
    mapped = []
    for column in columns:
        name = column
        if _fits(column) is None or column in taken:
            made = name = avro_name(column)
            number = 2
            while name in used:
                name = f"{made}_{number}"
                number += 1
            used.add(name)
        mapped.append(name)
    return tuple(mapped)
