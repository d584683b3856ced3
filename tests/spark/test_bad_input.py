"""Files that are not as they should be: what the local engine says of them, and the same outcomes."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from eventlog.convert import local
from eventlog.convert.commit import Summary
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.core.errors import DataError
from eventlog.sql.names import STANDARD
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.convert import convert
from tests.spark.inputs import Row, order, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def row(number: int, key: str = "idu=1", value: str = "x") -> Row:
    return number, "N", 2, "2026-01-01 00:00:00", "app", "usr", key, "fname", None, value


def write_columns(path: Path, rows: list[Row], **other: Any) -> None:
    """A Parquet file with some columns of other types, or without those that are None."""
    columns = {name: [one[place] for one in rows] for place, name in enumerate(STANDARD)} | other
    parquet.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)


def at_an_address(folder: Path) -> Summary:
    return convert_at(
        order(folder / "in", folder / "nowhere"),
        Addresses(destination=f"file:{folder}/out", inputs=(f"file:{folder}/in",)),
    )


def in_a_folder(folder: Path) -> Summary:
    return convert(order(folder / "in", folder / "out"))


def test_files_that_differ_give_the_outcomes_of_the_local_engine(spark: SparkSession, tmp_path: Path) -> None:
    """In types, in what cannot be a number, in the object that a number stands at, in size, and in odd names."""
    place = tmp_path / "in"
    (place / "status=S").mkdir(parents=True)
    write_rows(place / "a {1}[2]*.parquet", [row(1), row(2), row(3), row(4, value="one"), row(0), row(-3)])
    write_rows(place / "status=S" / "b%20é#?.csv", [row(1), row(3, "idu=2"), row(4, value="two"), row(5)])
    rows = [row(0), row(0), row(0, value="\n" * 10_000_000)]
    numbers = {"record_id": ["6", "x", "99999999999999999999"], "event_type": ["2", "2", None]}
    times = [datetime(2026, 1, 1, 1, 2, 3, 456_000)] * 3
    write_columns(place / "c.parquet", rows, **numbers, event_time=times)
    prices = [Decimal("1.50"), None, Decimal("2.00")]
    write_columns(
        place / "d.parquet", [row(7), row(8), row(9)], record_id=pa.array([7, 8, 9], pa.int32()), new_value=prices
    )
    write_rows(place / "e.parquet", [])
    (place / "f.jsonl").write_text("")
    here = local.convert(order(place, tmp_path / "here"), jobs=1)
    assert at_an_address(tmp_path) == here
    assert here.bad > 0
    assert here.duplicates == 1
    names = (OUTCOMES_FILE, "part-00000.xml")
    first, second = ([tmp_path / folder / name for name in names] for folder in ("here", "out"))
    assert parquet.read_table(first[0]).equals(parquet.read_table(second[0]))
    assert first[1].read_bytes() == second[1].read_bytes()


def damaged(folder: Path) -> None:
    path = write_rows(folder / "a.parquet", [row(number, value=f"new {number}") for number in range(20_000)])
    content = bytearray(path.read_bytes())
    content[1_000:30_000] = bytes(29_000)
    path.write_bytes(content)


def never_closed(folder: Path) -> None:
    text = write_rows(folder / "a.csv", [row(number, value=f"new {number}") for number in range(1, 51)]).read_text()
    (folder / "a.csv").write_text(text.replace(",new 30\n", ',"new 30\n', 1))


def truncated(folder: Path) -> None:
    whole = gzip.compress(b'{"record_id": 101}\n' * 10_000)
    (folder / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])


BAD: dict[str, tuple[str, Callable[[Path], Any], Callable[[Path], Summary]]] = {
    "nothing": (
        r"a\.parquet cannot be read: it is not a Parquet file .length is too low",
        lambda folder: (folder / "a.parquet").write_bytes(b""),
        at_an_address,
    ),
    "text": (
        r"a\.parquet cannot be read: it is not a Parquet file",
        lambda folder: (folder / "a.parquet").write_text("no Parquet, but text"),
        at_an_address,
    ),
    "no status": (
        r"a\.parquet has no column status",
        lambda folder: write_columns(folder / "a.parquet", [row(1)], status=None),
        at_an_address,
    ),
    "no header": (r"b\.csv has no header line", lambda folder: (folder / "b.csv").write_text(""), at_an_address),
    "half a file": (r"in/b\.jsonl\.gz cannot be read", truncated, at_an_address),
    "no packed file": (
        r"in/b\.jsonl\.gz cannot be read: not a gzip file",
        lambda folder: (folder / "b.jsonl.gz").write_text("plain text"),
        at_an_address,
    ),
    "an open quote there": (r"in/a\.csv, line 31: a quote", never_closed, at_an_address),
    "half a file here": (r"b\.jsonl\.gz cannot be read", truncated, in_a_folder),
    "damage": (r"a\.parquet cannot be read", damaged, in_a_folder),
    "an open quote": (r"a\.csv, line 31: a quote", never_closed, in_a_folder),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_none_is_named_and_nothing_is_published(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    said, write, converted = BAD[kind]
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "z.parquet", [row(1)])
    write(tmp_path / "in")
    with pytest.raises(DataError, match=said):
        converted(tmp_path)
    assert not list((tmp_path / "out").glob("*"))
