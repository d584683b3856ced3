"""The record codec `packed-v1`: the specification's bytes, and the way there and back for rows of random tables."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.core.model import Row
from eventlog.core.schema import Column, Table
from eventlog.sources.linter.layouts import RecordLayout, record_fields
from eventlog.sources.linter.rows import Remembered
from eventlog_streams_tools.linter.packed import PackedCodec, date, date_bytes, decimal, decimal_bytes
from tests.support.linter import CHAIR, NEW, OLD, TABLE, T
from tests.support.shares import met, shares


def codec(*columns: str, code_page: str = "cp1251", **options: Any) -> PackedCodec:
    table = Table(name="X", columns=tuple(Column(name=f"C{n}", type=type_) for n, type_ in enumerate(columns, 1)))
    return PackedCodec(RecordLayout(table=table, fields=record_fields(table, code_page, {}), **options))


SPECIFIED = PackedCodec(RecordLayout(table=T, fields=record_fields(T, "cp1251", {})))


def test_the_records_of_the_specification() -> None:
    assert SPECIFIED.decode(OLD) == TABLE
    assert SPECIFIED.decode(NEW) == CHAIR
    assert SPECIFIED.encode(TABLE) == OLD
    assert SPECIFIED.encode(CHAIR) == NEW
    time, raw = dt.datetime(2024, 3, 15, 10, 20, 30, 500000), bytes.fromhex("02 00000006384609483050 0000000000")
    assert (date_bytes(time), date(raw), date(bytes(16))) == (raw, time, dt.datetime(1, 1, 1))


@pytest.mark.parametrize(
    "value, raw",
    [
        ("12345.678", "02 00000000000000012345 6780000000"),
        ("-0.5", "01 00000000000000000000 5000000000"),
        ("0", "00 00000000000000000000 0000000000"),
        ("-Infinity", "03 00000000000000000000 0000000000"),
        ("Infinity", "04 00000000000000000000 0000000000"),
        ("NaN", "05 00000000000000000000 0000000000"),
        ("-99999999999999999999.9999999999", "01 99999999999999999999 9999999999"),
    ],
)
def test_decimals(value: str, raw: str) -> None:
    assert decimal_bytes(Decimal(value)) == bytes.fromhex(raw)
    assert str(decimal(bytes.fromhex(raw))) == value


@pytest.mark.parametrize("value", ["100000000000000000000", "0.00000000001", "1E+40"])
def test_decimals_that_do_not_fit(value: str) -> None:
    with pytest.raises(DataError, match="more than"):
        decimal_bytes(Decimal(value))


@given(st.decimals(min_value=-(10**19), max_value=10**19, places=10) | st.decimals(-1000, 1000, places=2))
def test_every_decimal_comes_back(value: Decimal) -> None:
    assert decimal(decimal_bytes(value)) == value


def test_zeros_behind_the_tenth_digit_say_nothing() -> None:
    assert decimal(decimal_bytes(Decimal("1.5000000000000"))) == Decimal("1.5")


def test_values_beyond_those_that_are_remembered_are_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.sources.linter.rows.MOST_VALUES", 2)
    known = Remembered(bytes.decode)
    assert [known[text.encode()] for text in "abcab"] == [*"abcab"]
    assert set(known) == {b"b"}
    assert known[b"a" * 65] == "a" * 65
    assert set(known) == {b"b"}, "long values are not remembered"


@pytest.mark.parametrize(
    "type_, raw, reason",
    [
        ("decimal", "02 0000000000000000000a 0000000000", "holds a digit above 9"),
        ("decimal", "06 00000000000000000001 0000000000", "the status 6 of a number is not known"),
        ("date", "01 00000006384609483050 0000000000", "is no date"),
        ("date", "05 00000000000000000000 0000000000", "is no date"),
        ("date", "02 00000006384609483050 1000000000", "is no date"),
        ("date", "02 99999999999999999999 0000000000", "is after the year 9999"),
        ("date", "02 f0000006384609483050 0000000000", "holds a digit above 9"),
        ("boolean", "02", "2 is neither 0 nor 1"),
        ("char(1)", "98", "98 is no text in cp1251; set the code page"),
        ("nchar(1)", "00d8", "00d8 is no text in utf-16-le; set the code page"),
    ],
)
def test_what_cannot_be_read_names_its_column(type_: str, raw: str, reason: str) -> None:
    record = bytes.fromhex("00") + struct.pack("<i", 5) + bytes.fromhex(raw)
    with pytest.raises(DataError) as caught:
        codec("int", type_).decode(record)
    assert str(caught.value).startswith("Column C2: ")
    assert reason in str(caught.value)


def test_a_null_column_may_hold_rubbish() -> None:
    assert codec("char(1)", "boolean").decode(bytes.fromhex("03 98 07")) == {"C1": None, "C2": None}
    with pytest.raises(DataError, match="Column C2: 7 is neither"):
        codec("boolean", "boolean").decode(bytes.fromhex("01 07 07"))


@pytest.mark.parametrize("cut", range(29))
def test_a_record_that_ends_early_is_refused(cut: int) -> None:
    with pytest.raises(DataError, match=r"too few for its columns|before its last column"):
        SPECIFIED.decode(OLD[:cut])


@pytest.mark.parametrize(
    "record, said",
    [
        (OLD + b"xyz", "Behind the last column there is more: 3 bytes"),
        (b"\x18" + OLD[1:], "The mask of NULLs 18 has bits"),
    ],
)
def test_what_follows_the_last_column_is_refused(record: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said):
        SPECIFIED.decode(record)
    lenient = PackedCodec(RecordLayout(table=T, fields=SPECIFIED.layout.fields, strict=False))
    assert lenient.decode(OLD + b"xyz") == TABLE


@pytest.mark.parametrize("padding", [b"   ", b"\0\0\0", b" \0 ", b"\0  "])
def test_fixed_text_loses_blanks_and_nuls(padding: bytes) -> None:
    assert codec("char(5)").decode(b"\0ab" + padding) == {"C1": "ab"}
    assert codec("nchar(5)").decode(b"\0" + ("ab" + padding.decode()).encode("utf-16-le")) == {"C1": "ab"}
    assert codec("varchar(5)").decode(b"\0\5\0ab" + padding) == {"C1": "ab" + padding.decode()}


@pytest.mark.parametrize("page", ["cp866", "koi8-r", "cp1251", "utf-8"])
def test_code_pages(page: str) -> None:
    one = codec("char(12)", "varchar(12)", code_page=page)
    encoded = one.encode({"C1": "Стол", "C2": "Стул"})
    assert encoded[1:].startswith("Стол".encode(page))
    assert one.decode(encoded) == {"C1": "Стол", "C2": "Стул"}


@pytest.mark.parametrize(
    "type_, value, reason",
    [
        ("varchar(2)", "abc", "3 bytes do not fit into 2"),
        ("char(2)", "abc", "3 bytes do not fit into 2"),
        ("nvarchar(2)", "abc", "6 bytes do not fit into 4"),
        ("smallint", 40000, "format requires"),
        ("varchar(9)", "€\N{SNOWMAN}", "codec can't encode"),
        ("decimal", Decimal("1e20"), "more than 20 digits"),
    ],
)
def test_what_cannot_be_written_names_its_column(type_: str, value: object, reason: str) -> None:
    with pytest.raises(DataError, match=f"Column C1: .*{reason}"):
        codec(type_).encode({"C1": value})  # type: ignore[dict-item]  # one of the values above


TEXTS = st.text(st.characters(codec="cp1251", exclude_characters="\0 "), max_size=8)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "char(8)": TEXTS,
    "varchar(8)": TEXTS,
    "nchar(8)": TEXTS,
    "nvarchar(8)": TEXTS,
    "extfile": TEXTS,
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "decimal(20,10)": st.decimals(-(10**9), 10**9, places=10),
    "date": st.datetimes(dt.datetime(1, 1, 1)).map(
        lambda time: time.replace(microsecond=time.microsecond // 10000 * 10000)
    ),
    "boolean": st.booleans(),
    "byte(5)": st.binary(min_size=5, max_size=5),
    "varbyte(5)": st.binary(max_size=5),
    "blob": st.binary(min_size=24, max_size=24),
}


def rows_of(cells: Callable[[str], st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[list[str], dict[str, Any]]]:
    """Types of a table's columns, and a row of such cells."""
    columns = st.sampled_from(sorted(VALUES)).flatmap(lambda type_: st.tuples(st.just(type_), cells(type_)))
    return st.lists(columns, min_size=1, max_size=20).map(
        lambda drawn: ([type_ for type_, _ in drawn], {f"C{n}": cell for n, (_, cell) in enumerate(drawn, 1)})
    )


without_nulls = rows_of(VALUES.__getitem__)
tables_and_rows = rows_of(lambda type_: st.none() | VALUES[type_])


@pytest.mark.parametrize("rows, null_mask", [(tables_and_rows, True), (without_nulls, False)], ids=["mask", "no mask"])
@given(data=st.data(), order=st.sampled_from(["little", "big"]))
def test_every_row_of_every_table_comes_back(
    rows: st.SearchStrategy[tuple[list[str], dict[str, Any]]], null_mask: bool, data: st.DataObject, order: str
) -> None:
    types, row = data.draw(rows)
    one = codec(*types, byte_order=order, null_mask=null_mask)
    assert one.decode(one.encode(row)) == row


def outcome(read: Callable[[bytes], Row], data: bytes) -> str:
    try:
        return repr(read(data))  # two NaN are not equal
    except DataError as error:
        return f"refused: {error}"


@shares(read=0.2, refused=0.2)
@given(tables_and_rows, st.booleans(), st.data())
def test_a_damaged_record_is_refused_or_reads_the_same_when_it_is_written_again(
    drawn: tuple[list[str], dict[str, Any]], strict: bool, data: st.DataObject
) -> None:
    types, row = drawn
    one = codec(*types, strict=strict)
    record = one.encode(row)
    at = data.draw(st.integers(0, len(record)))
    damaged = record[:at] + data.draw(st.binary(max_size=3)) + record[at + data.draw(st.integers(0, 2)) :]
    found = outcome(one.decode, damaged)
    met(read=found.startswith("{"), refused=found.startswith("refused"))
    if found.startswith("{"):
        assert outcome(lambda bytes_: one.decode(one.encode(one.decode(bytes_))), damaged) in (
            found,
            unwritable(one, damaged),
        )


def unwritable(one: PackedCodec, data: bytes) -> str:
    """Why what was read cannot be written, as a text of more bytes than its column has."""
    return outcome(lambda bytes_: {"": one.encode(one.decode(bytes_))}, data)
