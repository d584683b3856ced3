"""How files of change tables are written: presets and settings, JSON, names by time, full loads in files of their own."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.model import Op, Transaction
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import ChangeColumn, RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.sinks.change_files.row_files import file_bytes, json_lines
from eventlog.sinks.change_files.settings import RowFiles, RowFileSettings
from eventlog.sinks.change_files.sink import ChangeTableFiles
from tests.support.changerows import AT, CATALOG, CSV, JSON, documents, told
from tests.support.sinks import opened

QLIK = RowFileSettings(preset="qlik")
ADD = told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5")
EMPTY = told(2, Op.ADD, 2, fname="")
LOADED = replace(told(3, Op.MODIFY, 3, fname=("\\N", 'a "b"'), pay=(None, None)), refresh=True)


def made(*changes: Any, loads: bool = True, after: str = "", **chosen: Any) -> list[RowsDocument]:
    form = ChangeTableFormat(settings=ChangeTableSettings(**chosen), loads=loads)
    return [one for one in encode(form, changes, CATALOG, after) if isinstance(one, RowsDocument)]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")


def test_json_has_a_line_for_each_row_with_values_as_in_messages(tmp_path: Path) -> None:
    opened(ChangeTableFiles(tmp_path, JSON)).commit("", documents(ADD, EMPTY))
    [file] = (tmp_path / "usr__ct").glob("*.json")
    first, second = map(json.loads, file.read_bytes().splitlines())
    assert list(first)[:3] == ["header__change_seq", "header__change_oper", "header__change_mask"]
    assert first | {"header__change_mask": "0F80", "header__timestamp": "2024-05-06 07:08:09.120000"} == first
    assert first | {"idu": 1, "pay": "1.50", "photo": "AAAA", "since": "2026-01-02 03:04:05.500000"} == first
    assert (second["fname"], second["pay"]) == ("", None)


def test_json_says_what_is_no_number_in_words_and_half_characters_as_escapes() -> None:
    columns = [ChangeColumn(name="r", type="float8"), ChangeColumn(name="t", type="text")]
    cells = ([float("nan"), float("inf"), float("-inf"), None, 0.5], ["a", "b", "c", "d", "half \ud83d"])
    found = [json.loads(line) for line in json_lines(columns, cells).splitlines()]
    assert [one["r"] for one in found] == ["NaN", "Infinity", "-Infinity", None, 0.5]
    assert found[-1]["t"] == "half \ud83d"


CELLS = st.sampled_from(
    [
        *(
            None,
            "",
            "\\N",
            "a",
            "a,b",
            'say "b"',
            "two\nlines",
            "\r",
            "0",
            "half \ud83d",
            0,
            -1,
            True,
            0.5,
            float("nan"),
        ),
        *(
            Decimal("1.50"),
            Decimal("1E+3"),
            dt.date(2026, 1, 2),
            dt.time(3, 4),
            dt.datetime(2026, 1, 2, 3, 4, 5),
            b"\xaa",
        ),
    ]
)


@given(st.lists(CELLS, max_size=6) | st.lists(st.sampled_from([1, 20, None])), st.sampled_from(["\\N", "", "0", "1"]))
def test_how_a_cell_is_written_in_csv_depends_on_no_other_cell(cells: list[Any], null: str) -> None:
    column, form = ChangeColumn(name="a", type="text"), RowFiles(format="csv", header=False, null_value=null)
    apart = [file_bytes([column], [[cell]], form) for cell in cells]
    assert file_bytes([column], [cells], form) == b"".join(apart)


def test_the_preset_has_the_defaults_of_the_product(tmp_path: Path) -> None:
    sink = opened(ChangeTableFiles(tmp_path, QLIK.choose_files("csv")))
    sink.commit("", made(ADD, EMPTY, LOADED))
    assert names(tmp_path) == [
        "_position.json",
        "usr/LOAD00000001.csv.gz",
        "usr/LOAD00000001.dfm",
        "usr__ct/20240506-070809120.csv.gz",
        "usr__ct/20240506-070809120.dfm",
    ]
    lines = gzip.decompress((tmp_path / "usr__ct/20240506-070809120.csv.gz").read_bytes()).decode().splitlines()
    assert lines[1].endswith(',2,"",,,')  # the empty string has quotes, NULL is nothing
    assert gzip.decompress((tmp_path / "usr/LOAD00000001.csv.gz").read_bytes()) == b'3,"a ""b""",,,\n'
    said = json.loads((tmp_path / "usr/LOAD00000001.dfm").read_bytes())
    assert said["fileInfo"] | {"name": "LOAD00000001.csv", "extension": "gz", "content": "data"} == said["fileInfo"]
    assert said["fileInfo"]["firstTransactionTimestamp"] == ""
    assert [column["name"] for column in said["dataInfo"]["columns"]][:2] == ["idu", "fname"]
    assert said["dataInfo"]["targetTable"] == "usr"
    changes = json.loads((tmp_path / "usr__ct/20240506-070809120.dfm").read_bytes())
    assert changes["fileInfo"]["firstTransactionTimestamp"] == "2024-05-06T07:08:09.120"
    assert (changes["fileInfo"]["content"], changes["formatInfo"]["options"]["nullValue"]) == ("changes", "")


def test_names_by_time_are_given_once_and_again_to_who_repeats(tmp_path: Path) -> None:
    form = replace(CSV, names="time")
    first = made(ADD)
    second = made(EMPTY, told(9, Op.ADD, 1, "grp", name="x"), after=first[-1].id)
    for _ in range(2):
        opened(ChangeTableFiles(tmp_path, form)).commit("a", first)
    opened(ChangeTableFiles(tmp_path, form)).commit("b", second)
    assert [name for name in names(tmp_path) if name.endswith(".csv")] == [
        "grp__ct/20240506-070809122.csv",
        "usr__ct/20240506-070809120.csv",
        "usr__ct/20240506-070809121.csv",
    ]


def test_the_next_millisecond_may_be_in_the_next_year(tmp_path: Path) -> None:
    form = replace(CSV, names="time")
    late = replace(ADD, transaction=Transaction(id=1, time=dt.datetime(2024, 12, 31, 23, 59, 59, 999_000)))
    sink = opened(ChangeTableFiles(tmp_path, form))
    for number in range(11):
        sink.commit("", made(late, after="" if not number else sink.last()))
    assert max(path.stem for path in tmp_path.rglob("*.csv")) == "20250101-000000000"


def test_loads_count_on_and_have_no_partition(tmp_path: Path) -> None:
    form = replace(CSV, full_load="files")
    first = made(ADD, LOADED, partition_every=60)
    opened(ChangeTableFiles(tmp_path, form)).commit("", first)
    again = made(LOADED, partition_every=60, after=first[-1].id)
    opened(ChangeTableFiles(tmp_path, form)).commit("", again)
    loads = sorted((tmp_path / "usr").glob("*.csv"))
    assert [path.name for path in loads] == ["LOAD00000001.csv", "LOAD00000002.csv"]
    rows = list(csv.reader(io.StringIO(loads[1].read_text())))
    assert rows == [["idu", "fname", "pay", "photo", "since"], ["3", 'a "b"', "\\N", "\\N", "\\N"]]
    assert [path.parent.name for path in (tmp_path / "usr__ct").rglob("*.csv")] == ["20240506T070000_20240506T080000"]


def test_delimiter_quote_null_and_header_line_are_settings() -> None:
    form = RowFileSettings(delimiter="|", quote="'", null_value="NULL", header=False).choose_files("csv")
    columns = [ChangeColumn(name="a", type="text"), ChangeColumn(name="b", type="numeric")]
    cells = (["a|b", "it's", "NULL", None, 'a,"b"'], [Decimal(1), None, Decimal("1.5"), None, None])
    assert file_bytes(columns, cells, form).decode().splitlines() == [
        "'a|b'|1",
        "'it''s'|NULL",
        "'NULL'|1.5",
        "NULL|NULL",
        'a,"b"|NULL',
    ]
    assert form.format_options | {"fieldDelimiter": "|", "nullValue": "NULL", "quoteChar": "'"} == form.format_options


def test_what_is_no_text_has_quotes_too_where_it_looks_like_something_else() -> None:
    form = RowFileSettings(delimiter="-", null_value="1", header=False).choose_files("csv")
    columns = [ChangeColumn(name="a", type="date"), ChangeColumn(name="b", type="integer")]
    assert file_bytes(columns, ([AT.date()], [1]), form) == b'"2024-05-06"-"1"\n'


@pytest.mark.parametrize(
    "said, why",
    [
        ({"delimiter": "||"}, "one character"),
        ({"quote": "\n"}, "one character"),
        ({"delimiter": '"'}, "the same character"),
        ({"null_value": "a,b"}, "holds the delimiter"),
    ],
)
def test_what_no_reader_could_take_apart_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        RowFileSettings(**said)


def test_gzip_does_not_go_with_parquet_and_the_preset_leaves_it_out() -> None:
    with pytest.raises(ConfigError, match="cannot be combined with Parquet"):
        RowFileSettings(gzip=True).choose_files("parquet")
    form = QLIK.choose_files("parquet")
    assert (form.ending, form.descriptions, form.format_options) == ("parquet", "beside", {})


def test_a_mask_that_is_text_stays_it() -> None:
    columns = [ChangeColumn(name="header__change_mask", type="varchar(256)", header=True)]
    assert json_lines(columns, (["0F80"],)) == b'{"header__change_mask":"0F80"}\n'


def test_without_it_a_full_load_is_rows_among_the_others(tmp_path: Path) -> None:
    many = [replace(LOADED, row=replace(LOADED.row, key=f"idu={n}"), positions=((n,),)) for n in range(9)]
    opened(ChangeTableFiles(tmp_path, CSV)).commit("", made(*many, loads=False))
    assert {path.parent.name for path in tmp_path.rglob("*.csv")} == {"usr__ct"}
    opened(ChangeTableFiles(tmp_path / "b", CSV)).commit("", made(*many, ADD))
    assert {path.parent.name for path in (tmp_path / "b").rglob("*.csv")} == {"usr", "usr__ct"}
