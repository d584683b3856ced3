"""What a conversion can know before it begins: a column that is missing, and rows that nobody can read back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert.inputs import units
from eventlog.convert.reasons import foreseen
from eventlog.convert.settings import Conversion, FilesInput, SnapshotRows
from eventlog.core.errors import DataError
from eventlog.core.schema import Catalog
from eventlog.sql.names import STANDARD

SHORT = [name for name in STANDARD if name != "table_key"]


def written(path: Path, columns: list[str]) -> Path:
    """A file with these columns, as its name says."""
    text = ",".join(columns) + "\n"
    if path.suffix == ".parquet":
        parquet.write_table(pa.table({name: pa.array(["1"]) for name in columns}), path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8-sig")
    return path


@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.parquet"])
def test_a_missing_column_is_told_before_any_file_is_read(tmp_path: Path, name: str) -> None:
    written(tmp_path / "a.csv", list(STANDARD))
    assert len(units(FilesInput(places=(str(tmp_path),)))) == 1
    wrong = written(tmp_path / name, SHORT)
    with pytest.raises(DataError) as refused:
        units(FilesInput(places=(str(tmp_path),)))
    assert str(refused.value).startswith(f"{wrong} has no column table_key. It needs the ten columns")


@pytest.mark.parametrize("content", [b"", b"\xff\xff"])
def test_what_else_is_wrong_with_a_file_says_who_reads_it(tmp_path: Path, content: bytes) -> None:
    for name in ("a.csv", "b.csv.gz"):
        (tmp_path / name).write_bytes(content)
    assert len(units(FilesInput(places=(str(tmp_path),)))) == 2


def test_rows_that_nothing_can_be_read_back_for_are_said_before_the_work(tmp_path: Path) -> None:
    names = ("record_id", "event_type", "event_time", "table_name", "table_key")
    lines = [dict(zip(names, (kind, kind, "2025-03-23", "usr", "idu=1"), strict=True)) for kind in (1, 5, 6, 7, 9)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    files = FilesInput(places=(str(tmp_path / "rows.jsonl"),))
    conversion = Conversion(input=files, destination=tmp_path / "out")
    assert foreseen(conversion) == (
        "3 of the first 5 rows must be read back from their tables."
        " Without --database URL or --snapshot DIR such rows end as E."
    )
    image = {**lines[1], "new_value": '["1","Jack"]'}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(image)}\n")
    assert foreseen(conversion) is None, "an image says itself what its object looks like"
    answered = replace(conversion, read_back=SnapshotRows(folder=tmp_path), catalog=Catalog(()))
    assert foreseen(answered) is None
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(lines[0])}\n")
    assert foreseen(conversion) is None
