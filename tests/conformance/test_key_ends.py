"""Keys at the ends of their types: one spelling for trigger, read-back and full load, and a row that is there is found."""

from __future__ import annotations

from pprint import pformat
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.core.model import RowId, Unreadable
from eventlog.core.schema import Catalog
from eventlog.refresh.loads import Statements, loads
from eventlog.refresh.ranges import RangeState
from eventlog.sql.access import transaction
from eventlog.sql.dialect import dialect_of
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from eventlog.tracked.options import Style, TriggerOptions

POSTGRESQL: list[tuple[str, list[str]]] = [
    ("smallint", ["-32768", "32767", "0"]),
    ("integer", ["-2147483648", "2147483647"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    ("numeric", ["'NaN'", "1e100", "1e-100", "1.10", "-0.0", "'" + "9" * 1000 + "." + "9" * 400 + "'"]),
    ("numeric(10,2)", ["'NaN'", "-99999999.99", "0.10"]),
    ("numeric(8,0)", ["'NaN'", "99999999"]),
    ("real", ["'NaN'", "'Infinity'", "'-Infinity'", "3.4028235e38", "1e-45", "16777216", "0.1", "-0.0"]),
    (
        "double precision",
        ["'NaN'", "'Infinity'", "'-Infinity'", "1.7976931348623157e308", "5e-324", "0.1", "5", "1e20"],
    ),
    ("money", ["'-92233720368547758.08'", "'92233720368547758.07'", "'1234.5'"]),
    ("boolean", ["true", "false"]),
    (
        "date",
        ["'infinity'", "'-infinity'", "'4713-11-24 BC'", "'5874897-12-31'", "'0044-03-15 BC'", "'0001-02-29 BC'"]
        + ["'0001-01-01'", "'9999-12-31'", "'10000-01-01'", "'294277-01-01'", "'2025-03-23'"],
    ),
    (
        "timestamp",
        ["'infinity'", "'-infinity'", "'4713-11-24 00:00:00 BC'", "'294276-12-31 23:59:59.999999'"]
        + ["'0001-12-31 23:59:59.999999 BC'", "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"]
        + ["'10000-01-01 00:00:00.5'", "'2025-03-23 24:00:00'"],
    ),
    (
        "timestamptz",
        ["'infinity'", "'-infinity'", "'4713-11-24 00:00:00+00 BC'", "'294276-12-31 23:59:59.999999+00'"]
        + ["'0001-12-31 23:59:59.999999+00 BC'", "'9999-12-31 23:59:59.999999+00'", "'10000-01-01 00:00:00.5+00'"],
    ),
    ("time", ["'00:00:00'", "'24:00:00'", "'23:59:59.999999'"]),
    ("timetz", ["'24:00:00+15:59'", "'00:00:00-15:59'", "'10:57:19.25+02'"]),
    ("interval", ["'1 day'", "'-178000000 years'", "'00:00:00.000001'"]),
    ("uuid", ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"]),
    ("bytea", ["''", r"'\xff00'"]),
    ("text", ["''", "' '", "'a+b=\"c\"\\'", "chr(1)"]),
    ("char(5)", ["'ab'", "''"]),
    ("varchar(9)", ["'ab  '", "''"]),
    ('"char"', ["'a'"]),
    ("inet", ["'10.0.0.1'", "'::/0'"]),
    ("int4range", ["'(,)'", "'empty'", "'[1,5)'"]),
    ("integer[]", ["'{}'", "'{1,NULL}'"]),
    ("bit(3)", ["B'101'"]),
]
MARIADB: list[tuple[str, list[str]]] = [
    ("TINYINT", ["-128", "127"]),
    ("TINYINT(1)", ["0", "1", "2", "-1"]),
    ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    ("BIGINT UNSIGNED", ["0", "18446744073709551615"]),
    ("INT(5) ZEROFILL", ["7"]),
    ("DECIMAL(65,30)", ["99999999999999999999999999999999999." + "9" * 30, "-0.000000000000000000000000000001"]),
    ("DOUBLE", ["1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "0.1", "5", "1e20"]),
    ("FLOAT", ["3.40282e38", "1.17549e-38", "0.1", "5", "16777216"]),
    ("DATE", ["'1000-01-01'", "'9999-12-31'", "'0001-01-01'", "'0000-00-00'", "'2025-00-00'", "'0000-01-01'"]),
    (
        "DATETIME(6)",
        ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'0000-00-00 00:00:00'", "'2025-03-00 10:00:00'"],
    ),
    ("DATETIME", ["'2025-03-23 10:57:19'", "'0000-00-00 00:00:00'"]),
    ("TIMESTAMP(6) NOT NULL DEFAULT '2000-01-01'", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'"]),
    ("TIME(6)", ["'-838:59:59'", "'838:59:59'", "'00:00:00.000001'", "'-00:00:01'"]),
    ("YEAR", ["1901", "2155", "0"]),
    ("BIT(64)", ["0", "18446744073709551615"]),
    ("BIT(1)", ["0", "1"]),
    ("CHAR(5)", ["'ab'", "''"]),
    ("VARCHAR(9)", ["''", "'a b'"]),
    ("VARBINARY(9)", ["''", "x'ff00'"]),
    ("BINARY(3)", ["x'ff'"]),
    ("ENUM('a','b')", ["'a'"]),
    ("SET('a','b')", ["'a,b'", "''"]),
]
SQLITE: list[tuple[str, list[str]]] = [
    ("INTEGER", ["-9223372036854775808", "9223372036854775807"]),
    ("INT", ["1.5", "'text'", "x'6162'", "9e999"]),
    ("REAL", ["1.7976931348623157e308", "-1.7976931348623157e308", "9e999", "-9e999", "5e-324", "0.1", "5", "1e20"]),
    ("NUMERIC", ["1e20", "5", "'1.10'", "'text'"]),
    ("BOOLEAN", ["0", "1", "2", "'t'"]),
    ("DATE", ["'infinity'", "'2025-03-23'", "20250323", "2460757.5"]),
    ("TIMESTAMP", ["'2025-03-23 10:57:19.25'", "'2025-03-23T10:57:19Z'", "1742727439"]),
    ("TEXT", ["''", "'a'", "5", "x'6162'"]),
    ("BLOB", ["x''", "x'00ff'", "'text'", "5", "1.5"]),
    ("", ["5", "'6'", "1.5", "x'6162'", "'a'", "1e20"]),
]
MIXED = {("sqlite", kind) for kind in ("INT", "TEXT", "BLOB", "")}
"""Columns with values of several types, after which a full load cannot ask; it says so."""
TYPES = {"postgresql": POSTGRESQL, "mysql": MARIADB, "sqlite": SQLITE}
LENIENT = "SET @former = @@SESSION.sql_mode, SESSION sql_mode = CONCAT('NO_BACKSLASH_ESCAPES,', IF(LOCATE('ANSI_QUOTES', @@SESSION.sql_mode), 'ANSI_QUOTES', ''))"


def made(engine: Engine, table: str, type_: str, literals: list[str]) -> list[str]:
    """Make a table with such a key and these rows; return the logged keys in the order of the rows."""
    lenient = dialect_of(engine).name == "mysql"
    with engine.begin() as connection:
        if lenient:
            connection.exec_driver_sql(LENIENT)
        connection.exec_driver_sql(f"CREATE TABLE {table} (k {type_}, v INTEGER, PRIMARY KEY (k))")
        if lenient:
            connection.exec_driver_sql("SET SESSION sql_mode = @former")
    track(engine, [table], TriggerOptions(style=Style.ROW_BACK))
    return filled(engine, table, literals)


def filled(engine: Engine, table: str, literals: list[str]) -> list[str]:
    """Insert the rows not there yet, and return the logged keys."""
    lenient = dialect_of(engine).name == "mysql"
    with engine.begin() as connection:
        if lenient:
            connection.exec_driver_sql(f"{LENIENT}, time_zone = '+00:00'")
        for number, literal in enumerate(literals):
            connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({literal}, {number})".replace("%", "%%"))
        if lenient:
            connection.exec_driver_sql("SET SESSION sql_mode = @former, time_zone = DEFAULT")
        holes = (
            f"SELECT table_key FROM event_log WHERE event_type = 5 AND table_name LIKE '%%{table}' ORDER BY record_id"
        )
        return [str(key) for (key,) in connection.exec_driver_sql(holes)]


@pytest.mark.in_turn
def test_a_row_that_is_there_is_found_by_the_key_that_its_trigger_wrote(engine: Engine) -> None:
    install(engine)
    wrong: dict[str, Any] = {}
    for number, (type_, literals) in enumerate(TYPES[dialect_of(engine).name]):
        name = f"t{number}"
        try:
            keys = made(engine, name, type_, literals)
            expected = {key: place for place, key in enumerate(keys)}
            found = read_back(engine, name, keys)
            if found != expected or len(expected) < len(literals):
                lost = {literals[place]: key for key, place in expected.items() if found.get(key) != place}
                wrong[type_] = lost or keys
            elif (dialect_of(engine).name, type_) not in MIXED and refreshed(engine, name) != sorted(keys):
                wrong[type_] = ("full load", refreshed(engine, name), sorted(keys))
        except Exception as error:  # noqa: BLE001  # each type is told
            wrong[type_] = str(error)[:300]
    assert not wrong, pformat(wrong, width=160)


def read_back(engine: Engine, name: str, keys: list[str]) -> dict[str, Any]:
    """Read back the rows with these keys, as far as they are found."""
    table = reflect(engine, [name]).tables[0]
    wanted = {RowId(table.schema, name, key): frozenset(["v"]) for key in keys}
    found = SqlRowReader(engine, Catalog([table])).rows(wanted)
    return {row.key: None if isinstance(values, Unreadable) else values["v"] for row, values in found.items()}


def refreshed(engine: Engine, name: str) -> list[str]:
    """Refresh a table a row at a time, and return the keys."""
    log = Log(engine, LogNames())
    [load] = loads(engine, log.names, [name], None, None)
    sql = Statements(log.dialect, log.names, load)
    found: list[str] = []
    with transaction(engine, "The table") as connection:
        sql.prepare_session(connection)
        while some := sql.next_keys(connection, RangeState(after=found[-1] if found else ""), 1):
            assert some[0] not in found, some[0]
            found += some
    return sorted(found)


def quoted(value: object) -> str:
    return f"'{value}'"


floats = st.floats(allow_nan=False, allow_infinity=False).map(lambda one: repr(one + 0.0))  # -0.0 is 0.0
decimals = st.decimals(-(10**30), 10**30, places=20, allow_nan=False).map(lambda one: f"{one:f}" if one else "0")
micros = st.integers(-62_135_596_800 * 10**6, 253_402_300_799 * 10**6)
RANDOM: dict[str, dict[str, st.SearchStrategy[str]]] = {
    "postgresql": {
        "numeric": decimals,
        "double precision": st.floats().map(lambda one: quoted(one + 0.0)),
        "real": st.floats(width=32).map(lambda one: quoted(one + 0.0)),
        "date": st.integers(-1_700_000, 2_145_000_000).map("DATE '0001-01-01' + {}".format),
        "timestamp": st.integers(-200_000_000_000, 9_000_000_000_000).map(
            "TIMESTAMP '2000-01-01' + {} * INTERVAL '1.000001 s'".format
        ),
        "timestamptz": st.integers(-200_000_000_000, 9_000_000_000_000).map(
            "TIMESTAMPTZ '2000-01-01' + {} * INTERVAL '1.000001 s'".format
        ),
        "time": st.times().map(quoted),
        "interval": st.timedeltas().map(lambda one: f"'{one.days} days {one.seconds} s {one.microseconds} us'"),
        "money": st.integers(-(2**53), 2**53).map("({})::numeric::money".format),
    },
    "mysql": {
        "DOUBLE": floats,
        "DECIMAL(65,30)": decimals,
        "DATE": st.dates().map(quoted),
        "DATETIME(6)": st.datetimes().map(quoted),
        "TIME(6)": st.integers(-3_020_399_000_000, 3_020_399_000_000).map("SEC_TO_TIME({} * 0.000001)".format),
        "BIGINT UNSIGNED": st.integers(0, 2**64 - 1).map(str),
    },
    "sqlite": {
        "REAL": floats,
        "NUMERIC": st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.integers(-(2**63), 2**63 - 1).map(str),
        "TIMESTAMP": st.datetimes().map(quoted) | st.datetimes().map(lambda one: quoted(one.isoformat())),
        "DATE": st.dates().map(quoted),
        "BLOB": st.binary(max_size=9).map(lambda one: f"x'{one.hex()}'"),
    },
}


def test_any_key_finds_its_row(engine: Engine) -> None:
    """All tables are filled and read in one transaction each: what takes time is the server's answer."""
    install(engine)
    kinds = RANDOM[dialect_of(engine).name]
    for number, type_ in enumerate(kinds):
        made(engine, f"r{number}", type_, [])
    names = [f"r{number}" for number in range(len(kinds))]
    catalog = reflect(engine, names)
    reader = SqlRowReader(engine, catalog)
    lists = st.tuples(*[st.lists(kind, min_size=1, max_size=5, unique=True) for kind in kinds.values()])

    @settings(max_examples=10, deadline=None, phases=[Phase.generate])
    @given(lists)
    def each(values: tuple[list[str], ...]) -> None:
        with engine.begin() as connection:
            for name in [*names, "event_log"]:
                connection.exec_driver_sql(f"DELETE FROM {name}")
            for name, literals in zip(names, values, strict=True):
                rows = ", ".join(f"({literal}, {number})" for number, literal in enumerate(literals))
                connection.exec_driver_sql(f"INSERT INTO {name} VALUES {rows}".replace("%", "%%"))
            logged = connection.exec_driver_sql(
                "SELECT table_name, table_key FROM event_log WHERE event_type = 5 ORDER BY record_id"
            ).fetchall()
        keys = {table.name: [key for name, key in logged if name.endswith(table.name)] for table in catalog}
        rows_of = {table.name: RowId(table.schema, table.name, "") for table in catalog}
        wanted = {replace(rows_of[name], key=key): place for name in names for place, key in enumerate(keys[name])}
        found = reader.rows(dict.fromkeys(wanted, frozenset(["v"])))
        assert {row: values["v"] for row, values in found.items() if not isinstance(values, Unreadable)} == wanted

    each()
