"""GBase values: every example of the specification, and what was written is read again, of every type."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ConfigError, DataError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.gbase.codes import in_words
from eventlog.sources.gbase.files import chunks_of
from eventlog.sources.gbase.images import respell, table_of
from eventlog.sources.gbase.layout import CapturedLayout, layout_of, read_layout, read_type
from eventlog.sources.gbase.records import CdcRecord, name_of
from eventlog.sources.gbase.rows import GBaseRowReader
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.source import gbase_reader
from eventlog.sources.gbase.values import TextRules, codec
from eventlog_streams_tools.gbase.emulator import GBASE, INFORMIX, RecordDialect, row_record, table_record
from tests.support.examples import examples
from tests.support.shares import met, shares
from tests.support.strategies_gbase import rows, tables

EXAMPLES: list[tuple[str, Any, str]] = [
    ("int8", 5_000_000_000, "0001 2A05F200 00000001"),
    ("date", dt.date(2025, 3, 23), "0000B2AA"),
    ("date", dt.date(1899, 12, 30), "FFFFFFFF"),
    ("decimal(8,2)", Decimal("1234.56"), "C20C223800"),
    ("decimal(8,2)", Decimal("-1234.56"), "3D57412C00"),
    ("decimal(8,2)", Decimal("-100.00"), "3D63000000"),
    ("decimal(8,2)", Decimal("0.05"), "C005000000"),
    ("decimal(8,2)", Decimal("0.00"), "8000000000"),
    ("datetime year to second", dt.datetime(2025, 3, 23, 10, 57, 19), "C7141903170A3913"),
    ("datetime year to fraction(2)", dt.datetime(2025, 3, 23, 10, 57, 19, 250_000), "C7141903170A391319"),
    ("datetime year to day", dt.date(99, 12, 31), "C6630C1F00"),
    ("datetime hour to minute", dt.time(0, 9), "C20900"),
    ("interval hour to second", "-1:02:03", "3C626161"),
    ("interval day(3) to hour", "250 06", "C5023206"),
    ("interval minute(5) to minute", "54321", "C4052B15"),
    ("smallint", None, "8000"),
    ("integer", None, "80000000"),
    ("bigserial", None, "8000000000000000"),
    ("int8", None, "00000000000000000000"),
    ("float", None, "FFFFFFFFFFFFFFFF"),
    ("real", None, "FFFFFFFF"),
    ("decimal(8,2)", None, "0000000000"),
    ("date", None, "80000000"),
    ("interval day(3) to hour", None, "00000000"),
    ("boolean", None, "0100"),
    ("boolean", True, "0001"),
    ("char(3)", None, "002020"),
    ("char(3)", "   ", "202020"),
    ("varchar(10)", None, "000100"),
    ("varchar(10)", "", "0000"),
    ("lvarchar(10)", None, "000101"),
    ("lvarchar(10)", "", "000100"),
    ("blob", None, "00" * 76),
]


@pytest.mark.parametrize("kind, value, written", EXAMPLES)
def test_the_examples_of_the_specification(kind: str, value: Any, written: str) -> None:
    own = codec(read_type(kind), TextRules())
    data = bytes.fromhex(written)
    assert own.decode(data) == value
    assert own.encode(value) == data


def test_a_varchar_of_informix_has_one_byte_for_its_length() -> None:
    own = codec(read_type("varchar(10)"), TextRules(), wide=False)
    assert [own.encode(value) for value in ("", None, "a")] == [b"\0", b"\1\0", b"\1a"]
    assert [own.decode(data) for data in (b"\0", b"\1\0", b"\1a")] == ["", None, "a"]


@pytest.mark.parametrize("written", ["0100", "01FF", "00FF"])
def test_a_boolean_is_null_by_its_flag_or_by_its_value(written: str) -> None:
    layout = layout_of(1, "c1 boolean")
    row = row_record(CdcRecord.INSERT, 1, 1, layout, {"c1": True})[:36] + bytes.fromhex(written)
    assert GBaseRowReader(layout, TextRules())(row, 36) == {"c1": None}


@pytest.mark.parametrize(
    "kind, written, told",
    [
        ("decimal(8,2)", "C20C226400", "64 is no pair"),
        ("decimal(4,2)", "C30C22", "exponent"),
        ("datetime year to day", "C60D0C1F01", "exponent"),
        ("datetime year to second", "C71419032D0A3913", "day"),
        ("datetime hour to minute", "3D6261", "negative"),
        ("interval day(3) to hour", "C50B3206", "more digits"),
        ("datetime year to fraction(1)", "C7141903170A391319", "more digits"),
        ("int8", "00020000000000000000", "sign"),
        ("boolean", "0200", "null flag"),
        ("date", "7FFFFFFF", "greater than maximum"),
        ("varchar(9)", "05616263", "length"),
        ("lvarchar(9)", "000902616263", "length"),
        ("lvarchar(9)", "00020261", "null flag"),
        ("char(2)", "C3C3", "utf-8"),
    ],
)
def test_bytes_that_are_no_value_are_told_with_their_column(kind: str, written: str, told: str) -> None:
    layout = layout_of(1, f"c1 {kind}")
    data = bytes.fromhex(written)
    good = row_record(CdcRecord.INSERT, 1, 1, layout, {"c1": None})
    sizes = b"" if layout.fixed else len(data).to_bytes(4, "little")
    record = good[:4] + len(data).to_bytes(4, "big") + good[8:36] + sizes + data
    with pytest.raises(DataError, match=f"column c1 holds no .*{told}"):
        GBaseRowReader(layout, TextRules())(record, 36 + len(sizes))


def test_a_float_that_is_no_number_and_not_null_stays() -> None:
    layout = layout_of(1, "c1 float, c2 smallfloat")
    data = row_record(CdcRecord.INSERT, 1, 1, layout, {"c1": math.nan, "c2": math.nan})
    read = GBaseRowReader(layout, TextRules())(data, 36)
    assert [isinstance(value, float) and math.isnan(value) for value in read.values()] == [True, True]


@pytest.mark.parametrize("invalid, value", [("replace", "\ufffd!"), ("bytes", b"\xff!")])
def test_bytes_that_are_no_text_are_replaced_or_kept_if_that_is_wanted(invalid: Any, value: object) -> None:
    layout = layout_of(1, "c1 varchar(9)")
    data = row_record(CdcRecord.INSERT, 1, 1, layout, {"c1": "ü"}).replace("ü".encode(), b"\xff!")
    assert GBaseRowReader(layout, TextRules(invalid=invalid))(data, 40) == {"c1": value}


@pytest.mark.parametrize("encoding, text", [("gb18030", "变更"), ("5488", "变更"), ("819", "Ärger"), ("1252", "€ 5")])
def test_texts_come_in_the_code_set_of_the_database(encoding: str, text: str) -> None:
    texts = TextRules(encoding=encoding, trim=True)
    layout = layout_of(1, "c1 char(12), c2 lvarchar(20)")
    data = row_record(CdcRecord.INSERT, 1, 1, layout, {"c1": text, "c2": text}, RecordDialect(texts=texts))
    assert GBaseRowReader(layout, texts)(data, 40) == {"c1": text, "c2": text}


def test_an_unknown_code_set_is_refused() -> None:
    with pytest.raises(ConfigError, match="There is no code set klingon"):
        TextRules(encoding="klingon")


@examples(60, deadline=None)
@given(st.data(), tables(), st.sampled_from([GBASE, INFORMIX, RecordDialect(sizes="little", wide=False)]))
def test_a_row_is_read_as_it_was_written(data: st.DataObject, layout: CapturedLayout, dialect: RecordDialect) -> None:
    row = data.draw(rows(layout))
    record = row_record(CdcRecord.INSERT, 7, 8, layout, row, dialect)
    header = 36 + 4 * len(layout.varying)
    read = GBaseRowReader(layout, TextRules())(record, header)
    assert (read, [type(value) for value in read.values()]) == (row, [type(row[name]) for name in read])


@shares(read=0.2, refused=0.05)
@examples(60, deadline=None)
@given(st.data(), tables(4))
def test_damaged_rows_are_read_or_refused_in_words(data: st.DataObject, layout: CapturedLayout) -> None:
    record = bytearray(row_record(CdcRecord.INSERT, 7, 8, layout, data.draw(rows(layout))))
    header = 36 + 4 * len(layout.varying)
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(36, len(record) - 1))] = data.draw(st.integers(0, 255))
    said = ""
    try:
        GBaseRowReader(layout, TextRules())(bytes(record), header)
    except DataError as error:
        said = str(error)
    met(read=not said, refused=bool(said))
    assert not said or re.search(r"the column c\d holds no|neither byte order of its sizes", said)


@given(tables())
def test_a_layout_survives_its_record(layout: CapturedLayout) -> None:
    assert read_layout(table_record(layout), 36) == layout


def test_names_may_be_anything_in_quotes() -> None:
    layout = layout_of(3, '"My, Col" integer, "say ""x""" decimal(8, 2), C3 VARCHAR(20,0)')
    assert [column.name for column in layout.columns] == ["My, Col", 'say "x"', "C3"]
    assert read_layout(table_record(layout), 36) == layout
    row: dict[str, Any] = {"My, Col": 1, 'say "x"': Decimal("2.50"), "C3": "{x}"}
    assert GBaseRowReader(layout, TextRules())(row_record(CdcRecord.INSERT, 1, 1, layout, row), 40) == row


@pytest.mark.parametrize(
    "text, told",
    [
        ("c1", "no name with a type"),
        ("c1 integer, c1 date", "same name twice"),
        ("c1 varchar(5), c2 integer", "comes behind others"),
        ("c1 text", "not a type that can be captured"),
        ("c1 set(integer not null)", "not the name of a type"),
        ("c1 decimal(33,2)", "1 to 32 digits"),
        ("c1 char(0)", "is not a type"),
        ("c1 datetime day to year", "is not a type"),
        ("c1 interval year to day", "months have no number of days"),
        ("c1 interval day(0) to hour", "precision"),
    ],
)
def test_descriptions_that_cannot_be_are_refused(text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        layout_of(1, text)


def test_a_value_without_room_is_refused() -> None:
    for kind, value in [
        ("smallint", -0x8000),
        ("int8", 2**63),
        ("char(2)", "abc"),
        ("decimal(4,2)", Decimal("12345.5")),
    ]:
        with pytest.raises(OverflowError):
            codec(read_type(kind), TextRules()).encode(value)
    with pytest.raises(OverflowError, match="no number"):
        codec(read_type("decimal"), TextRules()).encode(Decimal("NaN"))
    with pytest.raises(ValueError, match="fields"):
        codec(read_type("interval day to hour"), TextRules()).encode("5")


def value(kind: str, written: str) -> object:
    return codec(read_type(kind), TextRules()).decode(bytes.fromhex(written))


def test_numbers_that_the_server_would_not_write() -> None:
    assert value("decimal(3,1)", "C10557") == Decimal("5.87")
    assert value("decimal(4,2)", "7F0000") == Decimal("0.00")
    assert value("decimal(5)", "C5010000") == Decimal(100_000_000)


def test_moments_of_other_shapes() -> None:
    with pytest.raises(ValueError, match="first field is 102"):
        value("datetime hour to minute", "C40102")
    assert value("datetime month to day", "C50317") == "03-23"
    assert value("datetime year to hour", "C7141903170A") == dt.datetime(2025, 3, 23, 10)
    assert value("interval second(4) to fraction(5)", "C20C22191E32") == "1234.25305"
    assert value("interval fraction to fraction(3)", "C01900") == ".250"
    assert codec(read_type("datetime year to fraction(2)"), TextRules()).encode(dt.datetime(2025, 3, 23)).hex() == (
        "c7141903170000" + "0000"
    )


@pytest.mark.parametrize(
    "kind, text, read",
    [
        ("interval second to fraction(3)", "1.25", "1.250"),
        ("interval second to fraction(3)", "-1.250", "-1.250"),
        ("interval fraction to fraction(3)", ".25", ".250"),
        ("interval second to fraction(2)", "7.05", "7.05"),
    ],
)
def test_a_fraction_may_be_written_without_zeros_at_its_end(kind: str, text: str, read: str) -> None:
    of_kind = codec(read_type(kind), TextRules())
    assert of_kind.decode(of_kind.encode(text)) == read


def test_a_fraction_with_more_digits_than_its_type_is_refused() -> None:
    with pytest.raises(ValueError, match="more digits than the 2 of its type"):
        codec(read_type("interval second to fraction(2)"), TextRules()).encode("1.250")


def test_codes_and_numbers_without_a_name() -> None:
    assert in_words(-1) == "-1, which syscdcv1:syscdcerrcodes may explain."
    assert name_of(77) == "unknown record 77"


@pytest.mark.parametrize(
    "wrong", [{"tables": {"one": "t"}}, {"tables": {"4294967296": "t"}}, {"memory": 0}, {"max_records": 1000}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"source\.gbase"):
        GBaseSettings(**wrong)  # type: ignore[arg-type]  # what a file might hold


def test_a_table_is_found_by_its_name_in_the_schema_file() -> None:
    known = Catalog([Table(name="t1", schema="shop", columns=(Column(name="C1", key=1),))])
    own = GBaseSettings(tables={"5": "stores:shop.t1"}, keys={"stores:shop.t1": ("c2", "c9")})
    layout = layout_of(5, "c1 integer, c2 date")
    table = table_of(5, layout, own, known)
    assert (table.whole, table.key) == ("shop.t1", ("c2", "c9"))
    assert [column.name for column in respell(layout, table).columns] == ["C1", "c2"]


def test_files_that_cannot_be_read_are_sentences(tmp_path: Path) -> None:
    for name in ("none.bin", "none.hex"):
        with pytest.raises(DataError, match="cannot be read"):
            list(chunks_of(tmp_path / name))
    (tmp_path / "binary.hex").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="no text of hexadecimal digits"):
        list(chunks_of(tmp_path / "binary.hex"))


def test_a_publisher_refuses_files_with_rubbish_in_words() -> None:
    with pytest.raises(ConfigError, match=r"source\.gbase\.dirty is for finished files.*eventlog convert"):
        gbase_reader(GBaseSettings(path="stream.hex", dirty=True))


def test_a_table_is_found_by_its_number_in_the_schema_file() -> None:
    known = Catalog([Table(name=f"t{number}", columns=(Column(name="c1", key=1),), number=number) for number in (4, 5)])
    layout = layout_of(5, "c1 integer")
    assert table_of(5, layout, GBaseSettings(), known).name == "t5"
    assert table_of(6, layout, GBaseSettings(), known).name == "table_6"
