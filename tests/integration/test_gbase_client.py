"""IBM's change stream client and its driver beside eventlog: records, values, transactions, and documents of the publisher."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eventlog.core.model import Value
from eventlog.sources.gbase.files import chunks_of
from eventlog.sources.gbase.layout import CapturedLayout, ColumnType, ValueForm, layout_of
from eventlog.sources.gbase.reader import RecordReader
from eventlog.sources.gbase.records import ROWS, CdcRecord, RecordFrame, frames
from eventlog.sources.gbase.rows import FIXED_HEADER_BYTES, GBaseRowReader
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.values import TextRules
from eventlog_streams_tools.gbase.emulator import CUSTOMER, INFORMIX, PURCHASE, record, row_record, shop, table_record
from tests.gbase_client import OtherReader, Told, classpath, framed, session
from tests.gbase_client.comparing import read_by_both, read_by_us, split
from tests.support.gbase_server import GBaseServer
from tests.support.gbase_streams import SEED, captured
from tests.support.servers import absent
from tests.support.strategies_gbase import rows, tables

CAPTURED = {
    "stores:shop.customer": "id,born,active,kind,name,note",
    "stores:shop.purchase": "id,customer,price,weight,at,place",
}
DAY = dt.datetime(2025, 3, 23, 10, 57, 19, 254_000)
EXACTLY = ("boolean", "lvarchar", "money(8)", "datetime year to fraction", "datetime month to day", "date")
SPELLED = [
    ("numeric(4,0)", "c10500", Decimal(5)),
    ("dec(4,0)", "c10500", Decimal(5)),
    ("double precision", "3ff8000000000000", 1.5),
    ("real", "3fc00000", 1.5),
    ("char", "61", "a"),
    ("character(1)", "61", "a"),
]
"""Names of types which the client's driver does not know, with a value."""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classpath(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def client(classes: str) -> Iterator[OtherReader]:
    reader = OtherReader(classes, "Reader")
    yield reader
    reader.close()


def rows_of(text: str, *values: Value) -> list[RecordFrame]:
    """A table with a column of that type, and rows with its values and a column behind it that must come out whole."""
    layout = layout_of(
        7, f"c1 {text}, c2 varchar(5,0)" if text != "lvarchar" else "c0 integer, c1 lvarchar, c2 varchar(5)"
    )
    rest: dict[str, Value] = {"c0": 1, "c2": "whole"}
    made = (row_record(CdcRecord.INSERT, 9, 3, layout, {**rest, "c1": value}, INFORMIX) for value in values)
    return split([table_record(layout), *made])


def shifted(kind: ColumnType, value: Value) -> bool:
    """Whether Java's calendar has no such day: where year or month are missing it takes some, and in 1582 ten are left out."""
    text = str(value)
    if kind.form not in (ValueForm.DATE, ValueForm.DATETIME) or value is None:
        return False
    match kind.first:
        case "month":
            return text.startswith("02-29")
        case "day":
            return text > "28"
    return "1582-10-05" <= text[:10] < "1582-10-15"


def test_a_shop_is_read_alike(client: OtherReader) -> None:
    server = GBaseServer(wide=False)
    shop(400, emulator=server)
    stream = split(captured(server, CAPTURED))
    found = read_by_both(client, stream)
    assert [other for _, other in found] == [own for own, _ in found]
    assert {frame.number for frame in stream} == set(CdcRecord) - {CdcRecord.TRUNCATE, CdcRecord.ERROR}


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_table_and_any_row_is_read_alike(client: OtherReader, data: st.DataObject) -> None:
    drawn = data.draw(tables())
    layout = CapturedLayout(
        label=drawn.label, columns=tuple(one for one in drawn.columns if one.type.form is not ValueForm.INTERVAL)
    )
    assume(layout.columns)
    values = data.draw(rows(layout))
    assume(not any(shifted(column.type, values[column.name]) for column in layout.columns))
    row = row_record(CdcRecord.UPDAFT, 9, 3, layout, values, INFORMIX)
    _, (own, other) = read_by_both(client, split([table_record(layout), row]))
    assert other == own


@pytest.mark.parametrize(
    "text, values",
    [
        ("smallint", [None, 0, -1, 32_767, -32_767]),
        ("serial", [None, 1, 2**31 - 1, -(2**31) + 1]),
        ("bigserial", [None, 1, 2**63 - 1, -(2**63) + 1]),
        ("serial8", [None, 0, 5_000_000_000, -5_000_000_000, 2**63 - 1]),
        ("float", [None, 0.0, -0.0, 5e-324, 1.7976931348623157e308, float("inf")]),
        ("smallfloat", [None, 0.0, 1.401298464324817e-45, 3.4028234663852886e38]),
        ("decimal(8,2)", [None, Decimal("1234.56"), Decimal("-1234.56"), Decimal(-100), Decimal("0.05"), Decimal(0)]),
        ("decimal(32,0)", [None, Decimal("9" * 32), Decimal("-" + "9" * 32)]),
        ("decimal(16)", [None, Decimal("1E-100"), Decimal("-1.234567890123456E+100")]),
        ("money(16,2)", [None, Decimal("-5.25")]),
        ("date", [None, dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1899, 12, 30), dt.date(9999, 12, 31)]),
        ("datetime year to fraction(5)", [None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_990)]),
        ("datetime year to day", [None, dt.date(99, 12, 31)]),
        ("datetime hour to minute", [None, dt.time(0, 9), dt.time(0, 0)]),
        ("datetime month to day", [None, "02-28"]),
        ("boolean", [None, True, False]),
        ("nchar(6)", [None, "", "é", "北京"]),
        ("lvarchar", [None, "", "é", "x" * 2_000]),
        ("clob", [None, bytes(4) + bytes(range(72))]),
    ],
)
def test_the_ends_of_a_type_are_read_alike(client: OtherReader, text: str, values: list[Value]) -> None:
    found = read_by_both(client, rows_of(text, *values))
    assert [other for _, other in found] == [own for own, _ in found]
    assert len(found) == len(values) + 1


def of_bytes(client: OtherReader, text: str, value: str) -> tuple[Any, Any]:
    """The value of a column's bytes as eventlog reads them, and as the client says it or why it does not."""
    layout, data = layout_of(7, f"c1 {text}"), bytes.fromhex(value)
    sizes = struct.pack(f">{len(layout.varying)}I", *[len(data)] * len(layout.varying))
    row = record(CdcRecord.INSERT, 9, 3, 7, 0, sizes=sizes, payload=data)
    own = GBaseRowReader(layout, TextRules(), "auto")(row, FIXED_HEADER_BYTES + len(sizes))["c1"]
    table, other = client.read([table_record(layout), row])
    return own, other["values"]["c1"] if "values" in other else table.get("failed", other.get("failed"))


def test_the_published_dump_is_read_alike_but_for_the_width_of_its_varchar(client: OtherReader) -> None:
    """The dump's VARCHAR has a length of two bytes, as newer GBase has it; the client takes the first for the length."""
    stream = split(chunks_of(SEED))
    found = read_by_both(client, stream)
    assert [own["type"] for own, _ in found] == ["METADATA", "TIMEOUT", "TIMEOUT", "BEGIN", "INSERT", "COMMIT"]
    [(own, other)] = [pair for pair, frame in zip(found, stream, strict=True) if frame.number in ROWS]
    assert own.pop("values") == {"c1": 15, "c2": "abcabcabc"}
    assert other.pop("values") == {"c1": 15, "c2": ""}
    assert [other for _, other in found] == [own for own, _ in found]


@pytest.mark.parametrize(
    "text, value, own, other",
    [
        ("boolean", "0100", None, "false"),  # it looks at the second byte only
        ("boolean", "01ff", None, None),
        ("boolean", "00ff", None, None),
        ("lvarchar", "0003006100", "a\0", "a"),  # it drops a last NUL
        ("money(8)", "c305000000", Decimal("50000.00"), "50000"),  # takes one without a scale for floating
        ("datetime year to fraction", "c7141903170a39131928", DAY, "2025-03-23 10:57:19.25"),  # for fraction(2)
        ("datetime month to day", "c5021d", "02-29", "03-01"),  # it takes a year that has no such day
        ("date", "fffe3b68", dt.date(1582, 10, 10), "1582-10-20"),  # Java leaves ten days out
        ("interval hour(2) to minute", "c30902", "9:02", "Unsupported column type"),
        *((text, value, own, "Cannot find the SQLTypeName") for text, value, own in SPELLED),
    ],
)
def test_values_that_the_client_reads_otherwise(
    client: OtherReader, text: str, value: str, own: Value, other: str | None
) -> None:
    by_us, by_it = of_bytes(client, text, value)
    assert by_us == own
    assert by_it == other if other is None or text in EXACTLY else by_it.startswith(other)


COLUMNS = {CUSTOMER: "id,born,active,kind,name,note", PURCHASE: "id,customer,price,weight,at,place"}
TABLES = [f"{table}={columns}" for table, columns in COLUMNS.items()]
Call = list[Any]
"""A statement, and how each of its arguments is bound."""


def their_calls(told: list[Told]) -> tuple[list[Call], list[Call]]:
    """The same of the client, whose reading lies between."""
    calls: list[list[Call]] = [[], []]
    ended = False
    for line in told:
        ended = ended or "end" in line
        if "call" in line:
            calls[ended].append(line["call"])
    return calls[0], calls[1]


def replayed(server: GBaseServer, calls: list[Call]) -> int:
    """Makes the client's calls at the emulator, which refuses none; the number of the session."""
    for text, *bound in calls:
        [function] = re.findall(r"cdc_(\w+)\(", text)
        answer = getattr(server, function)(*(value for _, value in bound))
        assert answer == (101 if function == "opensess" else 0)
    return 101


def read_one_by_one(server: GBaseServer, number: int) -> Iterator[bytes]:
    """What the client's reads give: one record each, as it has asked for."""
    while not server.idle(number):
        yield server.read(number, 10_240)


def test_the_same_transactions_come_out(classes: str) -> None:
    """The emulator takes the client's calls, and its records give the transactions that eventlog puts together.

    Those that were rolled back and what a savepoint took back are in neither; of TRUNCATE the client's do not tell.
    """
    server = GBaseServer(wide=False)
    shop(300, emulator=server)
    tx = server.begin()
    server.row(CdcRecord.TRUNCATE, tx, CUSTOMER, {})
    server.update(tx, CUSTOMER, _customer(1), _customer(2))
    server.end(tx)
    begun, _ = their_calls(session(classes, TABLES, []))
    begun[-1][-1] = ["setLong", 1]  # from the beginning of the log, and not from now
    number = replayed(server, begun[1:])
    reads = list(read_one_by_one(server, number))
    theirs = [
        (end["seq"], end["txid"], [(row["type"], row["seq"], row["label"]) for row in rows])
        for end, rows in (line["commit"] for line in session(classes, TABLES, reads) if "commit" in line)
    ]
    ours = [one for one in _transactions(reads) if any(kind != "TRUNCATE" for kind, _, _ in one[2])]
    assert ours[-1][2].pop(0)[0] == "TRUNCATE"
    assert theirs == ours
    assert len(theirs) > 30
    kinds = {CdcRecord(frame.number) for frame in split(reads)}
    assert kinds >= {CdcRecord.RBTX, CdcRecord.DISCARD, CdcRecord.TRUNCATE}
    assert all(len(list(chain.from_iterable(frames([read])))) == 1 for read in reads)


def _customer(number: int) -> dict[str, Any]:
    return {"id": number, "born": None, "active": True, "kind": "priv", "name": "Zoë", "note": None}


def _transactions(reads: list[bytes]) -> Iterator[tuple[int, int, list[tuple[str, int, str]]]]:
    """Commit, number and records of each transaction that eventlog puts together."""
    layouts: dict[int, Any] = {}
    told = {frame.offset: read_by_us(frame, layouts) for frame in split(reads)}
    numbers = {one["seq"]: one["txid"] for one in told.values() if one["type"] == "COMMIT"}
    for committed in RecordReader(GBaseSettings()).read(split(reads)):
        rows = [(told[frame.offset]["type"], seq, str(label)) for _, seq, label, frame in committed.items]
        yield committed.seq, numbers[committed.seq], rows


PUBLISHED = {**COLUMNS, PURCHASE: "id,customer,price,weight,at,lasting,place"}


def publish(place: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the publisher with a source of GBase streams into a folder of documents."""
    names = {table: names.split(",") for table, names in PUBLISHED.items()}
    columns = ", ".join(f'"{table}" = {json.dumps(columns)}' for table, columns in names.items())
    (place / "eventlog.toml").write_text(
        f"""[source]
kind = "gbase"
[source.gbase]
{source}
tables = {{ "1" = "{CUSTOMER}", "2" = "{PURCHASE}" }}
columns = {{ {columns} }}
keys = {{ "shop.customer" = ["id"], "shop.purchase" = ["id"] }}
marks = "{place / "marks.json"}"
[publisher]
batch_size = 128
[[output]]
sink = "files"
path = "{place / "out"}"
"""
    )
    command = [sys.executable, "-m", "eventlog", "run", "--config", str(place / "eventlog.toml"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=300, check=False)


def documents(place: Path) -> list[str]:
    return [path.read_text() for path in sorted((place / "out").glob("*.xml"))]


@pytest.mark.in_turn
def test_the_publisher_reads_a_session_through_ibms_class_as_it_reads_the_file(classes: str, tmp_path: Path) -> None:
    if find_spec("jpype") is None:
        absent("jdbc", "the package JPype1 is not installed")
    live, filed = tmp_path / "live", tmp_path / "filed"
    live.mkdir()
    filed.mkdir()
    server = GBaseServer(wide=False)
    shop(120, emulator=server)
    reads = captured(server, PUBLISHED)
    (live / "reads").write_bytes(framed([*reads, reads[-1]]))
    (filed / "stream").write_bytes(b"".join(reads))
    jars = json.dumps(classes.split(":"))
    source = f'driver = "jdbc"\nurl = "jdbc:offline:{live}"\nclasspath = {jars}\nserver = "emulated"'
    run = publish(live, source, "--until-empty")
    assert run.returncode == 0, run.stderr
    run = publish(filed, f'path = "{filed / "stream"}"', "--until-empty")
    assert run.returncode == 0, run.stderr
    assert len(documents(live)) > 0
    assert documents(live) == documents(filed)
    calls = [json.loads(line) for line in (live / "calls").read_text().splitlines()]
    assert calls[0][0] == "EXECUTE FUNCTION informix.cdc_opensess(?, ?, ?, ?, ?, ?)"
    assert calls[-1] == ["EXECUTE FUNCTION informix.cdc_closesess(?)", ["setInt", 101]]
