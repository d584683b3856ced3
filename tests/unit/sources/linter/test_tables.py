"""What a schema file says of LINTER's tables: types, code pages, codecs; and tables that nobody described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eventlog.core.errors import ConfigError, DataError
from eventlog.core.model import Row
from eventlog.core.registry import names
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.linter.layouts import RecordLayout, Type, describe_published, record_fields
from eventlog.sources.linter.settings import LinterSettings, ReadingSettings
from eventlog.sources.linter.tables import RawCodec, SourceTables, codec
from eventlog_streams_tools.linter.packed import PackedCodec
from tests.support.linter import NUMBER, SCHEMA, T
from tests.support.plugins import Site, site

__all__ = ["site"]


def table(*types: str, **other: Any) -> Table:
    columns = tuple(Column(name=f"C{n}", type=type_) for n, type_ in enumerate(types, 1))
    return Table(**{"name": "X", "number": 1, "columns": columns, **other})


@pytest.mark.parametrize(
    "written, type_, length",
    [
        ("CHAR(10)", Type.CHAR, 10),
        ("character varying(7)", Type.VARCHAR, 7),
        ("NCHAR VARYING (3)", Type.NVARCHAR, 3),
        ("NCHAR(3) VARYING", Type.NVARCHAR, 3),
        ("int", Type.INTEGER, 1),
        ("Double  Precision", Type.DOUBLE, 1),
        ("numeric(18, 2)", Type.DECIMAL, 18),
        ("char", Type.CHAR, 1),
    ],
)
def test_types_as_they_are_written(written: str, type_: Type, length: int) -> None:
    [field] = record_fields(table(written), "ascii", {})
    assert (field.type, field.length) == (type_, length)


@pytest.mark.parametrize("written", ["uuid", "int[]", "", "timestamp"])
def test_types_that_linter_does_not_have(written: str) -> None:
    with pytest.raises(DataError, match=r"Column C1 of X has the type .*, which LINTER does not have"):
        record_fields(table(written), "ascii", {})


def test_consumers_see_types_by_the_names_that_they_know() -> None:
    seen = describe_published(table("date", "extfile", "varbyte(7)", "int", "blob"))
    assert [column.type for column in seen.columns] == ["timestamp(2)", "varchar(512)", "varbinary(7)", "int", "blob"]


def test_code_pages_of_source_table_and_column() -> None:
    pages = {"x.c2": "cp866", "X": "koi8-r"}
    assert [field.code_page for field in record_fields(table("char", "char"), "ascii", pages)] == ["koi8-r", "cp866"]
    assert [field.code_page for field in record_fields(table("char", name="Y"), "cp1251", pages)] == ["cp1251"]


@pytest.mark.parametrize(
    "make, reason",
    [
        (lambda: ReadingSettings(code_page="cp1252x"), "'cp1252x' is no code page"),
        (lambda: ReadingSettings(code_pages={"T": "klingon"}), "'klingon' is no code page"),
        (lambda: ReadingSettings(spill_bytes=0), "must be 1 or more"),
        (lambda: LinterSettings(delete_handled=True, destination="REMOTE"), "Leave one of the two out"),
        (
            lambda: LinterSettings(delete_handled=True, variant="receiving"),
            "does not know the nodes of a receiving queue",
        ),
        (lambda: known(codecs={"WID": "raw"}), r"codecs names WID. Did you mean WIDE"),
        (lambda: known(code_pages={"T.NAM": "cp866"}), r"code_pages names T.NAM. Did you mean T.NAME"),
        (lambda: known(codec="packed"), r"no LINTER codec packed. Did you mean packed-v1"),
        (lambda: SourceTables(Catalog([T, table("int", number=NUMBER)]), ReadingSettings()), "have the same number 17"),
    ],
)
def test_settings_and_schemas_that_cannot_be_are_refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises((ConfigError, DataError), match=reason):
        make()


def known(**settings: Any) -> SourceTables:
    return SourceTables(SCHEMA, ReadingSettings(**settings))


def test_the_table_of_a_queue_is_called_after_its_variant() -> None:
    assert (LinterSettings().table, LinterSettings(variant="receiving").table) == ("DISPATCH_QUEUE", "RECEIVING_QUEUE")


def test_a_table_that_nobody_described_is_told_raw_by_its_row_ids() -> None:
    tables = SourceTables(SCHEMA, ReadingSettings())
    unknown = tables[99]
    assert unknown.row(b"\xab\xcd", 5) == {"ROWID_SRC": 5, "DATA": "abcd"}
    found = tables.catalog.find("TABLE_99")
    assert found is not None
    assert found.table.key == ("ROWID_SRC",)
    assert unknown.codec.encode({"DATA": "abcd"}) == b"\xab\xcd"


def test_tables_without_a_number_are_known_and_never_met() -> None:
    tables = SourceTables(Catalog([T, table("uuid", number=None)]), ReadingSettings(code_pages={"T.NAME": "cp866"}))
    assert list(tables) == [NUMBER]
    assert tables.catalog.find("X") is not None


def test_a_codec_may_be_chosen_by_table() -> None:
    tables = SourceTables(Catalog([T, table("int")]), ReadingSettings(codecs={"x": "raw"}))
    assert tables[1].row(b"\x01", 5) == {"ROWID_SRC": 5, "DATA": "01"}
    assert tables[1].blob(1) is None
    assert tables[NUMBER].table.key == ("ID",)


class Reversed(RawCodec):
    """A site's own codec."""

    def decode(self, data: bytes) -> Row:
        return {"C1": data[::-1].hex()}


def test_a_site_brings_its_own_codec(site: Site) -> None:
    site.install("eventlog-codecs", {"linter_codecs": {"site": f"{__name__}:Reversed", "odd": f"{__name__}:NUMBER"}})
    layout = RecordLayout(table=T, fields=())
    assert codec("site")(layout).decode(b"\x01\x02") == {"C1": "0201"}
    with pytest.raises(ConfigError, match=r"codec of LINTER odd of the package eventlog-codecs 1.0 cannot be used"):
        codec("odd")


def test_our_codecs_come_in_as_those_of_sites_do() -> None:
    assert names("linter_codecs") == ["packed-v1", "raw"]
    assert (codec("raw"), codec("packed-v1")) == (RawCodec, PackedCodec)
    with pytest.raises(ConfigError, match=r"There is no LINTER codec packed-v2. Did you mean packed-v1"):
        codec("packed-v2")
