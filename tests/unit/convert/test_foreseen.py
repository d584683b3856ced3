"""What a conversion can know before it begins: a column that is missing."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from eventlog.convert.inputs import units
from eventlog.convert.settings import FilesInput
from eventlog.core.errors import DataError
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
