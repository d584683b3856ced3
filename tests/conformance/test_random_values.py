"""Random tables of every database with extreme and special values, in values and in keys, captured in every style: a mirror
and files of rows have what the source has, or a note says what they have not and why. The judge reads all sides through
the drivers or as JSON, and by nothing of eventlog's.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from random import Random
from typing import Any, Final, cast
from xml.etree import ElementTree as ET

import pytest
from pyarrow import parquet
from sqlalchemy import Connection, Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.tablekey import TableKey
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.daily import of_today

Types = dict[str, tuple[str, ...]]
Cells = dict[str, Any]
Rows = dict[tuple[Any, ...], Cells]
EVERYWHERE: Final[Types] = {
    "INTEGER": ("0", "-1", "2147483647", "-2147483648"),
    "SMALLINT": ("32767", "-32768"),
    "BIGINT": ("9223372036854775807", "-9223372036854775808"),
    "NUMERIC(10,2)": ("0", "1.5", "-99999999.99", "0.01"),
    "NUMERIC(38,0)": ("1", "99999999999999999999999999999999999999"),
    "DOUBLE PRECISION": ("0.1", "-1e300", "1e-300"),
    "VARCHAR(20)": ("''", "'a'", "'A'", "'ä😀'", "' b '", "'+=\"\\'", "'''x'", "'NaN'"),
    "CHAR(5)": ("'ab'", "''"),
    "DATE": ("'2024-02-29'", "'0001-01-01'", "'9999-12-31'"),
}
MYSQL: Final[Types] = EVERYWHERE | {
    "DATE": ("'0000-00-00'", "'2024-00-00'", "'2024-02-29'", "'9999-12-31'"),
    "TIME(3)": ("'838:59:59'", "'-838:59:59'", "'24:00:00'", "'10:57:19.25'", "'-00:00:01'"),
    "DATETIME(6)": ("'0000-00-00 00:00:00'", "'2024-02-29 12:00:00.000001'", "'9999-12-31 23:59:59.999999'"),
    "TIMESTAMP NULL": ("'2024-02-29 12:00:00'",),
    "TINYINT(1)": ("0", "1", "5", "-128"),
    "FLOAT": ("0.5", "0.1", "16777216", "-16777215", "3.4028234e38", "1e-40"),
    "BIGINT UNSIGNED": ("18446744073709551615", "0"),
    "DECIMAL(38,10)": ("1.5", "-9999999999999999999999999999.9999999999"),
    "YEAR": ("2024", "1901"),
    "BIT(12)": ("b'101'",),
    "VARBINARY(9)": ("x'00ff'", "''"),
    "LONGTEXT": ("'x'", "REPEAT('é', 3000)"),
    "ENUM('good','Bad')": ("'Bad'",),
    "POINT": ("ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(1 2)', 4326)"),
}
TYPES: Final[dict[str, Types]] = {
    "postgresql": EVERYWHERE
    | {
        "NUMERIC": ("'NaN'", "1.50", "1e30", "-1e-10", "'Infinity'"),
        "NUMERIC(10,2)": ("'NaN'", "1.5", "-99999999.99"),
        "NUMERIC(38,0)": ("'NaN'", "99999999999999999999999999999999999999"),
        "REAL": ("0.1", "16777216", "'NaN'", "'Infinity'"),
        "DOUBLE PRECISION": ("'NaN'", "'-Infinity'", "0.1"),
        "DATE": ("'infinity'", "'-infinity'", "'0044-03-15 BC'", "'99999-01-01'", "'2024-02-29'"),
        "TIME": ("'24:00'", "'00:00'", "'23:59:59.999999'"),
        "TIMESTAMP": ("'infinity'", "'0044-03-15 10:00 BC'", "'99999-01-01'", "'2024-02-29 12:00:00.000001'"),
        "TIMESTAMPTZ": (
            "'-infinity'",
            "'0044-03-15 10:00+00 BC'",
            "'2024-02-29 12:00:00+02'",
            "'12024-01-01 00:00+00'",
        ),
        "BOOLEAN": ("true", "false"),
        "UUID": ("'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'",),
        "BYTEA": ("'\\x00ff'", "''"),
        "INET": ("'10.0.0.1'", "'10.0.0.0/8'", "'::1'"),
        "VARCHAR(4)[]": ("'{a,NULL,abcd}'", "'{}'"),
        "JSONB": ("'{\"a\": 1}'", "'null'"),
        "INTERVAL": ("'1 year 2 days'", "'-3 hours'"),
        "BIT(3)": ("B'101'",),
        "MONEY": ("'12.34'", "'-92233720368547758.07'"),
    },
    "mariadb": MYSQL,
    "mysql": MYSQL,
    "sqlite": EVERYWHERE
    | {
        "INTEGER": ("0", "9223372036854775807", "'text'", "1.5"),
        "NUMERIC(10,2)": ("1.5", "'NaN'", "123456789012.345"),
        "REAL": ("0.1", "9e999", "1"),
        "BLOB": ("x'00ff'", "'text'", "'dGV4dA=='", "1234", "x''", "''"),
        "TEXT": ("''", "'x'", "1"),
        "TIMESTAMP": ("'2024-02-29 12:00:00'", "'infinity'"),
        "BOOLEAN": ("1", "0", "5"),
    },
}
MYSQL_KEYS: Final = (
    *("NUMERIC(10,2)", "VARCHAR(20)", "CHAR(5)", "DATE", "TIME(3)", "DATETIME(6)", "TINYINT(1)", "FLOAT"),
    *("BIGINT UNSIGNED", "YEAR", "BIT(12)", "ENUM('good','Bad')", "VARBINARY(9)", "TIMESTAMP NULL", "DOUBLE PRECISION"),
)
KEYS: Final = {
    "postgresql": (
        "NUMERIC(10,2)",
        "VARCHAR(20)",
        "CHAR(5)",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "TIME",
        "REAL",
        "NUMERIC",
        "UUID",
        "BOOLEAN",
        "BYTEA",
        "INTERVAL",
        "INET",
        "MONEY",
        "BIT(3)",
        "DOUBLE PRECISION",
        "BIGINT",
    ),
    "mariadb": MYSQL_KEYS,
    "mysql": MYSQL_KEYS,
    "sqlite": (
        "INTEGER",
        "NUMERIC(10,2)",
        "VARCHAR(20)",
        "CHAR(5)",
        "DATE",
        "BLOB",
        "REAL",
        "TIMESTAMP",
        "TEXT",
        "BOOLEAN",
    ),
}
INEXACT: Final = frozenset({"DOUBLE PRECISION", "inexact"})
"""Types whose values have many texts."""
OWN: Final = {("sqlite", "NUMERIC"): "inexact", ("postgresql", "REAL"): "FLOAT"}
"""What a database's type is judged as. SQLite keeps numbers with a fraction and long ones as doubles, whatever their type is;
a REAL of PostgreSQL has single precision, and of SQLite double.
"""
ROUNDS: Final = 2
CHANGES: Final = 12
"""So many statements are run between two turns of the publisher."""


@pytest.mark.parametrize("target", ["own", "sqlite", "json", "formats"])
@pytest.mark.parametrize("seed", of_today(range(5)))
def test_a_target_has_what_the_source_has_or_a_note_says_why_not(
    engine: Engine, tmp_path: Path, target: str, seed: int
) -> None:
    name = engine.dialect.name
    # Formats take turns by seed, for each run is a dear one.
    target = FORMATS[seed % len(FORMATS)] if target == "formats" else target
    dice, types = Random(f"{seed} {target}"), TYPES[name]
    chosen = {"k0": dice.choice(KEYS[name]), "k1": "INTEGER"}
    chosen |= {f"c{number}": kind for number, kind in enumerate(dice.sample(sorted(types), 8))}
    install(engine)
    with _judging(engine) as source, _target(engine, tmp_path, target) as (output, place):
        for style in Style:
            keys = [f"{column} {chosen[column].removesuffix(' NULL')} NOT NULL" for column in ("k0", "k1")]
            columns = [*keys, *(f"{column} {kind}" for column, kind in chosen.items() if column[0] == "c")]
            source.execute(text(f"CREATE TABLE {_table(style)} ({', '.join(columns)}, PRIMARY KEY (k0, k1))"))
            source.commit()
            track(engine, [_table(style)], TriggerOptions(style=style))
        url = engine.url.render_as_string(hide_password=False)
        config = Config(source=SourceConfig(url=url), publisher=PublisherConfig(allow_loopback=True), output=(output,))
        with Publisher(config) as publisher:
            for _ in range(ROUNDS):
                for _ in range(CHANGES):
                    statement = _statement(dice, types, chosen)
                    for style in Style:
                        _run(source, statement.format(table=_table(style)).replace("%", "%%"))
                for _ in range(3):
                    publisher.run_once()
        assert source.exec_driver_sql("SELECT COUNT(*) FROM event_log WHERE status = 'N'").scalar() == 0
        for style in Style:
            kinds = {column: OWN.get((name, kind.partition("(")[0]), kind) for column, kind in chosen.items()}
            expected = _read(source, name, _table(style), kinds)
            read = READERS.get(target)
            got = read(place, _table(style), kinds) if read else _mirrored(place, style, kinds)
            _judge(kinds, expected, got, _told(source, _table(style)))


def _table(style: Style) -> str:
    return f"t_{style.value.replace('-', '_')}"


@contextmanager
def _judging(engine: Engine) -> Iterator[Connection]:
    """Open a connection with any value allowed, and times in UTC."""
    name, arguments = engine.dialect.name, {}
    if name in ("mysql", "mariadb"):
        mode = "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"
        arguments = {"init_command": f"SET SESSION sql_mode = {mode}, time_zone = '+00:00'"}
    judge = create_engine(engine.url, connect_args=arguments)
    with judge.connect() as connection:
        if name == "postgresql":
            connection.exec_driver_sql("SET SESSION timezone TO 'UTC'")
        if name == "sqlite":
            connection.exec_driver_sql("PRAGMA synchronous = OFF")
        yield connection
    judge.dispose()


@contextmanager
def _target(engine: Engine, folder: Path, target: str) -> Iterator[tuple[Any, Any]]:
    """Make an output; yield it with the place of its rows."""
    name = engine.dialect.name
    place = folder / "files"
    if target in ("json", "parquet"):
        form: Any = {"format": "change-tables", "file_format": target}
        yield FilesOutput(path=str(place), change_tables=ChangeTableSettings(mask="hex"), **form), place
        return
    if target in FORMATS:
        yield FilesOutput(path=str(place), format=target), place
        return
    url, schema = engine.url, None
    if target == "sqlite" or name == "sqlite":
        url = create_engine(f"sqlite:///{folder / 'rows.db'}").url
    elif name == "postgresql":
        schema = "copy"
        with engine.begin() as connection:
            connection.execute(text("CREATE SCHEMA copy"))
    else:
        url = url.set(database=f"{url.database}_copy")
        with engine.begin() as connection:
            connection.execute(text(f"CREATE DATABASE {url.database} CHARACTER SET utf8mb4"))
    there = create_engine(url)
    try:
        yield DatabaseOutput(url=url.render_as_string(hide_password=False), schema=schema), (there, schema)
    finally:
        there.dispose()
        if url.database != engine.url.database and name in ("mysql", "mariadb") and target == "own":
            with engine.begin() as connection:
                connection.execute(text(f"DROP DATABASE {url.database}"))


def _statement(dice: Random, types: Types, chosen: dict[str, str]) -> str:
    """Draw a change of some rows; the database may refuse it, as a key already there."""

    def literal(column: str) -> str:
        values = types[chosen[column]]
        if column == "k0" and chosen[column] == "BLOB":
            values = values[:-1]  # an empty text beside an empty BLOB: two rows whose key is one
        written = "NULL" if column[0] == "c" and dice.random() < 0.2 else dice.choice(values)
        return written.replace("{", "{{").replace("}", "}}")

    where = f"k1 % 3 = {dice.randrange(3)}"
    columns = dice.sample([column for column in chosen if column[0] == "c"], 3)
    if dice.random() < 0.15:
        columns = ["k0"]
    sets = ", ".join(f"{column} = {literal(column)}" for column in columns)
    values = ", ".join(str(dice.randrange(6)) if column == "k1" else literal(column) for column in chosen)
    insert, update = f"INSERT INTO {{table}} VALUES ({values})", f"UPDATE {{table}} SET {sets} WHERE {where}"
    return dice.choices([insert, update, f"DELETE FROM {{table}} WHERE {where}"], [6, 4, 1])[0]


def _run(connection: Connection, statement: str) -> None:
    try:
        connection.exec_driver_sql(statement)
        connection.commit()
    except Exception:  # noqa: BLE001  # each driver refuses in its own way
        connection.rollback()


def _read(connection: Connection, name: str, table: str, chosen: dict[str, str], *, mirror: bool = False) -> Rows:
    """Read a table's rows, as texts where a driver has no value for all of a type."""
    read = ", ".join([_shown(name, column, kind, mirror=mirror) for column, kind in chosen.items()])
    rows = connection.exec_driver_sql(f"SELECT {read} FROM {table}").all()
    return _keyed(chosen, [dict(zip(chosen, row, strict=True)) for row in rows])


def _shown(name: str, column: str, kind: str, *, mirror: bool) -> str:
    if name == "sqlite":
        return f"CAST({column} AS BLOB)" if kind == "BLOB" else column
    if name == "postgresql":
        # As the type writes it, which its cast does not; in a key, blanks at the end do not count.
        if (kind == "INET" or (kind == "CHAR(5)" and column != "k0")) and not mirror:
            return f"CASE WHEN {column} IS NOT NULL THEN concat({column}) END"
        return f"{column}::numeric::text" if kind == "MONEY" else f"{column}::text"
    if kind == "POINT" and not mirror:
        return f"CONCAT(IF(ST_SRID({column}), CONCAT('SRID=', ST_SRID({column}), ';'), ''), ST_AsText({column}))"
    if kind.startswith(("DATE", "TIME")):
        return f"CAST({column} AS CHAR)"
    if kind in ("BIT(12)", "FLOAT"):  # a FLOAT is shown by six digits
        return f"{column} + 0e0" if kind == "FLOAT" else f"{column} + 0"
    return column


def _keyed(chosen: dict[str, str], rows: list[Cells]) -> Rows:
    plain = [{column: _plain(row[column], kind) for column, kind in chosen.items()} for row in rows]
    return {(row["k0"], row["k1"]): row for row in plain}


def _mirrored(place: tuple[Engine, str | None], style: Style, chosen: dict[str, str]) -> Rows:
    there, schema = place
    mirrors = create_engine(there.url)
    Mirrors(mirrors, schema, schema).apply([_table(style)])
    mirrors.dispose()
    table = f"{schema}.{_table(style)}__mirror" if schema else f"{_table(style)}__mirror"
    with _judging(there) as connection:
        # A file of SQLite has no type but those of its own.
        own = {column: "BLOB" if "BLOB" in kind else kind for column, kind in chosen.items()}
        return _read(connection, there.dialect.name, table, own, mirror=True)


def _read_files(folder: Path, table: str, chosen: dict[str, str]) -> Rows:
    """Apply the rows of files one after the other."""
    # In the order of their names, which begin with the numbers of the changes.
    files = sorted(file for file in folder.rglob("*.*") if file.parent.name.endswith(f"{table}__ct"))
    told = [row for file in files if file.suffix in (".json", ".parquet") for row in _rows_of(file)]
    assert told
    rows: Rows = {}
    headers = ("change_seq", "change_oper", "change_mask")
    mine = [row for row in told if f"header__{headers[0]}" in row and row.get("k1") is not None]
    for row in sorted(mine, key=lambda row: str(row["header__change_seq"])):
        [(key, cells)] = _keyed(chosen, [row]).items()
        oper, names = row["header__change_oper"], list(row)
        if oper == "D":
            rows.pop(key, None)
        elif oper == "I":
            rows[key] = cells
        elif oper == "U":
            bits = int(row["header__change_mask"], 16)
            changed = {name for index, name in enumerate(names) if bits >> index & 1 and name in chosen}
            former = rows.setdefault(key, dict.fromkeys(chosen) | {"k0": key[0], "k1": key[1]})
            former.update({name: cells[name] for name in changed})
    return rows


def _rows_of(file: Path) -> list[Cells]:
    if file.suffix == ".json":
        return [json.loads(line) for line in file.read_text().splitlines()]
    table: Any = parquet.read_table(file)
    rows: list[Cells] = table.to_pylist()
    return [{name: _written(value) for name, value in row.items()} for row in rows]


def _written(value: Any) -> Any:
    """Write a value of Parquet as text, with times in UTC; leave bytes and numbers as they are."""
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None))
    return str(value) if isinstance(value, dt.date | dt.time) else value


def _read_messages(folder: Path, table: str, chosen: dict[str, str]) -> Rows:
    """Apply messages, each with only the columns in its mask."""
    rows: Rows = {}
    lines = [line for file in sorted(folder.glob("[!.]*.jsonl")) for line in file.read_text().splitlines()]
    told = [message["value"] for message in map(json.loads, lines) if message["topic"].endswith(table)]
    assert told
    for message in told:
        headers, cells = message["headers"], message["data"]
        known = int(headers["columnMask"], 16)
        told_columns = {name for index, name in enumerate(chosen) if known >> index & 1}
        _apply(rows, chosen, headers["operation"], cells, told_columns)
    return rows


def _read_xds(folder: Path, table: str, chosen: dict[str, str]) -> Rows:
    """Apply documents; each attribute has one value or none."""
    rows: Rows = {}
    for file in sorted(folder.glob("[!.]*.xml")):
        [element] = [*cast("ET.Element", ET.parse(file).getroot().find("input"))]  # noqa: S314  # our own
        if element.get("class-name") != table:
            continue
        written = (element.findtext("association") or "").rpartition(",table=")[0]
        cells: Cells = {name.casefold(): value for name, value in TableKey.parse(written).columns.items()}
        if chosen["k0"] in BINARY:
            cells["k0"] = base64.b64decode(cells["k0"])
        for attribute in element.findall("add-attr") + element.findall("modify-attr"):
            name, value = str(attribute.get("attr-name")), attribute.find("add-value/value")
            if attribute.tag == "add-attr":
                value = attribute.find("value")
            cells[name] = None if value is None else value.text or ""
            if value is not None and value.get("type") == "octet" and chosen[name] in BINARY:
                cells[name] = base64.b64decode(cells[name])
        operation = {"add": "INSERT", "modify": "UPDATE", "delete": "DELETE"}[element.tag]
        _apply(rows, chosen, operation, dict.fromkeys(chosen) | cells, set(cells))
    return rows


def _apply(rows: Rows, chosen: dict[str, str], operation: str, cells: Cells, told: set[str]) -> None:
    [(key, plain)] = _keyed(chosen, [cells]).items()
    if operation == "DELETE":
        rows.pop(key, None)
        return
    former = dict.fromkeys(chosen) | {"k0": key[0], "k1": key[1]}
    rows[key] = (former if operation == "INSERT" else rows.get(key, former)) | {name: plain[name] for name in told}


READERS: Final = {"json": _read_files, "parquet": _read_files, "messages": _read_messages, "xds": _read_xds}
FORMATS: Final = ("parquet", "messages", "xds")
BINARY: Final = frozenset({"BLOB", "BYTEA", "VARBINARY(9)"})


Told = list[tuple[TableKey, str, str, int]]


def _told(connection: Connection, table: str) -> Told:
    """Read the notes on the rows of a table's objects."""
    rows = connection.exec_driver_sql(
        "SELECT l.table_key, o.status, o.note, l.event_type FROM event_log l"
        f" JOIN event_log_outcome o ON o.record_id = l.record_id WHERE o.status <> 'S' AND l.table_name LIKE '%%{table}'"
    ).all()
    return [(TableKey.parse(key), status, note or "", kind) for key, status, note, kind in rows]


def _judge(chosen: dict[str, str], source: Rows, target: Rows, told: Told) -> None:
    for key in source.keys() | target.keys():
        about = [(status, note, kind) for parsed, status, note, kind in told if _key_of(parsed, chosen) == key]
        if key not in source:
            assert any(status == "E" and event == 4 for status, _, event in about), (
                f"{key} of {chosen['k0']} stays; told {about}"
            )
            continue
        if key not in target:
            assert any(status == "E" for status, _, _ in about), f"{key} of {chosen['k0']} is missing; told {about}"
            continue
        for column, kind in chosen.items():
            if target[key][column] != source[key][column]:
                said = [note for status, note, _ in about if status == "E" or _speaks_of(note, column)]
                what = f"{column} {kind} of {key}: {source[key][column]!r} became {target[key][column]!r}"
                assert said, f"{what}; told {about}"


def _speaks_of(note: str, column: str) -> bool:
    # A note names three values, and how many more it left out.
    return f"'{column}'" in note or f"column {column}" in note or re.search(r"; and \d+ more\b", note) is not None


def _key_of(parsed: TableKey, chosen: dict[str, str]) -> tuple[Any, ...]:
    texts = {name.casefold(): value for name, value in parsed.columns.items()}
    first = texts["k0"]
    if chosen["k0"] in BINARY:
        first = base64.b64decode(first).hex()
    return _plain(first, chosen["k0"]), _plain(texts["k1"], "INTEGER")


def _plain(value: Any, kind: str) -> Any:
    """Write a value in one way: numbers and times have many."""
    if value is None:
        return None
    if isinstance(value, bytes | bytearray):
        return value.hex()
    written = str(int(value)) if isinstance(value, bool) else str(value)
    if kind in ("BYTEA", "BLOB", "VARBINARY(9)"):
        return written.removeprefix("\\x").lower()
    if kind in ("FLOAT", "REAL") and not written.startswith("'"):
        return _single(written) if kind == "FLOAT" else _number(written, exact=False)
    if kind in ("BOOLEAN", "TINYINT(1)"):  # XDS has both as true and false
        return {"true": "1", "false": "0"}.get(written.lower(), written)
    if kind.startswith(("DATE", "TIME")):
        return _time(written)
    if kind.startswith("CHAR"):
        return written.rstrip(" ")
    if kind in INEXACT:
        return _number(written, exact=False)
    return _number(written) if not kind.startswith(("VARCHAR", "TEXT", "LONGTEXT", "ENUM")) else written


def _number(written: str, *, exact: bool = True) -> str:
    try:
        number = Decimal(written) if exact else Decimal(repr(float(written)))
    except (InvalidOperation, ValueError):
        return written
    if not number.is_finite():
        return str(number)
    return format(abs(number) if not number else number.normalize(), "f")


def _single(written: str) -> str:
    """Round a number to single precision."""
    return str(struct.unpack("f", struct.pack("f", float(written)))[0])


def _time(written: str) -> str:
    """Write a time without needless parts: a T, zeros of a fraction, a midnight, the zone UTC."""
    bc = " BC" if written.endswith(" BC") else ""
    written = written.removesuffix(" BC").replace("T", " ").removesuffix("+00")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return written.removesuffix(" 00:00:00") + bc
