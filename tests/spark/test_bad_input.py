"""Files that are not as they should be, at an address: what the local engine says of them, and the same outcomes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from eventlog.convert import local
from eventlog.convert.commit import OUTCOMES_FILE, Summary
from eventlog.core.errors import DataError
from eventlog.sql.names import STANDARD
from eventlog_spark.addresses import Addresses, convert_at
from tests.spark.inputs import Row, order, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def row(number: int, key: str = "idu=1", value: str = "x") -> Row:
    return number, "N", 2, "2026-01-01 00:00:00", "app", "usr", key, "fname", None, value


def write_columns(path: Path, rows: list[Row], **other: Any) -> None:
    """A Parquet file with some columns of other types, or without those that are None."""
    columns = {name: [one[place] for one in rows] for place, name in enumerate(STANDARD)} | other
    parquet.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)


def there(folder: Path) -> Summary:
    return convert_at(
        order(folder / "in", folder / "nowhere"),
        Addresses(destination=f"file:{folder}/out", inputs=(f"file:{folder}/in",)),
    )


def test_files_that_differ_give_the_outcomes_of_the_local_engine(spark: SparkSession, tmp_path: Path) -> None:
    """In types, in what cannot be a number, in the object that a number stands at, in size, and in odd names."""
    place = tmp_path / "in"
    (place / "status=S").mkdir(parents=True)
    write_rows(place / "a {1}[2]*.parquet", [row(1), row(2), row(3), row(4, value="one")])
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
    assert there(tmp_path) == here
    assert here.bad > 0
    assert here.duplicates == 1
    names = (OUTCOMES_FILE, "part-00000.xml")
    first, second = ([tmp_path / folder / name for name in names] for folder in ("here", "out"))
    assert parquet.read_table(first[0]).equals(parquet.read_table(second[0]))
    assert first[1].read_bytes() == second[1].read_bytes()


BAD: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "nothing": (
        r"a\.parquet cannot be read: it is not a Parquet file .length is too low",
        lambda path: path.write_bytes(b""),
    ),
    "text": (
        r"a\.parquet cannot be read: it is not a Parquet file",
        lambda path: path.write_text("no Parquet, but text"),
    ),
    "no status": (r"a\.parquet has no column status", lambda path: write_columns(path, [row(1)], status=None)),
    "no header": (r"b\.csv has no header line", lambda path: (path.parent / "b.csv").write_text("")),
    "half a file": (
        r"in/b\.jsonl\.gz cannot be read",
        lambda path: (path.parent / "b.jsonl.gz").write_bytes(b"\x1f\x8b\x08"),
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_none_is_named_by_its_address(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    said, write = BAD[kind]
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "z.parquet", [row(1)])
    write(tmp_path / "in" / "a.parquet")
    with pytest.raises(DataError, match=said):
        there(tmp_path)
    assert not list((tmp_path / "out").iterdir())


def test_a_file_of_lines_that_is_too_large_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog_spark.addresses.LARGEST_BYTES", 10)
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.csv", [row(1)])
    with pytest.raises(DataError, match=r"a\.csv has \d+ bytes; Spark reads such files up to 2 GB"):
        there(tmp_path)
