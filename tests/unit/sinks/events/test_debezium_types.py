"""What Debezium's format makes of single values: beside Python's calendar, beside what Debezium was seen to write."""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Document, Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Made, Table
from eventlog.core.seams import encode
from eventlog.sinks.events.debezium import NOWHERE, DebeziumTable, Place
from eventlog.sinks.events.debezium_defaults import find_default
from eventlog.sinks.events.debezium_shapes import read_array
from eventlog.sinks.events.debezium_times import (
    count_days,
    find_day,
    read_days,
    read_interval,
    read_micros,
    read_zoned,
    write_interval,
)
from eventlog.sinks.events.debezium_types import debezium_field, describe, field_way
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.events.write import EventFormat


def told(database: str, type_: str, cell: Any, **settings: Any) -> Any:
    """What the JSON of a value has."""
    column = Column(name="v", type=type_)
    field = debezium_field(database, DebeziumSettings(**settings), column)
    return field_way(column, field)(cell)


def schema(database: str, type_: str, column: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    described = Column(name="v", type=type_, **(column or {}))
    return describe(debezium_field(database, DebeziumSettings(**settings), described), optional=True)


@given(st.integers(-3_000_000, 5_000_000))
def test_days_count_as_they_are_found(days: int) -> None:
    assert count_days(*find_day(days)) == days


@given(st.dates())
def test_a_day_of_pythons_calendar_is_counted_as_python_does(day: dt.date) -> None:
    assert read_days(day.isoformat()) == count_days(day.year, day.month, day.day) == (day - dt.date(1970, 1, 1)).days


@given(st.datetimes(), st.integers(0, 6))
def test_a_moment_of_pythons_calendar_is_as_python_has_it(moment: dt.datetime, digits: int) -> None:
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    texts = (f"{moment:%H:%M:%S}.{moment.microsecond:06}000", f"{moment:%H:%M:%S}.{moment.microsecond:06}+00")
    for text in texts:  # as a log has it, and in the way of others
        assert read_micros(f"{moment.date()} {text}") == micros
        written = read_zoned(digits, f"{moment.date()} {text}")
        whole = moment.isoformat(timespec="microseconds")
        assert written == f"{whole[: 19 + digits + (digits > 0)]}Z"


@pytest.mark.parametrize(
    "database, type_, cell, expected",
    [
        # As Debezium's engine wrote them.
        ("postgresql", "DATE", "0044-03-15 BC", -735160),
        ("postgresql", "DATE", "infinity", -2147472692),
        ("postgresql", "TIMESTAMP WITHOUT TIME ZONE", "infinity", 9223372036825200000),
        ("postgresql", "TIMESTAMP(3) WITHOUT TIME ZONE", "-infinity", -9223372036832400),
        ("postgresql", "TIMESTAMP WITH TIME ZONE", "0044-03-15 12:00:00 BC", "-0043-03-15T12:00:00.000000Z"),
        ("postgresql", "TIMESTAMP(0) WITH TIME ZONE", "2026-02-03 02:05:06.000000000", "2026-02-03T02:05:06Z"),
        ("postgresql", "TIMESTAMP WITH TIME ZONE", "12026-02-03 00:00:00", "+12026-02-03T00:00:00.000000Z"),
        ("postgresql", "TIME WITHOUT TIME ZONE", "24:00:00", 86400000000),
        ("postgresql", "TIME(3) WITHOUT TIME ZONE", "23:59:59.123", 86399123),
        ("postgresql", "TIME WITH TIME ZONE", "12:00:00.5+02:30", "09:30:00.5Z"),
        ("postgresql", "INTERVAL", "1 year 2 mons 3 days 04:05:06.789", 37091106789000),
        ("postgresql", "INTERVAL", "-01:00:00.5", -3600500000),
        ("postgresql", "BIT(9)", "100000001", b"\x01\x01"),
        ("postgresql", "BIT(3)", "000", b""),
        ("postgresql", "CHAR(5)", "ab", "ab   "),
        ("postgresql", "MONEY", "12.34", b"\x04\xd2"),
        ("postgresql", "NUMERIC", "12.3400", {"scale": 2, "value": b"\x04\xd2"}),
        ("postgresql", "hstore", '"a"=>"1", "b"=>NULL, "c d"=>"x\\"y"', '{"a":"1","b":null,"c d":"x\\"y"}'),
        ("postgresql", "BYTEA[]", '{"\\\\x00ff"}', [b"\0\xff"]),
        ("postgresql", "NUMERIC(10, 2)[]", "{1.5,NULL,-2}", [b"\0\x96", None, b"\xff8"]),
        ("mysql", "TINYINT(1)", "5", 5),
        ("mysql", "BIT(20)", "524291", b"\x03\x00\x08"),
        ("mysql", "TIME", "-838:59:59", -3020399000000),
        ("mysql", "DATETIME", "2026-02-03 04:05:06.000000000", 1770091506000),
        ("mysql", "DATETIME(4)", "2026-02-03 04:05:06.789000000", 1770091506789000),
        ("mysql", "TIMESTAMP", "2026-07-03 02:05:06.000000000", "2026-07-03T02:05:06Z"),
        ("mysql", "DATE", "0000-00-00", None),
        ("mysql", "BIGINT UNSIGNED", "18446744073709551615", -1),
        ("mysql", "YEAR(4)", "2026", 2026),
        ("oracle", "NUMBER(4,0)", "1234", 1234),
        ("oracle", "DATE", "2026-02-03 04:05:06", 1770091506000),
        ("oracle", "TIMESTAMP(9)", "2026-02-03 04:05:06.123456789", 1770091506123456789),
        ("oracle", "INTERVAL DAY(2) TO SECOND(6)", "+02 03:04:05.5", 183845500000),
        ("oracle", "INTERVAL YEAR(2) TO MONTH", "+01-02", 36817200000000),
    ],
)
def test_a_value_is_what_debezium_makes_of_it(database: str, type_: str, cell: str, expected: Any) -> None:
    assert told(database, type_, cell) == expected


@pytest.mark.parametrize(
    "modes, database, type_, cell, kind, expected",
    [
        ({"decimal_handling_mode": "string"}, "postgresql", "MONEY", "12.34", "string", "12.34"),
        ({"decimal_handling_mode": "double"}, "mysql", "DECIMAL(10, 2)", "12.34", "double", 12.34),
        ({"time_precision_mode": "adaptive"}, "mysql", "TIME", "00:00:01", "int32", 1000),
        ({"time_precision_mode": "connect"}, "postgresql", "TIMESTAMP", "1970-01-01 00:00:01.5", "int64", 1500),
        ({"time_precision_mode": "connect"}, "postgresql", "DATE", "1970-01-02", "int32", 1),
        ({"time_precision_mode": "nanoseconds"}, "postgresql", "TIMESTAMP", "infinity", "int64", (1 << 63) - 1),
        ({"time_precision_mode": "microseconds"}, "postgresql", "TIME(0)", "00:00:01", "int64", 1_000_000),
        ({"binary_handling_mode": "hex"}, "postgresql", "BYTEA", "AP8=", "string", "00ff"),
        ({"binary_handling_mode": "base64-url-safe"}, "mysql", "BLOB", "+/8=", "string", "-_8="),
        (
            {"interval_handling_mode": "string"},
            "postgresql",
            "INTERVAL",
            "1 day 00:00:01.5",
            "string",
            "P0Y0M1DT0H0M1.5S",
        ),
        ({"bigint_unsigned_handling_mode": "precise"}, "mysql", "BIGINT UNSIGNED", "255", "bytes", b"\0\xff"),
    ],
)
def test_the_modes_of_debezium_choose_the_form(
    modes: dict[str, Any], database: str, type_: str, cell: str, kind: str, expected: Any
) -> None:
    assert schema(database, type_, None, **modes)["type"] == kind
    assert told(database, type_, cell, **modes) == expected


def test_schemas_have_what_their_types_state() -> None:
    assert schema("mysql", "ENUM('a','b,c','it''s')")["parameters"] == {"allowed": "a,b\\,c,it's"}
    assert schema("postgresql", "mood", {"labels": ("a", "b")})["name"] == "io.debezium.data.Enum"
    array = schema("postgresql", "mood[]", {"labels": ("a", "b"), "made": Made.TYPE})
    assert array["items"] == {
        "type": "string",
        "optional": False,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": "a,b"},
    }
    # A type that somebody made is not the database's of that name.
    assert schema("postgresql", "money", {"made": Made.TYPE}) == {"type": "string", "optional": True}
    assert schema("postgresql", "BIT(3)")["parameters"] == {"length": "3"}


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.none()))
def test_an_array_is_read_as_postgresql_writes_it(items: list[str | None]) -> None:
    def quote(item: str) -> str:
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = "{" + ",".join("NULL" if item is None else quote(item) for item in items) + "}"
    assert read_array(str, text) == items


def test_an_array_of_several_dimensions_is_refused_in_words() -> None:
    with pytest.raises(ExpressionError, match="has several dimensions"):
        read_array(int, "{{1,2},{3,4}}")


@pytest.mark.parametrize(
    "text",
    [
        "1 year 2 mons 3 days 04:05:06.789",
        "@ 1 year 2 mons 3 days 4 hours 5 mins 6.789 secs",
        "P1Y2M3DT4H5M6.789S",
        "+1-2 +3 +4:05:06.789",
    ],
)
def test_a_span_is_the_same_in_each_style_of_a_session(text: str) -> None:
    assert write_interval(text) == "P1Y2M3DT4H5M6.789S"


def test_what_is_no_span_is_refused() -> None:
    assert read_interval("@ 1 day ago")[2] == -1
    with pytest.raises(ExpressionError, match="is not a span"):
        read_interval("soon")


@pytest.mark.parametrize(
    "database, type_, stated, expected",
    [
        ("postgresql", "INTEGER", "nextval('t_id_seq'::regclass)", 0),
        ("postgresql", "INTEGER", "'-12'::integer", -12),
        ("postgresql", "INTEGER", "7", 7),
        ("postgresql", "INTEGER", "(1 + 2)", None),
        ("postgresql", "VARCHAR(40)", "'it''s'::character varying", "it's"),
        ("postgresql", "NUMERIC(10, 2)", "12.5", b"\x04\xe2"),
        ("postgresql", "NUMERIC", "0.50", None),  # a struct is no default
        ("postgresql", "UUID", "gen_random_uuid()", "00000000-0000-0000-0000-000000000000"),
        ("postgresql", "TIMESTAMP WITHOUT TIME ZONE", "CURRENT_TIMESTAMP", 0),
        ("postgresql", "BOOLEAN", "true", True),
        ("postgresql", "VARCHAR", "NULL::character varying", None),
        ("postgresql", "INET", "'10.0.0.1'::inet", None),  # of which Debezium reads none
        ("mysql", "DATETIME", "current_timestamp() ON UPDATE current_timestamp()", 0),
        ("mysql", "TIMESTAMP", "CURRENT_TIMESTAMP", "1970-01-01T00:00:00Z"),
        ("mysql", "VARCHAR(9)", "'x'", "x"),
        ("mysql", "BIT(5)", "b'101'", b"\x05"),
        ("sqlite", "INTEGER", "5", 5),
        ("sqlite", "TEXT", "(hex(1))", None),
    ],
)
def test_a_default_is_the_value_that_a_table_states(database: str, type_: str, stated: str, expected: Any) -> None:
    column = Column(name="v", type=type_, default=stated)
    field = debezium_field(database, DebeziumSettings(), column)
    assert find_default(database, column, field, field_way(column, field)) == expected


COLUMNS = (
    Column(name="id", type="integer", key=1, nullable=False),
    Column(name="n", type="integer", nullable=False),
    Column(name="d", type="integer", nullable=False, default="7"),
    Column(name="o", type="varchar(9)"),
)


def event(change: Change, *, images: bool = True, place: Place = NOWHERE, **settings: Any) -> tuple[str, Any]:
    """The topic and the value of a change of a table with these columns."""
    made = DebeziumSettings(**settings)
    form = EventFormat(
        table=lambda table: DebeziumTable(table, made, place),
        batch_size=9,
        topic=made.topic_template(),
        topic_values={"server": made.server},
        schema=place.schema,
    )
    table = Table(name="t", columns=COLUMNS, images=images)
    [document] = encode(form, [change], Catalog([table]))
    assert isinstance(document, Document)
    [message] = document.messages[:1]  # type: ignore[attr-defined]  # a document of messages
    return message.topic, json.loads(message.value)


def change(op: Op, **cells: Any) -> Change:
    edits = tuple(Edit(column=name, new=value) for name, value in cells.items())
    if op is Op.DELETE:
        edits = tuple(Edit(column=name, old=value) for name, value in cells.items())
    return Change(row=RowId(None, "t", "id=1"), op=op, edits=edits, positions=((1,),))


def test_what_may_be_null_is_optional_and_what_may_not_is_there() -> None:
    _, value = event(change(Op.ADD, o="x"), schemas=True)
    fields = {field["field"]: field for field in value["schema"]["fields"][1]["fields"]}
    assert {name: field["optional"] for name, field in fields.items()} == {
        "id": False,
        "n": False,
        "d": False,
        "o": True,
    }
    assert fields["d"]["default"] == 7
    # What nobody knows is the default, or nothing of its type, as Debezium has it.
    assert value["payload"]["after"] == {"id": 1, "n": 0, "d": 7, "o": "x"}
    _, value = event(change(Op.ADD, o="x"))
    assert value["after"] == {"id": 1, "o": "x"}


def test_events_that_bring_parts_of_rows_have_all_but_the_key_optional() -> None:
    _, value = event(change(Op.ADD, o="x"), images=False, schemas=True)
    assert [field["optional"] for field in value["schema"]["fields"][1]["fields"]] == [False, True, True, True]
    assert value["payload"]["after"] == {"id": 1, "o": "x"}


def test_a_table_of_mysql_is_called_by_its_database_as_well() -> None:
    topic, value = event(change(Op.ADD), place=Place(database="mysql", home="shop"), server="srv")
    assert topic == "srv.shop.t"
    assert value["source"]["db"] == "shop"
    topic, value = event(change(Op.ADD), place=Place(database="postgresql", home="shop"), server="srv")
    assert topic == "srv.t"
    assert (value["source"]["db"], value["source"]["txId"], value["source"]["lsn"]) == ("shop", None, None)


def test_a_point_has_its_bytes() -> None:
    point = told("postgresql", "point", "(1.5,-2)")
    assert point == {"x": 1.5, "y": -2.0, "wkb": b64decode("AQEAAAAAAAAAAAD4PwAAAAAAAADA"), "srid": None}
    assert told("mysql", "point", "SRID=4326;POINT(1.5 -2)") == {**point, "srid": 4326}
    assert told("postgresql", "geometry", "0101000020E6100000000000000000F03F000000000000F03F")["srid"] == 4326
