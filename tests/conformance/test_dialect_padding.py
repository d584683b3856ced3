"""Numbers stand in keys and values without padding, whatever a database puts before or behind them."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from eventlog.sql.dialect import dialect_of
from tests.support.logged import left_by, run
from tests.support.servers import databases

PADDED = [
    ("INT(6) ZEROFILL", "42", "42"),
    ("BIGINT(20) ZEROFILL", "0", "0"),
    ("DECIMAL(8,2) ZEROFILL", "1.5", "1.50"),
    ("DECIMAL(8,2) ZEROFILL", "0", "0.00"),
    ("DECIMAL(65,0) ZEROFILL", "100", "100"),
    ("FLOAT ZEROFILL", "0.1", "0.1"),
    ("DOUBLE(10,3) ZEROFILL", "30.5", "30.500"),
]


@pytest.fixture(params=[name for name in databases() if name not in ("sqlite", "postgresql")])
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each database that has ZEROFILL, with a log."""
    found: Engine = request.getfixturevalue(request.param)
    install(found)
    return found


@pytest.mark.parametrize("type_, literal, text", PADDED)
def test_zeros_that_the_server_puts_before_a_number_are_not_logged(
    server: Engine, type_: str, literal: str, text: str
) -> None:
    run(server, f"CREATE TABLE t (k {type_} NOT NULL PRIMARY KEY, v {type_})")
    track(server, ["t"], TriggerOptions(style=Style.FIELD))
    changes = (f"INSERT INTO t VALUES ({literal}, {literal})", f"UPDATE t SET k = {literal}, v = NULL")
    assert left_by(server, *changes) == [(1, f"k={text}", "v", None, text), (2, f"k={text}", "v", text, None)]


def test_numbers_and_char_keys_have_no_blanks(engine: Engine) -> None:
    install(engine)
    run(
        engine,
        "CREATE TABLE t (a INTEGER NOT NULL, b NUMERIC(12,2) NOT NULL, c CHAR(8) NOT NULL, PRIMARY KEY (a, b, c))",
    )
    track(engine, ["t"])
    wanted = "2.5" if dialect_of(engine).embedded else "2.50"
    assert [row[1] for row in left_by(engine, "INSERT INTO t VALUES (7, 2.5, 'ab')")] == [f"a=7+b={wanted}+c=ab"]
