"""Reading Avro: schemas as other producers write them, and records by them."""

from __future__ import annotations

import io
import re
from typing import Any, Final

import msgspec

from eventlog.core.errors import DataError

_illegal: Final = re.compile(r"[^A-Za-z0-9_.]")
_NAMED: Final = frozenset({"record", "enum", "fixed"})
_PLAIN: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map", *_NAMED}
)


def lenient(text: str) -> dict[str, Any]:
    """A schema, with names that Avro forbids made ones that it allows; DataError where it is no schema of a record."""
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"The schema is no JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise DataError("The schema is not that of a record.")
    found = _mended(schema)
    assert isinstance(found, dict)
    return found


def decoded(schema: dict[str, Any], value: bytes) -> dict[str, Any]:
    """The record that the bytes are; DataError where they are not, or are more."""
    from fastavro import parse_schema, schemaless_reader

    stream = io.BytesIO(value)
    try:
        found = schemaless_reader(stream, parse_schema(schema), None)
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its decoding runs into
        raise DataError(f"The bytes do not fit the schema ({type(error).__name__}).") from None
    if stream.tell() != len(value):
        raise DataError(f"The bytes do not fit the schema: {len(value) - stream.tell()} are left over.")
    if not isinstance(found, dict):
        raise DataError("The schema is not that of a record.")
    return found


def _mended(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_mended(branch) for branch in schema]
    if isinstance(schema, str):
        return schema if schema in _PLAIN else _name(schema)
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for key in ("type", "items", "values"):
        if key in found:
            found[key] = _mended(found[key])
    if isinstance(found.get("type"), str) and found["type"] in _NAMED:
        found |= {key: _name(found[key]) for key in ("name", "namespace") if isinstance(found.get(key), str)}
    if isinstance(found.get("fields"), list):
        found["fields"] = [_mended(field) for field in found["fields"]]
    return found


def _name(text: str) -> str:
    return ".".join([f"_{part}" if part[:1].isdigit() else part for part in _illegal.sub("_", text).split(".")])
