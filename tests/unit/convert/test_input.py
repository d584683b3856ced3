"""Input files of a conversion: found, cut into units, read from all formats, refused by name and place when damaged."""

from __future__ import annotations

import gzip
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eventlog.convert import inputs
from eventlog.convert.inputs import units
from eventlog.convert.reading import read
from eventlog.convert.rows import ROWS
from eventlog.convert.settings import FilesInput
from eventlog.core.errors import DataError
from eventlog.sql.names import NEW_ORDER, STANDARD
from tests.support.converting import LogRow, log_row, write_csv, write_lines, write_parquet

texts = st.none() | st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["", "\\N", '"', "a,b", "\r\n"])


@st.composite
def log_rows(draw: st.DrawFn) -> list[LogRow]:
    return [
        log_row(number, event_type=draw(st.none() | st.integers(-9, 9)), old_value=draw(texts), new_value=draw(texts))
        for number in range(1, draw(st.integers(1, 6)))
    ]


def rows_of(*places: Path) -> list[dict[str, Any]]:
    files = FilesInput(places=tuple(map(str, places)))
    batches = [batch for unit in units(files) for batch in read(unit)]
    assert all(batch.schema == ROWS for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def without_problem(rows: list[dict[str, Any]]) -> list[LogRow]:
    assert [row["problem"] for row in rows] == [None] * len(rows)
    return [{name: row[name] for name in STANDARD} for row in rows]


@pytest.mark.parametrize("columns", [STANDARD, NEW_ORDER, tuple(reversed(STANDARD))])
@given(rows=log_rows())
def test_every_format_gives_back_the_rows(
    tmp_path_factory: pytest.TempPathFactory, columns: tuple[str, ...], rows: list[LogRow]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    plain = [
        row if row["new_value"] != "\\N" and row["old_value"] != "\\N" else log_row(row["record_id"]) for row in rows
    ]
    assert without_problem(rows_of(write_parquet(folder / "a.parquet", rows, columns))) == rows
    assert without_problem(rows_of(write_lines(folder / "a.jsonl", rows))) == rows
    assert without_problem(rows_of(write_lines(folder / "a.jsonl.gz", rows))) == rows
    assert without_problem(rows_of(write_csv(folder / "a.csv", plain, columns))) == plain


HEADER = ",".join(STANDARD)
START = "1,N,1,2026-01-01,\\N,usr,idu=1,fname,"


@pytest.mark.parametrize(
    "values,old,new",
    [
        (",", "", ""),
        ("\\N,\\N", None, None),
        ('"\\N",""', "\\N", ""),
        ('"a ""b"", c",d', 'a "b", c', "d"),
        ('"two\r\nlines\n\n",x', "two\r\nlines\n\n", "x"),
        ("\\n,\\\\N", "\\n", "\\\\N"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_csv_tells_null_from_empty_and_reads_quotes(
    tmp_path: Path, values: str, old: str | None, new: str | None, end: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"\ufeff{HEADER}\r\n{START}{values}{end}", newline="")
    [row] = rows_of(file)
    assert (row["old_value"], row["new_value"]) == (old, new)


@pytest.mark.parametrize("block", [1, 50, 1 << 20])
def test_records_may_lie_across_blocks(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.convert.lines.BLOCK_BYTES", block)
    rows = [log_row(number, new_value=f'é "{number}"\n,', old_value="x" * number) for number in range(1, 41)]
    assert without_problem(rows_of(write_csv(tmp_path / "a.csv", rows))) == rows
    assert without_problem(rows_of(write_lines(tmp_path / "b.jsonl", rows))) == rows


@given(size=st.integers(1, 600), count=st.integers(0, 8))
def test_a_file_of_lines_is_cut_into_units_that_give_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, size: int, count: int
) -> None:
    rows = [log_row(number, new_value="é" * number) for number in range(1, count + 1)]
    file = write_lines(tmp_path_factory.mktemp("rows") / "a.jsonl", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "UNIT_BYTES", size)
        assert without_problem(rows_of(file)) == rows


def test_numbers_in_json_may_be_strings_and_texts_numbers(tmp_path: Path) -> None:
    line = '{"record_id": "7", "event_type": 1, "old_value": 1.10, "new_value": true, "perpetrator": {"a": [1]}, "more": 1}'
    (tmp_path / "a.jsonl").write_text(line + "\n\n")
    [row] = rows_of(tmp_path / "a.jsonl")
    told = [row[name] for name in ("record_id", "event_type", "old_value", "new_value", "perpetrator", "table_name")]
    assert told == [7, 1, "1.10", "true", '{"a":[1]}', None]


def test_parquet_of_other_types_is_read(tmp_path: Path) -> None:
    import datetime as dt

    columns = {key: ["1"] for key in STANDARD} | {
        "record_id": pa.array([Decimal(12)], pa.decimal128(20, 0)),
        "event_type": pa.array(["6"]).dictionary_encode(),
        "event_time": pa.array([dt.datetime(2026, 1, 1, 12)], pa.timestamp("us")),
        "old_value": pa.array([b"bytes"]),
        "new_value": pa.array([1.5]),
        "reason": ["extra"],
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    [row] = rows_of(tmp_path / "a.parquet")
    assert (row["record_id"], row["event_type"], row["old_value"], row["new_value"]) == (12, 6, "bytes", "1.5")
    assert row["event_time"].startswith("2026-01-01 12:00:00")


def test_bytes_that_are_no_text_are_the_problem_of_their_row(tmp_path: Path) -> None:
    columns = {key: ["1", "2"] for key in STANDARD} | {"record_id": [1, 2], "event_type": [1, 1]}
    columns["new_value"] = pa.array([b"fine", b"\xff"], pa.binary())
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert [row["problem"] for row in rows_of(tmp_path / "a.parquet")] == [None, "new_value is not UTF-8 text."]


@pytest.mark.parametrize(
    "name,content,said",
    [
        ("a.parquet", b"PAR1 and nothing of it", r"a\.parquet cannot be read: .+"),
        ("a.csv", b"record_id,status\n1,N\n", r"a\.csv has no column event_type, event_time, .*new_value\."),
        ("a.csv", b"", r"a\.csv has no header line\."),
        ("a.csv", f"{HEADER}\r{START}a,b\r".encode(), r"a\.csv: its lines end with a carriage return alone\."),
        ("a.csv", f"{HEADER}\n{START}a,b\n\n{START}a\n".encode(), r"a\.csv, line 4: there are 9 fields, .+ names 10\."),
        (
            "a.csv",
            f'{HEADER}\n{START}a,b\n{START}a,"b\n'.encode(),
            r"line 3: a quote that opens here is never closed\.",
        ),
        ("a.csv", f'{HEADER}\n{START}a,b"c"\n'.encode(), r"line 2: a quote is where none can"),
        ("a.csv", f'{HEADER}\n{START}a,"b"c\n'.encode(), r"line 2: a quote is where none can"),
        ("a.csv", f"{HEADER}\n{START}a,b\n{START}a,".encode() + b"\xff\n", r"line 3: the text is not UTF-8\."),
        ("a.jsonl", b'{"record_id": 1}\n{"record_id": 2\n', r"a\.jsonl, line 2: .+"),
        ("a.jsonl", b'{"record_id": 1}\n{"old_value": ' + b"[" * 99_999, r"a\.jsonl, line 2: maximum recursion depth"),
        ("a.jsonl", b'{"record_id": 1}\n[1]\n', r"a\.jsonl, line 2: Expected `object`"),
        ("a.jsonl.gz", gzip.compress(b'{"record_id": 1}\n' * 999, mtime=0)[:-9], r"a\.jsonl\.gz cannot be read: "),
        ("a.csv.gz", b"not packed", r"a\.csv\.gz cannot be read: Not a gzipped file"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        rows_of(tmp_path / name)
    assert re.search(said, str(error.value)), error.value
    assert error.value.exit_code == 65


@pytest.mark.parametrize("exponent", ["999999", "+0000999999999", "-999999999", "9" * 5000])
def test_a_number_of_too_many_digits_stays_as_it_is_written(tmp_path: Path, exponent: str) -> None:
    """A few bytes became a gigabyte, an endless conversion, or a fault."""
    number = f"1E{exponent}"
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"record_id": 1, "new_value": {number}}}\n{{"record_id": {number}, "new_value": 1.50e2}}\n')
    first, second = rows_of(path)
    assert (first["new_value"], second["new_value"]) == (number, "150")
    assert (second["record_id"], "only whole numbers identify a row" in second["problem"]) == (None, True)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_times_of_a_place_are_told_in_utc_and_others_stay(suffix: str, tmp_path: Path) -> None:
    """A time that says its zone, one that is none and one that is missing are for the rules."""
    times = ["2025-07-15T12:00:00", "2025-01-15 12:00:00.250000", "2025-07-15 12:00:00Z", "soon", None]
    rows = [log_row(number, event_time=time) for number, time in enumerate([*times, times[0]])]
    writers: dict[str, Any] = {"parquet": write_parquet, "csv": write_csv, "jsonl": write_lines}
    path = writers[suffix](tmp_path / f"rows.{suffix}", rows)
    [unit] = units(FilesInput(places=(str(path),)))
    found = [time for batch in read(unit, clock="Europe/Berlin") for time in batch.column("event_time").to_pylist()]
    utc = "2025-07-15 10:00:00"
    assert found == [utc, "2025-01-15 11:00:00.250000", times[2], "soon", None, utc]
    plain = [time for batch in read(unit) for time in batch.column("event_time").to_pylist()]
    assert plain == [*times, times[0]]
