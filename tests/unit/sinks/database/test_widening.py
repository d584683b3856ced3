"""The wider of two types, which a change table's column has."""

from __future__ import annotations

import pytest

from eventlog.sinks.database.widening import wider

WIDER = [
    ("smallint", "integer"),
    ("integer", "bigint"),
    ("integer", "int unsigned"),
    ("int unsigned", "bigint"),
    ("bigint", "bigint unsigned"),
    ("boolean", "smallint"),
    ("numeric(9,0)", "integer"),
    ("integer", "numeric(10,0)"),
    ("numeric(18,0)", "bigint"),
    ("bigint", "numeric(19,0)"),
    ("integer", "numeric(12,2)"),
    ("numeric(10,2)", "numeric(12,4)"),
    ("numeric(10,2)", "numeric(12,2)"),
    ("numeric(65,30)", "numeric"),
    ("real", "double precision"),
    ("numeric(10,2)", "double precision"),
    ("integer", "double precision"),
    ("varchar(10)", "varchar(40)"),
    ("varchar(40)", "text"),
    ("varchar(4000)", "varchar(4001)"),
    ("binary(16)", "varbinary(200)"),
    ("varbinary(200)", "blob"),
    ("date", "timestamp"),
    *[(kind, "text") for kind in ("integer", "numeric(38,10)", "double", "boolean", "date", "timestamptz", "time")],
]
"""Types and those that hold all of their values."""

BOTH = [
    ("numeric(10,4)", "numeric(12,2)", "numeric(14,4)"),
    ("integer", "numeric(10,2)", "numeric(12,2)"),
    ("boolean", "numeric(2,2)", "numeric(3,2)"),
    ("numeric(38,0)", "numeric(10,2)", "numeric"),
    ("varchar(10)", "integer", "text"),
    ("timestamp", "varchar(40)", "text"),
    ("real", "integer", "double precision"),
]
"""Types of which neither holds the other, and what holds both."""

NEITHER = [
    ("bigint", "double precision"),
    ("numeric", "real"),
    ("numeric(16,2)", "double precision"),
    ("blob", "text"),
    ("varbinary(128)", "varchar(256)"),
    ("date", "time"),
    ("time", "timestamp"),
    ("date", "integer"),
    ("boolean", "date"),
]

SAME = [
    ("varchar(10)", "character varying(10)"),
    ("timestamp", "timestamptz"),
    ("timestamp(3)", "timestamp(6)"),
    ("text", "clob"),
    ("time", "time(3)"),
]
"""Types of which the column stays what it is."""


@pytest.mark.parametrize("narrow, wide", WIDER)
def test_what_holds_all_of_the_other_is_had_in_either_order(narrow: str, wide: str) -> None:
    assert (wider(narrow, wide), wider(wide, narrow)) == (wide, wide)
    assert (wider(narrow, narrow), wider(wide, wide)) == (narrow, wide)


@pytest.mark.parametrize("one, other, both", BOTH)
def test_a_type_is_found_that_holds_both(one: str, other: str, both: str) -> None:
    assert (wider(one, other), wider(other, one)) == (both, both)
    assert (wider(both, one), wider(both, other)) == (both, both)


@pytest.mark.parametrize("one, other", NEITHER)
def test_where_values_would_be_lost_there_is_none(one: str, other: str) -> None:
    assert (wider(one, other), wider(other, one)) == (None, None)


@pytest.mark.parametrize("one, other", SAME)
def test_what_holds_as_much_stays(one: str, other: str) -> None:
    assert (wider(one, other), wider(other, one)) == (one, other)


def test_a_date_becomes_a_time_without_a_zone_which_holds_every_moment_as_utc() -> None:
    assert (wider("date", "timestamptz"), wider("timestamptz", "date")) == ("timestamp", "timestamptz")
