"""One map of types: messages, descriptions of files, Parquet and tables in databases say the same, and refuse the same."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import make_url

from eventlog.core.errors import ExpressionError
from eventlog.core.limits import ColumnLimits
from eventlog.qlik.change_tables.rows import ChangeColumn
from eventlog.qlik.limits import limit_of
from eventlog.qlik.messages.avrovalues import avro_type
from eventlog.qlik.readings import reading_of
from eventlog.qlik.typemap import FORMS, qlik_type
from eventlog.sinks.change_files.arrow import arrow_schema, arrow_type, misfits, parquet_bytes
from eventlog.sinks.change_files.dfm import describe_column
from eventlog.sinks.database.types import target_type
from eventlog.sql.dialect import dialect_of
from tests.support.shares import met, shares

MAP = {
    "boolean": ("BOOLEAN", "boolean", "bool", "BOOLEAN"),
    "tinyint": ("INT1", "int", "int32", "INTEGER"),
    "smallint": ("INT2", "int", "int32", "INTEGER"),
    "INTEGER NOT NULL": ("INT4", "int", "int32", "INTEGER"),
    "serial4": ("INT4", "int", "int32", "INTEGER"),
    "bigint": ("INT8", "long", "int64", "BIGINT"),
    "tinyint unsigned": ("UINT1", "int", "int32", "INTEGER"),
    "smallint unsigned": ("UINT2", "int", "int32", "INTEGER"),
    "int(10) unsigned": ("UINT4", "long", "int64", "BIGINT"),
    "bigint unsigned": ("UINT8", "decimal(20,0)", "decimal128(20, 0)", "NUMERIC(20, 0)"),
    "numeric(10,2)": ("NUMERIC", "decimal(10,2)", "decimal128(10, 2)", "NUMERIC(10, 2)"),
    "number(18)": ("NUMERIC", "decimal(18,0)", "int64", "BIGINT"),
    "number(19)": ("NUMERIC", "decimal(19,0)", "decimal128(19, 0)", "NUMERIC(19, 0)"),
    "NUMBER(*,0)": ("NUMERIC", "decimal(38,0)", "decimal128(38, 0)", "NUMERIC(38, 0)"),
    "numeric(50,2)": ("NUMERIC", "decimal(50,2)", "string", "NUMERIC(50, 2)"),
    "numeric": ("NUMERIC", "string", "string", "NUMERIC"),
    "NUMBER(5,-2)": ("NUMERIC", "string", "string", "NUMERIC"),
    "money": ("NUMERIC", "decimal(19,2)", "decimal128(19, 2)", "NUMERIC(19, 2)"),
    "real": ("REAL4", "float", "float", "REAL"),
    "double precision": ("REAL8", "double", "double", "DOUBLE PRECISION"),
    "varchar(64)": ("STRING", "string", "string", "VARCHAR(64)"),
    "text": ("STRING", "string", "string", "TEXT"),
    "clob": ("CLOB", "string", "string", "TEXT"),
    "nclob": ("NCLOB", "string", "string", "TEXT"),
    "varbinary(8)": ("BYTES", "bytes", "binary", "BYTEA"),
    "blob": ("BLOB", "bytes", "binary", "BYTEA"),
    "date": ("DATE", "date", "date32[day]", "DATE"),
    "time(3)": ("TIME", "time-millis", "string", "TIME WITHOUT TIME ZONE"),
    "timestamp": ("DATETIME", "timestamp-micros", "timestamp[us]", "TIMESTAMP WITHOUT TIME ZONE"),
    "timestamptz": ("DATETIME", "timestamp-micros", "timestamp[us, tz=UTC]", "TIMESTAMP WITH TIME ZONE"),
}


@pytest.mark.parametrize("sql_type", MAP)
def test_the_four_say_the_same(sql_type: str) -> None:
    name, avro, arrow, ddl = MAP[sql_type]
    types = dialect_of("postgresql://").types
    said = avro_type(qlik_type(sql_type), logical=True)
    if isinstance(said, dict):
        digits = f"({said['precision']},{said['scale']})" if "scale" in said else ""
        said = f"{said['logicalType']}{digits}"
    told = describe_column(ChangeColumn(name="c", type=sql_type), 1)
    made = target_type(sql_type, types).compile(dialect=make_url("postgresql://").get_dialect()())
    assert (told["type"], said, str(arrow_type(sql_type)), made) == (name, avro, arrow, ddl)


def test_every_type_that_is_told_is_in_the_map() -> None:
    assert {name for name, *_ in MAP.values()} == set(FORMS)


def test_the_time_of_a_change_is_utc_in_parquet() -> None:
    columns = [ChangeColumn(name="header__timestamp", type="timestamp", header=True)]
    columns.append(ChangeColumn(name="since", type="timestamp"))
    assert [str(field.type) for field in arrow_schema(columns)] == ["timestamp[us, tz=UTC]", "timestamp[us]"]


@pytest.mark.parametrize(
    "sql_type, held, beyond",
    [
        ("integer", -(2**31), 2**31),
        ("bigint", 2**63 - 1, 2**63),
        ("real", 3.4028235e38, 1e39),
        ("real", float("inf"), -1e39),
        ("numeric(20,0)", 10**20 - 1, 10**20),
    ],
)
def test_a_value_beyond_its_type_is_a_misfit_and_never_another_value(sql_type: str, held: float, beyond: float) -> None:
    columns = [ChangeColumn(name="c", type=sql_type)]
    limit = limit_of(sql_type, ColumnLimits())
    assert limit is not None
    assert (limit.problem(held), limit.problem(beyond) is None) == (None, False)
    assert list(misfits(columns, [(held,), (beyond,), (None,)])) == [1]
    with pytest.raises((ValueError, OverflowError)):
        parquet_bytes(columns, ([held, beyond],))


TYPES = ["VARCHAR(20)", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(4, 4)", "DECIMAL(38, 0)", "DECIMAL(18)", "NUMBER", "DATE"]
CELLS = st.one_of(
    st.none(),
    st.integers(-(2**66), 2**66),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.decimals(-(10**6), 10**6, places=3),
    st.text(st.characters()),
    st.sampled_from(["\ud800", "ü", "12", Decimal("1.50"), Decimal("0E+3"), Decimal("0.00000"), True]),
)


@shares(refused=0.1, taken=0.1)
@given(st.sampled_from(TYPES[:-1]), CELLS)
@example("DECIMAL(4, 4)", Decimal("0E+3"))
def test_a_cell_is_refused_exactly_when_arrow_refuses_it(kind: str, cell: Any) -> None:
    columns, limit = [ChangeColumn(name="A", type=kind)], limit_of(kind, ColumnLimits())
    try:
        value = None if cell is None else reading_of(kind)(cell)
    except ExpressionError:
        return
    wrong = bool(misfits(columns, [(value,)]))
    met(refused=wrong, taken=not wrong)
    if value is not None:
        assert (limit is not None and limit.problem(value) is not None) is wrong
    assert (limit is not None and not limit.holds([None, value])) is wrong
