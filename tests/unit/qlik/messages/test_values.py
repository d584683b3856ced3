"""Types and values in messages: what each SQL type is called, how JSON and Avro write it, and what does not fit."""

from __future__ import annotations

import datetime as dt
import io
import re
from decimal import Decimal
from typing import Any

import avro.io
import avro.schema
import fastavro
import msgspec
import pytest

from eventlog.core.model import Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.typemap import QlikType, qlik_type
from tests.support.messages import change, messages, refusals

TYPES = {
    "boolean": QlikType("BOOLEAN", 1),
    "tinyint(1)": QlikType("BOOLEAN", 1),
    "tinyint": QlikType("INT1", 3),
    "smallint unsigned": QlikType("UINT2", 5),
    "int(10) unsigned": QlikType("UINT4", 10),
    "integer": QlikType("INT4", 10),
    "bigint": QlikType("INT8", 19),
    "BIGINT UNSIGNED": QlikType("UINT8", 20),
    "NUMBER(10)": QlikType("NUMERIC", 0, 10, 0),
    "numeric(10, 2)": QlikType("NUMERIC", 0, 10, 2),
    "numeric": QlikType("NUMERIC"),
    "NUMBER(*,0)": QlikType("NUMERIC", 0, 38, 0),
    "NUMBER(*)": QlikType("NUMERIC"),
    "NUMBER(5,-2)": QlikType("NUMERIC"),
    "money": QlikType("NUMERIC", 0, 19, 2),
    "smallmoney": QlikType("NUMERIC", 0, 10, 4),
    "NUMBER(2,5)": QlikType("NUMERIC"),
    "smallint": QlikType("INT2", 5),
    "tinyint unsigned": QlikType("UINT1", 3),
    "real": QlikType("REAL4", 7),
    "double precision": QlikType("REAL8", 14),
    "varchar2(64 char)": QlikType("STRING", 64),
    "text": QlikType("STRING"),
    "uuid": QlikType("STRING"),
    "clob": QlikType("CLOB"),
    "nclob": QlikType("NCLOB"),
    "longtext": QlikType("CLOB"),
    "bytea": QlikType("BYTES"),
    "varbinary(8)": QlikType("BYTES", 8),
    "blob": QlikType("BLOB"),
    "date": QlikType("DATE"),
    "time": QlikType("TIME"),
    "time(3) with time zone": QlikType("STRING"),
    "timestamp(3) without time zone": QlikType("DATETIME"),
}
WHEN = dt.datetime(1969, 12, 31, 23, 59, 58, 500_000)
VALUES: list[tuple[str, Any, Any, Any]] = [
    ("boolean", "t", True, True),
    ("boolean", False, False, False),
    ("integer", "-5", -5, -5),
    ("integer", " 7", 7, 7),
    ("bigint", 2**63 - 1, 2**63 - 1, 2**63 - 1),
    ("bigint unsigned", 2**64 - 1, str(2**64 - 1), Decimal(2**64 - 1)),
    ("numeric(10,2)", "19.9", "19.90", Decimal("19.90")),
    ("numeric(10,2)", Decimal("-1E+2"), "-100.00", Decimal("-100.00")),
    ("numeric(10,0)", "12", "12", Decimal(12)),
    ("numeric", "1.250", "1.250", "1.250"),
    ("real", "0.5", 0.5, 0.5),
    ("double precision", 1e300, 1e300, 1e300),
    ("varchar(9)", 'Ż"\0\n', 'Ż"\0\n', 'Ż"\0\n'),
    ("varchar(9000)", "x" * 9000, "x" * 9000, "x" * 9000),
    ("bytea", "qqo=", "AAAA", b"\xaa\xaa"),
    ("date", "1969-12-31", "1969-12-31", dt.date(1969, 12, 31)),
    ("time", "09:08:07", "09:08:07", dt.time(9, 8, 7)),
    ("time", "09:08:07.25", "09:08:07.250000", dt.time(9, 8, 7, 250_000)),
    ("timestamp", WHEN, "1969-12-31 23:59:58.500000", WHEN.replace(tzinfo=dt.UTC)),
    ("timestamptz", "2024-05-06 09:00:00+02", "2024-05-06 07:00:00.000000", dt.datetime(2024, 5, 6, 7, tzinfo=dt.UTC)),
]


def catalog(sql_type: str) -> Catalog:
    return Catalog(
        [Table(name="t", columns=(Column(name="id", type="integer", key=1), Column(name="v", type=sql_type)))]
    )


def with_value(value: Any) -> Any:
    return change(1, Op.ADD, (Edit(column="v", new=value),), row=RowId(None, "t", "id=1"))


def avro_value(sql_type: str, value: Any, *, logical: bool) -> tuple[Any, Any]:
    """The value as fastavro and as Avro's own library read it."""
    [found] = messages([with_value(value)], catalog(sql_type), encoding="avro", logical_types=logical)
    shape = shape_of(catalog(sql_type).tables[0], MessageSettings(encoding="avro", logical_types=logical))
    content = found.value or b""
    first: Any = fastavro.schemaless_reader(io.BytesIO(content), fastavro.parse_schema(shape.data_schema), None)
    official = avro.io.DatumReader(avro.schema.parse(shape.data_text))
    second: Any = official.read(avro.io.BinaryDecoder(io.BytesIO(content)))
    return first["data"]["v"], second["data"]["v"]


@pytest.mark.parametrize("sql_type, expected", TYPES.items())
def test_types_are_called_as_documented(sql_type: str, expected: QlikType) -> None:
    assert qlik_type(sql_type) == expected


@pytest.mark.parametrize("sql_type, value, expected, _logical", VALUES)
def test_values_in_json(sql_type: str, value: Any, expected: Any, _logical: Any) -> None:
    [found] = messages([with_value(value)], catalog(sql_type))
    assert msgspec.json.decode(found.value or b"")["data"] == {"id": 1, "v": expected}


@pytest.mark.parametrize("sql_type, value, expected, logical", VALUES)
def test_values_in_avro(sql_type: str, value: Any, expected: Any, logical: Any) -> None:
    plain = bytes.fromhex(expected) if sql_type == "bytea" else expected
    assert avro_value(sql_type, value, logical=False) == (plain, plain)
    assert avro_value(sql_type, value, logical=True) == (logical, logical)


@pytest.mark.parametrize(
    "number, size", [(0, 1), (127, 1), (-128, 2), (128, 2), (-129, 2), (32_767, 2), (32_768, 3), (-32_768, 3)]
)
def test_a_decimal_has_as_few_bytes_as_show_its_sign(number: int, size: int) -> None:
    [plain, found] = (
        messages([with_value(value)], catalog("numeric(9,2)"), encoding="avro", logical_types=True)
        for value in (Decimal(0), Decimal(number) / 100)
    )
    assert len(found[0].value or b"") - len(plain[0].value or b"") == size - 1


@pytest.mark.parametrize("sql_type, bits", [("smallint", 15), ("integer", 31), ("bigint", 63)])
def test_the_least_and_the_greatest_whole_number_fit(sql_type: str, bits: int) -> None:
    for number in (-(2**bits), 2**bits - 1):
        assert avro_value(sql_type, number, logical=False) == (number, number)


@pytest.mark.parametrize(
    "sql_type, value, problem",
    [
        (
            "integer",
            2**31,
            "2147483648 is outside -2147483648 to 2147483647; correct the column's type in the schema: the value is left out",
        ),
        ("bigint", -(2**63) - 1, "outside"),
        (
            "numeric(4,2)",
            "100.00",
            r"does not fit into decimal\(4,2\); correct the value or the column's type, or write without logical types: ",
        ),
        ("numeric(4,2)", "1.005", r"does not fit into decimal\(4,2\)"),
        ("numeric(4,2)", "NaN", "does not fit"),
        ("numeric(4,2)", "1E+99999", "does not fit"),
        ("real", 1e300, "too large for a float"),
        ("varchar", "half \ud800", "half a character"),
        ("date", "1969-02-30", "is not a"),
    ],
)
def test_what_avro_cannot_hold_is_refused_with_its_column(sql_type: str, value: Any, problem: str) -> None:
    [note] = refusals([with_value(value)], catalog(sql_type), encoding="avro", logical_types=True)
    assert note.startswith("'t' 'id=1': column 'v': ")
    assert re.search(problem, note), note


@pytest.mark.parametrize(
    "sql_type, value, problem",
    [
        ("double precision", float("nan"), "JSON cannot hold"),
        ("varchar", "half \ud800", "cannot be written as JSON"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_column(sql_type: str, value: Any, problem: str) -> None:
    [note] = refusals([with_value(value)], catalog(sql_type), on_value="refuse-object")
    assert "column 'v'" in note
    assert problem in note
