"""Schemas of Kafka Connect in Avro, as Confluent's AvroConverter writes them, and their values.

What Avro has no word for stands in properties whose names begin with `connect.`: so a converter
makes the same schema of Kafka Connect from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import Any, Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.qlik.messages.avrovalues import NULL, SOME, number, sized
from eventlog.qlik.messages.names import avro_name, mapped_names

Schema = dict[str, Any]
ToAvro = Callable[[Any], bytes]

CONNECT_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
CONNECT_DIGITS: Final = "connect.decimal.precision"
_PLAIN: Final = {"int16": "int", "int32": "int", "int64": "long"}
_BITS: Final = {"int16": 16, "int32": 32, "int64": 64}


def avro_schema(schema: Schema) -> Any:
    """The schema of a value in Avro. A record that stands there twice is described once."""
    known: set[str] = set()

    def either(one: Schema) -> Any:
        return ["null", plain(one)] if one["optional"] else plain(one)

    def plain(one: Schema) -> Any:
        if one["type"] == "array":
            return {"type": "array", "items": either(one["items"])}
        return record(one) if one["type"] == "struct" else _simple(one)

    def record(one: Schema) -> Any:
        title = full_name(one["name"])
        if title in known:
            return title
        known.add(title)
        space, _, name = title.rpartition(".")
        fields = []
        for field, called in zip(one["fields"], _names(one), strict=True):
            default = {"default": None} if field["optional"] else {}
            fields.append({"name": called, "type": either(field), **default})
        version = {"connect.version": one["version"]} if "version" in one else {}
        begin = {"type": "record", "name": name, "namespace": space}
        return {**begin, "fields": fields, **version, "connect.name": title}

    return either(schema)


def avro_writer(schema: Schema) -> ToAvro:
    """What writes the values that the schema describes."""
    write = _writer(schema)
    return _optional(write) if schema["optional"] else write


def full_name(title: str) -> str:
    """A name of a schema whose parts Avro can hold."""
    return ".".join([avro_name(part) for part in title.split(".") if part])


def fitting(schema_type: str, parameters: Mapping[str, str] | None) -> Callable[[Any], Any] | None:
    """What lets those values pass that the type in Avro can hold; None where it can hold all."""
    if schema_type in _BITS:
        return _between(-(1 << (_BITS[schema_type] - 1)), (1 << (_BITS[schema_type] - 1)) - 1)
    if schema_type == "float":
        return _single
    return None if parameters is None else _of_digits(int(parameters[CONNECT_DIGITS]))


def _simple(schema: Schema) -> Any:
    kind = schema["type"]
    found: Schema = {"type": _PLAIN.get(kind, kind)}
    if kind == "int16":
        found["connect.type"] = kind
    if "version" in schema:
        found["connect.version"] = schema["version"]
    if "parameters" in schema:
        found["connect.parameters"] = schema["parameters"]
    if "name" in schema:
        found["connect.name"] = schema["name"]
    if schema.get("name") == CONNECT_DECIMAL:
        digits = int(schema["parameters"][CONNECT_DIGITS])
        scale = int(schema["parameters"]["scale"])
        found |= {"logicalType": "decimal", "precision": digits, "scale": scale}
    return found if len(found) > 1 else found["type"]


def _names(schema: Schema) -> Sequence[str]:
    """What the fields of a struct are called in Avro."""
    return mapped_names([field["field"] for field in schema["fields"]])


def _writer(schema: Schema) -> ToAvro:
    if schema["type"] == "struct":
        return _record(schema)
    if schema["type"] == "array":
        return _array(avro_writer(schema["items"]))
    return _WRITERS[schema["type"]]


def _optional(write: ToAvro) -> ToAvro:
    return lambda value: NULL if value is None else SOME + write(value)


def _record(schema: Schema) -> ToAvro:
    writers = [(field["field"], _field(field)) for field in schema["fields"]]
    return lambda row: b"".join([write(row.get(name)) for name, write in writers])


def _field(schema: Schema) -> ToAvro:
    name, write = schema["field"], _writer(schema)
    if schema["optional"]:
        return _optional(write)

    def there(value: Any) -> bytes:
        if value is None:
            raise ExpressionError(f"the key column {name} is NULL")
        return write(value)

    return there


def _array(write: ToAvro) -> ToAvro:
    def written(values: Sequence[Any]) -> bytes:
        items = b"".join(map(write, values))
        return number(len(values)) + items + number(0) if values else number(0)

    return written


def _between(low: int, high: int) -> Callable[[int], int]:
    def checked(value: int) -> int:
        if low <= value <= high:
            return value
        problem = f"{value_shown(value)} is outside {low} to {high}"
        raise ExpressionError(f"{problem}; correct the column's type in the schema")

    return checked


def _single(value: float) -> float:
    try:
        pack("<f", value)
    except OverflowError:
        problem = f"{value_shown(value)} is too large for a float"
        raise ExpressionError(f"{problem}; correct the column's type in the schema") from None
    return value


def _of_digits(most: int) -> Callable[[bytes], bytes]:
    limit: int = 10**most

    def checked(value: bytes) -> bytes:
        if -limit < int.from_bytes(value, "big", signed=True) < limit:
            return value
        hint = "correct the column's type in the schema"
        raise ExpressionError(f"the number has more than {most} digits; {hint}")

    return checked


_WRITERS: Final[Mapping[str, ToAvro]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    **dict.fromkeys(_PLAIN, number),
    "float": lambda value: pack("<f", value),
    "double": lambda value: pack("<d", value),
    "string": lambda value: sized(value.encode()),
    "bytes": sized,
}
