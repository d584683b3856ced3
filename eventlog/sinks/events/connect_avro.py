"""Schemas of Kafka Connect in Avro, as Confluent's AvroConverter writes them, and their values.

What Avro has no word for stands in properties whose names begin with `connect.`: so a converter
makes the same schema of Kafka Connect from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import Any, Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.qlik.messages.avrovalues import NULL, SOME, number, prefix_size
from eventlog.qlik.messages.names import avro_name, map_names

Schema = dict[str, Any]
ToAvro = Callable[[Any], bytes]

# The names are those of AvroData in Kafka Connect, which looks for them when it reads a schema.
CONNECT_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
CONNECT_DIGITS: Final = "connect.decimal.precision"
_PLAIN: Final = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSTATED_DIGITS: Final = 64
"""What AvroData writes for a decimal of which nobody says how many digits it has."""


def avro_schema(schema: Schema) -> Any:
    """Convert a schema to Avro, with a repeated record described once."""
    known: set[str] = set()

    def either(described: Schema) -> Any:
        if described["optional"]:
            return ["null", plain(described)]
        return plain(described)

    def plain(described: Schema) -> Any:
        if described["type"] == "array":
            return {"type": "array", "items": either(described["items"])}
        if described["type"] == "struct":
            return record(described)
        kind = described["type"]
        simple: Schema = {"type": _PLAIN.get(kind, kind)}
        if kind in ("int8", "int16"):  # Avro has no such number
            simple["connect.type"] = kind
        for own, connects in (("version", "version"), ("parameters", "parameters"), ("name", "name")):
            if own in described:
                simple[f"connect.{connects}"] = described[own]
        if described.get("name") == CONNECT_DECIMAL:
            digits = int(described["parameters"].get(CONNECT_DIGITS, UNSTATED_DIGITS))
            scale = int(described["parameters"]["scale"])
            simple |= {"logicalType": "decimal", "precision": digits, "scale": scale}
        return simple if len(simple) > 1 else simple["type"]

    def record(described: Schema) -> Any:
        title = full_name(described["name"])
        if title in known:
            return title  # Avro takes a name once
        known.add(title)
        space, _, name = title.rpartition(".")
        fields = []
        for field, called in zip(described["fields"], _names(described), strict=True):
            entry = {"name": called, "type": either(field)}
            if field["optional"]:
                # In Avro the default of a union is of its first type, which is null here.
                entry["default"] = None
            elif "default" in field:
                default = field["default"]
                # As Avro has it in JSON: each byte is a character.
                entry["default"] = default.decode("latin-1") if isinstance(default, bytes) else default
            fields.append(entry)
        whole = {"type": "record", "name": name, "namespace": space, "fields": fields}
        if "version" in described:
            whole["connect.version"] = described["version"]
        return {**whole, "connect.name": title}

    return either(schema)


def avro_writer(schema: Schema) -> ToAvro:
    """Return a function that writes values of this schema."""
    write = _writer(schema)
    if schema["optional"]:
        return _optional(write)
    return write


def full_name(title: str) -> str:
    """Replace what Avro forbids in each part of a dotted name."""
    return ".".join([avro_name(part) for part in title.split(".") if part])


def fitting(schema_type: str, parameters: Mapping[str, str] | None) -> Callable[[Any], Any] | None:
    """Return a check for values outside the Avro type; None if it holds all."""
    if schema_type in _BITS:
        half = 1 << (_BITS[schema_type] - 1)
        return _between(-half, half - 1)
    if schema_type == "float":
        return _single
    if parameters is None:
        return None
    most = int(parameters.get(CONNECT_DIGITS, UNSTATED_DIGITS))
    limit: int = 10**most

    def check_digits(value: bytes) -> bytes:
        if -limit < int.from_bytes(value, "big", signed=True) < limit:
            return value
        hint = "correct the column's type in the schema"
        raise ExpressionError(f"the number has more than {most} digits; {hint}")

    return check_digits


def _names(schema: Schema) -> Sequence[str]:
    """Return Avro names for the fields of a struct."""
    return map_names([field["field"] for field in schema["fields"]])


def _writer(schema: Schema) -> ToAvro:
    if schema["type"] == "struct":
        return _record(schema)
    if schema["type"] == "array":
        return _array(avro_writer(schema["items"]))
    return _WRITERS[schema["type"]]


def _optional(write: ToAvro) -> ToAvro:
    def either(value: Any) -> bytes:
        if value is None:
            return NULL
        return SOME + write(value)

    return either


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
    def write_items(values: Sequence[Any]) -> bytes:
        if not values:
            return number(0)
        # One block of items, and a block of none, which ends the array.
        items = b"".join(map(write, values))
        return number(len(values)) + items + number(0)

    return write_items


def _between(low: int, high: int) -> Callable[[int], int]:
    def check_range(value: int) -> int:
        if low <= value <= high:
            return value
        problem = f"{value_shown(value)} is outside {low} to {high}"
        raise ExpressionError(f"{problem}; correct the column's type in the schema")

    return check_range


def _single(value: float) -> float:
    try:
        pack("<f", value)
    except OverflowError:
        problem = f"{value_shown(value)} is too large for a float"
        raise ExpressionError(f"{problem}; correct the column's type in the schema") from None
    return value


_WRITERS: Final[Mapping[str, ToAvro]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    # Avro writes int and long alike.
    **dict.fromkeys(_PLAIN, number),
    "float": lambda value: pack("<f", value),
    "double": lambda value: pack("<d", value),
    "string": lambda value: prefix_size(value.encode()),
    "bytes": prefix_size,
}
