"""A table's name is a pair of schema and table, either of which may have a dot in it. Written as one
text the pair can be read again, as SQL does: a part with a dot or a quote stands in double quotes.
"""

from __future__ import annotations

import re
from functools import lru_cache

_part = r'"(?:[^"]|"")+"|[^."]+'
_pair = re.compile(rf"(?:(?P<schema>{_part})\.)?(?P<table>{_part})")


@lru_cache(maxsize=4096)
def write_name(schema: str | None, name: str) -> str:
    """Write the pair as one text."""
    return f"{_write_part(schema)}.{_write_part(name)}" if schema else _write_part(name)


def write_log_name(schema: str | None, name: str, log_schema: str | None) -> str:
    """Write what the log calls a table: by its bare name where it stands in the log's own schema."""
    return name if schema is None or log_schema in (None, schema) else write_name(schema, name)


def read_name(text: str) -> tuple[str, str]:
    """Read a schema, perhaps empty, and a table; a text not by `write_name` is split at its last
    dot.
    """
    match = _pair.fullmatch(text) if '"' in text else None
    if match is None:
        schema, _, table = text.rpartition(".")
        return schema, table
    return _read(match["schema"] or ""), _read(match["table"])


def _write_part(part: str) -> str:
    if "." not in part and '"' not in part:
        return part
    return '"' + part.replace('"', '""') + '"'


def _read(part: str) -> str:
    if part.startswith('"'):
        return part[1:-1].replace('""', '"')
    return part
