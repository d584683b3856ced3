"""Corners of GBase values and frames that no ordinary stream has."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from eventlog.core.errors import ConfigError, DataError, SourceError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.gbase.codes import in_words
from eventlog.sources.gbase.files import chunks_of
from eventlog.sources.gbase.images import spelled_as, table_of
from eventlog.sources.gbase.layout import layout_of, read_type
from eventlog.sources.gbase.records import name_of
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.source import gbase_reader
from eventlog.sources.gbase.values import TextRules, codec


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
    assert [column.name for column in spelled_as(layout, table).columns] == ["C1", "c2"]


def test_files_that_cannot_be_read_are_sentences(tmp_path: Path) -> None:
    for name in ("none.bin", "none.hex"):
        with pytest.raises(SourceError, match="cannot be read"):
            list(chunks_of(tmp_path / name))
    (tmp_path / "binary.hex").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="no text of hexadecimal digits"):
        list(chunks_of(tmp_path / "binary.hex"))


def test_a_publisher_refuses_files_with_rubbish_in_words() -> None:
    with pytest.raises(ConfigError, match=r"source\.gbase\.dirty is for finished files.*eventlog convert"):
        gbase_reader(GBaseSettings(path="stream.hex", dirty=True))
