"""The tables of types in docs/reference/debezium.md: how `format = "debezium"` writes each, asked of the code that does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eventlog.core.schema import Column
from eventlog.sinks.events.debezium_types import debezium_field, describe
from eventlog.sinks.events.settings import DebeziumSettings

PAGE: Final = Path(__file__).resolve().parent / "reference" / "debezium.md"
_WORDS: Final = {"float": "float32", "double": "float64"}
TYPES: Final[Mapping[str, Sequence[str]]] = {
    "postgresql": (
        *("boolean", "bit(1)", "bit(8)", "bit varying(8)", "smallint", "integer", "bigint", "oid", "real"),
        *("double precision", "numeric", "numeric(10,2)", "money", "char(5)", "varchar(40)", "text", "citext", "name"),
        *("bytea", "date", "time(3)", "time", "time with time zone", "timestamp(3)", "timestamp"),
        *(
            "timestamp with time zone",
            "interval",
            "json",
            "jsonb",
            "xml",
            "uuid",
            "inet",
            "cidr",
            "macaddr",
            "macaddr8",
        ),
        *("int4range", "numrange", "tsrange", "tstzrange", "daterange", "point", "geometry", "geography", "ltree"),
        *("hstore", "tsvector", "mood (enum)", "integer[]", "mood[] (enum)", "box", "pg_lsn"),
    ),
    "mysql": (
        *("tinyint(1)", "tinyint", "tinyint unsigned", "smallint", "smallint unsigned", "mediumint", "integer", "year"),
        *("mediumint unsigned", "integer unsigned", "bigint", "bigint unsigned", "bit(1)", "bit(8)", "float"),
        *("float(7,3)", "double", "decimal(10,2)", "char(5)", "varchar(40)", "text", "json", "enum('a','b')"),
        *("set('a','b')", "binary(4)", "varbinary(4)", "blob", "date", "time", "datetime", "datetime(6)", "timestamp"),
        *("timestamp(6)", "point", "geometry", "polygon", "uuid", "inet4", "inet6"),
    ),
    "oracle": (
        *("NUMBER(2,0)", "NUMBER(4,0)", "NUMBER(9,0)", "NUMBER(18,0)", "NUMBER(38,0)", "NUMBER(10,2)", "NUMBER"),
        *("FLOAT(126)", "BINARY_FLOAT", "BINARY_DOUBLE", "VARCHAR2(40)", "CHAR(5)", "CLOB", "NCLOB", "RAW(16)", "BLOB"),
        *("DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH TIME ZONE", "XMLTYPE", "ROWID"),
        *("TIMESTAMP(6) WITH LOCAL TIME ZONE", "INTERVAL YEAR(2) TO MONTH", "INTERVAL DAY(2) TO SECOND(6)"),
    ),
    "sqlite": (
        *("INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC", "DECIMAL(10,2)", "BOOLEAN", "DATE", "TIME", "TIMESTAMP"),
        *("TIMESTAMP(3)", "JSON", "UUID"),
    ),
}
_TITLES: Final = {
    "postgresql": "PostgreSQL",
    "mysql": "MariaDB and MySQL",
    "oracle": "Oracle, by Debezium's documentation",
    "sqlite": "SQLite, which Debezium does not capture",
}


def tables() -> Iterator[str]:
    """Write a table for each database: types that are written alike stand together."""
    for database, types in TYPES.items():
        yield from (f"### {_TITLES[database]}", "", "| type | Kafka Connect | name |", "| --- | --- | --- |")
        alike: dict[tuple[str, str], list[str]] = {}
        for type_ in types:
            alike.setdefault(_describe(database, type_), []).append(f"`{type_}`")
        for (kind, name), together in alike.items():
            yield f"| {', '.join(together)} | {kind} | {name} |"
        yield ""


def _describe(database: str, type_: str) -> tuple[str, str]:
    labels = ("a", "b") if type_.endswith("(enum)") else ()
    column = Column(name="c", type=type_.removesuffix(" (enum)"), labels=labels)
    schema = describe(debezium_field(database, DebeziumSettings(), column), optional=True)
    told = schema["items"] if schema["type"] == "array" else schema
    kind = f"`{_WORDS.get(told['type'], told['type'])}`"
    name = f"`{told['name']}`" if "name" in told else ""
    if told.get("parameters"):
        name += f" ({', '.join(sorted(told['parameters']))})"
    return (f"`array` of {kind}" if told is not schema else kind), name
