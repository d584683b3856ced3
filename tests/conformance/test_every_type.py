"""Columns of every type that Debezium's documentation names, captured in every style: mirrors, files and documents have what
the table has, or a note says of which columns they have not. The judge reads the table as its types write their values.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, cast
from xml.etree import ElementTree as ET

import pytest
from pyarrow import parquet
from sqlalchemy import Connection, Engine, create_engine

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
from tests.debezium.beside import run_raw
from tests.debezium.columns import MARIADB, POSTGRESQL, POSTGRESQL_MADE, Case

Cells = dict[str, Any]
Rows = dict[int, Cells]
SHAPES: Final = ("point", "geometry", "linestring", "polygon", "multi")
UTC: Final = {"postgresql": "SET SESSION timezone TO 'UTC'", "mysql": "SET SESSION time_zone = '+00:00'"}


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return an engine on each database that Debezium's engine is asked about, too."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("target", ["own", "sqlite", "json", "parquet", "messages", "xds"])
def test_no_value_of_any_type_is_lost_or_changed_without_a_word(engine: Engine, tmp_path: Path, target: str) -> None:
    is_postgresql = engine.dialect.name == "postgresql"
    cases = POSTGRESQL if is_postgresql else MARIADB
    run_raw(engine, *(POSTGRESQL_MADE if is_postgresql else ()))
    install(engine)
    columns = "".join(f", {case.name} {case.type} NULL" for case in cases)
    for style in Style:
        run_raw(engine, f"CREATE TABLE {_table(style)} (id integer NOT NULL PRIMARY KEY{columns})")
        track(engine, [_table(style)], TriggerOptions(style=style))
    output = _output(engine, tmp_path, target)
    url = engine.url.render_as_string(hide_password=False)
    config = Config(source=SourceConfig(url=url), publisher=PublisherConfig(allow_loopback=True), output=(output,))
    with Publisher(config) as publisher:
        for statements in _change(cases):
            for style in Style:
                run_raw(engine, *(statement.replace("{table}", _table(style)) for statement in statements))
            for _ in range(2):
                publisher.run_once()
    with engine.connect() as source:
        source.exec_driver_sql(UTC[engine.dialect.name])
        assert source.exec_driver_sql("SELECT COUNT(*) FROM event_log WHERE status = 'N'").scalar() == 0
        found = {style: _read(source, _table(style), cases) for style in Style}
        told = {style: _read_notes(source, _table(style)) for style in Style}
    got = _read_target(output, target, tmp_path, cases)
    for style in Style:
        assert found[style].keys() == got[style].keys()
        wrong = [
            f"{case.type} {number}: {row[case.name]!r} became {got[style][number].get(case.name)!r}"
            for number, row in found[style].items()
            for case in cases
            if not _is_same(case.type, row[case.name], got[style][number].get(case.name))
            and not _speaks_of(told[style][number], case.name)
        ]
        assert wrong == [], style


def _table(style: Style) -> str:
    return f"kinds_{style.value.replace('-', '_')}"


def _output(engine: Engine, folder: Path, target: str) -> Any:
    form: Any = {"path": str(folder / "files")}
    if target in ("json", "parquet"):
        mask = ChangeTableSettings(mask="hex")
        return FilesOutput(**form, format="change-tables", file_format=cast("Any", target), change_tables=mask)
    if target in FILES:
        return FilesOutput(**form, format=cast("Any", target))
    url = engine.url.render_as_string(hide_password=False)
    return DatabaseOutput(url=url if target == "own" else f"sqlite:///{folder / 'rows.db'}")


def _change(cases: Sequence[Case]) -> Iterator[list[str]]:
    """Insert a row of each value and one of NULLs; give it the first values, and take all from another; then delete one."""
    count = max(len(case.values) for case in cases)
    names = ", ".join(case.name for case in cases)
    inserts = []
    for number in (*range(count), count + 1):
        cells = ", ".join(case.values[min(number, len(case.values) - 1)] for case in cases)
        inserts.append(f"INSERT INTO {{table}} (id, {names}) VALUES ({number}, {cells})")
    yield [*inserts, f"INSERT INTO {{table}} (id) VALUES ({count})"]
    first = ", ".join(f"{case.name} = {case.values[0]}" for case in cases)
    nothing = ", ".join(f"{case.name} = NULL" for case in cases)
    yield [f"UPDATE {{table}} SET {first} WHERE id = {count}", f"UPDATE {{table}} SET {nothing} WHERE id = 0"]
    yield [f"DELETE FROM {{table}} WHERE id = {count + 1}"]


def _read(connection: Connection, table: str, cases: Sequence[Case]) -> Rows:
    """Read a table's values as their types write them."""
    shown = [_show(connection.dialect.name, case, is_mirror=table.endswith("__mirror")) for case in cases]
    rows = connection.exec_driver_sql(f"SELECT id, {', '.join(shown)} FROM {table}").all()
    return {row[0]: dict(zip([case.name for case in cases], row[1:], strict=True)) for row in rows}


def _show(database: str, case: Case, *, is_mirror: bool) -> str:
    name = case.name
    if database == "postgresql":  # not as its cast to text, which inet writes in another way
        return f"CASE WHEN {name} IS NOT NULL THEN concat({name}) END"
    if database == "sqlite":
        return name
    if case.type.startswith(SHAPES) and not is_mirror:
        return f"CONCAT(IF(ST_SRID({name}), CONCAT('SRID=', ST_SRID({name}), ';'), ''), ST_AsText({name}))"
    if case.type.startswith("bit") and not is_mirror:
        return f"{name} + 0"
    if case.type.startswith(("date", "time")):
        return f"CAST({name} AS CHAR)"
    return f"{name} + 0e0" if case.type.startswith("float") else name  # which is shown by six digits


def _read_notes(connection: Connection, table: str) -> dict[int, str]:
    """Read what is said of each row."""
    told: dict[int, str] = defaultdict(str)
    for key, note in connection.exec_driver_sql(
        "SELECT l.table_key, o.note FROM event_log l JOIN event_log_outcome o ON o.record_id = l.record_id"
        f" WHERE l.table_name LIKE '%%{table}' AND o.status <> 'S' AND o.note IS NOT NULL"
    ):
        told[int(TableKey.parse(key).columns["id"])] += note
    return told


def _speaks_of(note: str, column: str) -> bool:
    # A note names three values, and how many more it left out.
    return f"'{column}'" in note or re.search(r"; and \d+ more\b", note) is not None


def _read_target(output: Any, target: str, folder: Path, cases: Sequence[Case]) -> dict[Style, Rows]:
    if target in FILES:
        return {style: FILES[target](folder / "files", _table(style)) for style in Style}
    mirrors = create_engine(output.url)
    Mirrors(mirrors).apply()
    with mirrors.connect() as connection:
        if connection.dialect.name in UTC:
            connection.exec_driver_sql(UTC[connection.dialect.name])
        found = {style: _read(connection, f"{_table(style)}__mirror", cases) for style in Style}
    mirrors.dispose()
    return found


def _read_files(folder: Path, table: str) -> Rows:
    told: list[Cells] = []
    for file in sorted(file for file in folder.rglob("*.*") if file.parent.name.endswith(f"{table}__ct")):
        if file.suffix == ".json":
            told += [json.loads(line) for line in file.read_text().splitlines()]
        elif file.suffix == ".parquet":
            told += cast("Any", parquet.read_table(file)).to_pylist()
    rows: Rows = {}
    for row in sorted(told, key=lambda row: str(row["header__change_seq"])):
        operation = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}.get(row["header__change_oper"])
        if operation is not None:
            _apply(rows, row["id"], operation, row, int(row["header__change_mask"], 16))
    return rows


def _read_messages(folder: Path, table: str) -> Rows:
    rows: Rows = {}
    lines = [line for file in sorted(folder.glob("[!.]*.jsonl")) for line in file.read_text().splitlines()]
    for message in map(json.loads, lines):
        if message["topic"].endswith(table):
            headers, cells = message["value"]["headers"], message["value"]["data"]
            _apply(rows, cells["id"], headers["operation"], cells, int(headers["columnMask"], 16))
    return rows


def _apply(rows: Rows, number: int, operation: str, cells: Cells, mask: int) -> None:
    """Apply a change, with only the columns in its mask."""
    if operation == "DELETE":
        del rows[number]
        return
    told = {name: value for index, (name, value) in enumerate(cells.items()) if mask >> index & 1}
    rows[number] = (rows[number] if operation == "UPDATE" else {}) | told


def _read_xds(folder: Path, table: str) -> Rows:
    rows: Rows = {}
    for file in sorted(folder.glob("[!.]*.xml")):
        [element] = [*cast("ET.Element", ET.parse(file).getroot().find("input"))]  # noqa: S314  # our own
        if element.get("class-name") != table:
            continue
        number = int(str(element.findtext("association")).partition(",")[0].removeprefix("id="))
        if element.tag == "delete":
            del rows[number]
            continue
        row = rows.setdefault(number, {})
        for attribute in element.findall("add-attr") + element.findall("modify-attr"):
            value = attribute.find("value" if attribute.tag == "add-attr" else "add-value/value")
            cell: Any = None if value is None else value.text or ""
            is_octet = value is not None and value.get("type") == "octet"
            row[str(attribute.get("attr-name"))] = base64.b64decode(cell) if is_octet else cell
    return rows


FILES: Final[dict[str, Callable[[Path, str], Rows]]] = {
    "json": _read_files,
    "parquet": _read_files,
    "messages": _read_messages,
    "xds": _read_xds,
}


def _is_same(kind: str, expected: Any, got: Any) -> bool:
    """Tell whether two are one value: numbers, times and bytes have many texts."""
    if expected is None or got is None:
        return expected is got
    return _write(kind, expected) == _write(kind, got)


def _write(kind: str, value: Any) -> str:
    """Write a value in one way."""
    if isinstance(value, bytes):
        return value.hex()
    written = str(int(value)) if isinstance(value, bool) else str(value)
    if kind.endswith("[]"):
        return written
    if kind.startswith(("bytea", "binary", "varbinary")) or kind.endswith("blob"):
        return written.removeprefix("\\x").lower()
    if kind in ("boolean", "bit(1)"):
        return {"t": "1", "true": "1", "f": "0", "false": "0"}.get(written, written)
    if kind.startswith(("date", "time", "moment")):
        return _write_time(written)
    if kind in ("money", "percent") or kind.startswith(("num", "dec", "double", "real", "float", "tiny")):
        return _write_number(kind, written.replace("$", "").replace(",", ""))
    return written


def _write_number(kind: str, written: str) -> str:
    if kind in ("double precision", "real") or kind.startswith(("double", "float")):
        number = float(written)
        return repr(struct.unpack("f", struct.pack("f", number))[0] if kind.startswith(("float", "real")) else number)
    try:
        exact = Decimal(written)
    except InvalidOperation:
        return written
    return format(exact.normalize() if exact else abs(exact), "f")


def _write_time(written: str) -> str:
    """Write a time without needless parts: a T, zeros of a fraction, a midnight, the zone UTC."""
    era = " BC" if written.endswith(" BC") else ""
    written = re.sub(r"\+00(:00)?$", "", written.removesuffix(" BC").replace("T", " "))
    if "." in written and "+" not in written:
        written = written.rstrip("0").rstrip(".")
    return written.removesuffix(" 00:00:00") + era
