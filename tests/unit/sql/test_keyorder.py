"""The condition that a row comes after a key, in the words of each database; the databases themselves try it elsewhere."""

from __future__ import annotations

from decimal import Decimal

import pytest

from eventlog.core.errors import DataError
from eventlog.core.schema import Column, Made, Table
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.refresh.key_order import KeyOrder
from eventlog.sql.dialect import Dialect

ORACLES = Table(
    name="usr",
    columns=(
        Column(name="code", type="CHAR(5)", key=1),
        Column(name="since", type="DATE", key=2),
        Column(name="n", type="NUMBER(9,0)", key=3),
    ),
)


def order(dialect: Dialect, *types: str) -> KeyOrder:
    columns = tuple([Column(name=f"c{place}", type=type_, key=place) for place, type_ in enumerate(types, 1)])
    return KeyOrder(dialect, Table(name="t", columns=columns), "t")


@pytest.mark.parametrize(
    "dialect, types, after",
    [
        (SQLITE, ("integer", ""), "((t.c1, CAST(t.c2 AS text)) > (:k0, :k1))"),
        (POSTGRESQL, ("bigint", "interval"), "((t.c1, CAST(t.c2 AS text)) > (CAST(:k0 AS bigint), CAST(:k1 AS text)))"),
        (
            MYSQL,
            ("decimal(5,2)", "int"),
            "(t.c1 > CAST(:k0 AS DECIMAL(5,2)) OR (t.c1 = CAST(:k0 AS DECIMAL(5,2)) AND (t.c2 > :k1)))",
        ),
        (MYSQL, ("double",), "(t.c1 > (:k0 + 0E0))"),
        (MYSQL, ("varbinary(9)",), "(t.c1 > FROM_BASE64(:k0))"),
        (ORACLE, ("NUMBER", "RAW(9)"), "(t.c1 > :k0 OR (t.c1 = :k0 AND (t.c2 > HEXTORAW(:k1))))"),
    ],
)
def test_the_key_becomes_what_the_column_is_so_that_its_index_serves(
    dialect: Dialect, types: tuple[str, ...], after: str
) -> None:
    assert order(dialect, *types).after == after


def test_a_key_of_a_made_type_is_compared_without_casts_of_its_owner() -> None:
    table = Table(name="t", columns=(Column(name="c1", type="mood", key=1, made=Made.TYPE),))
    assert KeyOrder(POSTGRESQL, table, "t").columns == "CASE WHEN t.c1 IS DISTINCT FROM NULL THEN concat(t.c1) END"


def test_values_are_read_from_the_keys_text_by_the_columns_types() -> None:
    found = KeyOrder(ORACLE, ORACLES, "usr")
    assert found.columns == "usr.code, usr.since, usr.n"
    assert found.filled == "usr.code IS NOT NULL AND usr.since IS NOT NULL AND usr.n IS NOT NULL"
    assert found.parameters('code="a+"+since=2026-01-02 03:04:05.000000000+n=7') == {
        "k0": "a+",
        "k1": "2026-01-02 03:04:05",
        "k2": Decimal(7),
    }
    assert order(SQLITE, "blob", "boolean").parameters('c1="qqo="+c2=1') == {"k0": b"\xaa\xaa", "k1": "1"}


def test_a_text_that_is_no_such_value_is_named() -> None:
    with pytest.raises(DataError, match="after the row c1=x of t cannot be asked for"):
        order(POSTGRESQL, "integer").parameters("c1=x")
