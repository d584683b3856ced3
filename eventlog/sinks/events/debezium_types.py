"""How Debezium writes the values of a column: its schema of Kafka Connect, and what becomes of a value.

PostgreSQL, MariaDB and MySQL, and Oracle go by what Debezium's connectors do; others, as SQLite, by the
kind of the type alone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import is_zoned, type_name
from eventlog.qlik.readings import reading_of
from eventlog.qlik.typemap import UNSIGNED_DIGITS, QlikType, qlik_type
from eventlog.sinks.events.connect_avro import CONNECT_DECIMAL, Schema, fitting
from eventlog.sinks.events.debezium_numbers import make_number
from eventlog.sinks.events.debezium_shapes import (
    read_array,
    read_bit_number,
    read_bits,
    read_geometry,
    read_hstore,
    read_point,
    read_shape_point,
    read_truth,
)
from eventlog.sinks.events.debezium_times import (
    INFINITE_NANOS,
    count_interval,
    is_zero_date,
    read_days,
    read_micros,
    read_millis,
    read_nanos,
    read_span,
    read_zoned,
    read_zoned_time,
    write_interval,
)
from eventlog.sinks.events.rows import FieldType, as_it_is, finite
from eventlog.sinks.events.settings import DebeziumSettings

MONEY_DIGITS: Final = 2
_arguments = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)").search
_quoted = re.compile(r"'((?:[^']|'')*)'").findall
_DATA, _TIME, _SHAPE, _CONNECT = (
    "io.debezium.data.",
    "io.debezium.time.",
    "io.debezium.data.geometry.",
    "org.apache.kafka.connect.data.",
)
_read_text = reading_of("text")
Maker = Callable[[DebeziumSettings, Column], FieldType]


def debezium_field(database: str, settings: DebeziumSettings, column: Column) -> FieldType:
    """Find how Debezium's connector for a database writes the values of a column."""
    field = _find_field(database, settings, column)
    if database == "mysql" and type_name(column.type) in ("date", "datetime", "timestamp"):
        field = _without_zero_dates(field, nullable=column.nullable and column.key is None)
    return _check_values(settings, field)


def _find_field(database: str, settings: DebeziumSettings, column: Column) -> FieldType:
    name = type_name(column.type)
    if column.made is Made.TYPE:
        # A type that somebody made may be called like one of the database's.
        name = "[]" if name.endswith("[]") else ""
    if name.endswith("[]"):
        return _make_array(database, settings, column)
    if column.labels:
        return _make_enum("Enum", ",".join(column.labels))
    made = _ROOMS.get(database, {}).get(name)
    if made is not None:
        return made(settings, column)
    if database == "postgresql" and not name:
        return TEXT
    return _find_general(database, settings, column)


def _find_general(database: str, settings: DebeziumSettings, column: Column) -> FieldType:
    """Go by the kind of a type, where a database has no word of its own for it."""
    kind = qlik_type(column.type)
    if kind.name == "UINT8" and settings.bigint_unsigned_handling_mode == "long" and database == "mysql":
        return replace(_INT64, write=_wrap)
    if kind.name in ("NUMERIC", "UINT8"):
        return make_number(settings, kind)
    if kind.name in ("BYTES", "BLOB"):
        return _BINARY[settings.binary_handling_mode]
    if kind.name == "DATETIME":
        return _make_moment(database, settings, column)
    if kind.name == "TIME":
        return _make_time(database, settings, column)
    if kind.name == "DATE":
        return _DATES[settings.time_precision_mode == "connect"]
    if kind.name == "STRING":
        meaning = _SEMANTIC.get(type_name(column.type))
        if meaning is not None:
            return replace(TEXT, name=_DATA + meaning)
    return _PLAIN[kind.name]


def describe(field: FieldType, called: str = "", *, optional: bool, default: Any = None) -> Schema:
    """Describe a field in a schema of Kafka Connect."""
    schema: Schema = {"type": field.type}
    if field.fields:
        schema["fields"] = list(field.fields)
    if field.items is not None:
        schema["items"] = describe(field.items, optional=not field.items.required)
    schema["optional"] = optional
    if field.name is not None:
        schema |= {"name": field.name, "version": 1}
    if field.parameters is not None:
        schema["parameters"] = field.parameters
    if field.doc is not None:
        schema["doc"] = field.doc
    if default is not None:
        schema["default"] = default
    return {**schema, "field": called} if called else schema


# --- numbers ---------------------------------------------------------------------------------------------------------


def _wrap(number: int) -> int:
    """Write a number of 64 bits without a sign in as many with one, as Java's long has it."""
    return number - (1 << 64) if 1 << 63 <= number < 1 << 64 else number


def _make_money(settings: DebeziumSettings, _column: Column) -> FieldType:
    field = make_number(settings, QlikType("NUMERIC", 0, UNSIGNED_DIGITS, MONEY_DIGITS))
    if field.parameters is None:
        return field
    # Nobody says how many digits there are.
    return replace(field, parameters={"scale": str(MONEY_DIGITS)})


def _make_oracle_number(settings: DebeziumSettings, column: Column) -> FieldType:
    match = _arguments(column.type)
    if match is None or match[2] is None:
        return make_number(settings, QlikType("NUMERIC"))
    precision, scale = int(match[1]), int(match[2])
    if scale <= 0 and settings.decimal_handling_mode == "precise":
        for most, field in ((3, _INT8), (5, _INT16), (10, _INT32), (19, _INT64)):
            if precision - scale < most:
                return replace(field, way=reading_of("bigint"))
    return make_number(settings, qlik_type(column.type))


# --- dates and times -------------------------------------------------------------------------------------------------


def _find_digits(database: str, sql_type: str) -> int:
    """Find how many digits of a second a type has."""
    match = _arguments(sql_type)
    if match is not None:
        return int(match[1])
    if database == "mysql" or (database == "oracle" and type_name(sql_type) == "date"):
        return 0
    return 6


def _make_moment(database: str, settings: DebeziumSettings, column: Column) -> FieldType:
    digits = _find_digits(database, column.type)
    zoned = is_zoned(column.type) or (database == "mysql" and type_name(column.type) == "timestamp")
    if zoned:
        way = partial(read_zoned, digits)
        return FieldType(type="string", way=way, name=_TIME + "ZonedTimestamp", empty="1970-01-01T00:00:00Z")
    mode = settings.time_precision_mode or "adaptive"
    if mode == "connect":
        return _make_int("int64", read_millis, _CONNECT + "Timestamp")
    if mode == "nanoseconds" or (mode.startswith("adaptive") and digits > 6):
        return _make_int("int64", _count_nanos, _TIME + "NanoTimestamp")
    if mode == "microseconds" or digits > 3:
        return _make_int("int64", read_micros, _TIME + "MicroTimestamp")
    return _make_int("int64", read_millis, _TIME + "Timestamp")


def _make_time(database: str, settings: DebeziumSettings, column: Column) -> FieldType:
    digits, mode = _find_digits(database, column.type), settings.time_precision_mode
    if mode is None:
        mode = "adaptive" if database in ("postgresql", "oracle") else "adaptive_time_microseconds"
    if mode == "connect":
        return _make_int("int32", partial(_span, 1_000_000), _CONNECT + "Time")
    if mode == "nanoseconds" or (mode == "adaptive" and digits > 6):
        return _make_int("int64", partial(_span, 1), _TIME + "NanoTime")
    if mode != "adaptive" or digits > 3:
        return _make_int("int64", partial(_span, 1000), _TIME + "MicroTime")
    return _make_int("int32", partial(_span, 1_000_000), _TIME + "Time")


def _make_clock(settings: DebeziumSettings, column: Column) -> FieldType:
    """Choose the type of a PostgreSQL time, with or without a zone."""
    if is_zoned(column.type) or type_name(column.type) == "timetz":
        return FieldType(type="string", way=read_zoned_time, name=_TIME + "ZonedTime", empty="00:00:00Z")
    return _make_time("postgresql", settings, column)


def _make_int(kind: str, way: Callable[[Any], Any], name: str) -> FieldType:
    return FieldType(type=kind, way=way, name=name, empty=0)


def _count_nanos(cell: Any) -> int:
    """Count the nanoseconds of a moment; an infinite one is as far as they reach."""
    infinite = INFINITE_NANOS.get(cell) if type(cell) is str else None
    if infinite is not None:
        return infinite
    nanos = read_nanos(cell)
    if -(1 << 63) <= nanos < 1 << 63:
        return nanos
    raise ExpressionError(f"{value_shown(cell)} is too far away for nanoseconds")


def _span(nanos: int, cell: Any) -> int:
    number = read_span(cell)
    # Towards zero, as Java divides.
    return number // nanos if number >= 0 else -(-number // nanos)


def _without_zero_dates(field: FieldType, *, nullable: bool) -> FieldType:
    """Replace impossible dates by NULL, or by the first date if NULL is not allowed."""
    way, instead = field.way, None if nullable else field.empty
    assert way is not None
    return replace(field, way=lambda cell: instead if is_zero_date(cell) else way(cell))


def _make_interval(settings: DebeziumSettings, _column: Column) -> FieldType:
    if settings.interval_handling_mode == "string":
        return FieldType(type="string", way=write_interval, name=_TIME + "Interval", empty="P0Y0M0DT0H0M0S")
    return _make_int("int64", count_interval, _TIME + "MicroDuration")


# --- bits, lists and texts -------------------------------------------------------------------------------------------


def _make_array(database: str, settings: DebeziumSettings, column: Column) -> FieldType:
    element = replace(column, type=column.type.strip().removesuffix("[]"), key=None, nullable=True)
    items = TEXT
    if type_name(element.type) != "money":  # an array has it as the session writes it
        items = debezium_field(database, replace(settings, encoding="json"), element)
    if type_name(element.type) == "bytea":
        items = replace(items, way=partial(_read_hex, items.write))
    if column.labels:
        items = replace(items, required=True)
    way = partial(read_array, field_way(element, items))
    return FieldType(type="array", way=way, items=items, empty=())


def field_way(column: Column, field: FieldType) -> Callable[[Any], Any]:
    """Make of a cell what JSON holds."""
    if field.way is not None:
        return field.way
    read, write = reading_of(column.type), field.write
    return lambda cell: write(read(cell))


def _read_hex(write: Callable[[Any], Any], text: str) -> Any:
    """Read bytes as PostgreSQL writes them within an array."""
    return write(bytes.fromhex(text.removeprefix("\\x")))


def _make_bits(_settings: DebeziumSettings, column: Column) -> FieldType:
    match = _arguments(column.type)
    bits = int(match[1]) if match is not None else 0
    # A `bit varying` of any length is as long as a number may be.
    if match is None and type_name(column.type) != "bit":
        bits = (1 << 31) - 1
    if bits <= 1:
        return replace(_PLAIN["BOOLEAN"], way=read_truth)
    return _describe_bits(bits, read_bits)


def _make_bit_number(_settings: DebeziumSettings, column: Column) -> FieldType:
    match = _arguments(column.type)
    bits = int(match[1]) if match is not None else 1
    if bits == 1:
        return _PLAIN["BOOLEAN"]
    return _describe_bits(bits, partial(read_bit_number, bits))


def _describe_bits(bits: int, way: Callable[[Any], Any]) -> FieldType:
    return FieldType(type="bytes", way=way, name=_DATA + "Bits", parameters={"length": str(bits)}, empty=b"")


def _make_enum(name: str, allowed: str) -> FieldType:
    return replace(TEXT, name=_DATA + name, parameters={"allowed": allowed})


def _make_labels(name: str, _settings: DebeziumSettings, column: Column) -> FieldType:
    labels = [label.replace("''", "'").replace(",", "\\,") for label in _quoted(column.type)]
    return _make_enum(name, ",".join(labels))


def _make_float(_settings: DebeziumSettings, column: Column) -> FieldType:
    """Choose single precision for MariaDB's FLOAT without digits, else double."""
    return _PLAIN["REAL8" if _arguments(column.type) else "REAL4"]


def _make_padded(_settings: DebeziumSettings, column: Column) -> FieldType:
    """Pad a PostgreSQL CHAR with the blanks a log may lack."""
    match = _arguments(column.type)
    length = int(match[1]) if match is not None else 1
    return replace(TEXT, way=lambda cell: str(_read_text(cell)).ljust(length))


def _make_hstore(_settings: DebeziumSettings, _column: Column) -> FieldType:
    return replace(TEXT, way=read_hstore, name=_DATA + "Json", empty="{}")


def _encode(form: str, value: bytes) -> str:
    if form == "hex":
        return value.hex()
    return (base64.urlsafe_b64encode if form == "base64-url-safe" else base64.b64encode)(value).decode()


# --- checks ----------------------------------------------------------------------------------------------------------


def _check_values(settings: DebeziumSettings, field: FieldType) -> FieldType:
    """Refuse what the encoding cannot hold."""
    check: Callable[[Any], Any] | None = None
    if settings.encoding == "avro":
        check = fitting(field.type, field.parameters if field.name == CONNECT_DECIMAL else None)
    elif field.type in ("float", "double"):
        check = finite
    if check is None:
        return field
    if field.way is not None:
        return replace(field, way=partial(_write_checked, check, field.way))
    return replace(field, write=partial(_write_checked, check, field.write))


def _write_checked(check: Callable[[Any], Any], write: Callable[[Any], Any], value: Any) -> Any:
    written = write(value)
    return None if written is None else check(written)


def _always(field: FieldType) -> Maker:
    return lambda _settings, _column: field


def _simple(kind: str, field: str, *, optional: bool) -> Schema:
    return {"type": kind, "optional": optional, "field": field}


_INT8, _INT16, _INT32, _INT64 = [FieldType(type=f"int{bits}", write=as_it_is, empty=0) for bits in (8, 16, 32, 64)]
TEXT: Final = FieldType(type="string", way=_read_text, empty="")
_SINGLE = FieldType(type="float", write=as_it_is, empty=0.0)
_DOUBLE = FieldType(type="double", write=as_it_is, empty=0.0)
_PLAIN: Final[Mapping[str, FieldType]] = {
    "BOOLEAN": FieldType(type="boolean", write=as_it_is, empty=False),
    **dict.fromkeys(("INT1", "UINT1", "INT2"), _INT16),
    **dict.fromkeys(("UINT2", "INT4"), _INT32),
    **dict.fromkeys(("UINT4", "INT8"), _INT64),
    "REAL4": _SINGLE,
    "REAL8": _DOUBLE,
    **dict.fromkeys(("STRING", "CLOB", "NCLOB"), TEXT),
}
_BINARY: Final = {
    "bytes": FieldType(type="bytes", write=as_it_is, empty=b""),
    **{
        form: FieldType(type="string", write=partial(_encode, form), empty="")
        for form in ("base64", "base64-url-safe", "hex")
    },
}
_DATES: Final = [
    _make_int("int32", read_days, _TIME + "Date"),
    _make_int("int32", read_days, _CONNECT + "Date"),
]
_SEMANTIC: Final = {"json": "Json", "jsonb": "Json", "uuid": "Uuid", "uniqueidentifier": "Uuid", "xml": "Xml"}
_WKB: Final = (_simple("bytes", "wkb", optional=False), _simple("int32", "srid", optional=True))
_POINT: Final = FieldType(
    type="struct",
    fields=(
        _simple("double", "x", optional=False),
        _simple("double", "y", optional=False),
        _simple("bytes", "wkb", optional=True),
        _simple("int32", "srid", optional=True),
    ),
    way=read_point,
    name=_SHAPE + "Point",
    doc="Geometry (POINT)",
    empty=read_point("(0,0)"),
)
_GEOMETRY: Final = FieldType(
    type="struct",
    fields=_WKB,
    way=read_geometry,
    name=_SHAPE + "Geometry",
    doc="Geometry",
    empty=read_geometry("GEOMETRYCOLLECTION EMPTY"),
)
_GEOGRAPHY = replace(_GEOMETRY, name=_SHAPE + "Geography", doc="Geography")
_POSTGRESQL: Final[Mapping[str, Maker]] = {
    **dict.fromkeys(("bit", "bit varying", "varbit"), _make_bits),
    "oid": _always(replace(_INT64, way=reading_of("bigint"))),
    "money": _make_money,
    **dict.fromkeys(("char", "character"), _make_padded),
    **dict.fromkeys(("time", "timetz"), _make_clock),
    "interval": _make_interval,
    "point": _always(_POINT),
    "geometry": _always(_GEOMETRY),
    "geography": _always(_GEOGRAPHY),
    "ltree": _always(replace(TEXT, name=_DATA + "Ltree")),
    "hstore": _make_hstore,
    "tsvector": _always(replace(TEXT, name=_DATA + "Tsvector")),
}
_MYSQL: Final[Mapping[str, Maker]] = {
    **dict.fromkeys(("tinyint", "bool", "boolean"), _always(replace(_INT16, way=reading_of("bigint")))),
    "mediumint": _always(replace(_INT32, way=reading_of("bigint"))),
    "bit": _make_bit_number,
    "float": _make_float,
    "real": _always(_DOUBLE),
    "enum": partial(_make_labels, "Enum"),
    "set": partial(_make_labels, "EnumSet"),
    "year": _always(_make_int("int32", reading_of("bigint"), _TIME + "Year")),
    "uuid": _always(TEXT),
    "point": _always(replace(_POINT, way=read_shape_point)),
    **dict.fromkeys(
        ("geometry", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")
        + ("geometrycollection", "geomcollection"),
        _always(_GEOMETRY),
    ),
}
_ORACLE: Final[Mapping[str, Maker]] = {
    **dict.fromkeys(("number", "numeric", "decimal"), _make_oracle_number),
    "float": lambda settings, _: make_number(settings, QlikType("NUMERIC")),
    "date": lambda settings, column: _make_moment("oracle", settings, column),
    "binary_float": _always(_SINGLE),
    "binary_double": _always(_DOUBLE),
    **dict.fromkeys(("interval", "interval day to second"), _make_interval),
    **dict.fromkeys(("xmltype", "sys.xmltype"), _always(replace(TEXT, name=_DATA + "Xml"))),
}
_ROOMS: Final[Mapping[str, Mapping[str, Maker]]] = {"postgresql": _POSTGRESQL, "mysql": _MYSQL, "oracle": _ORACLE}
