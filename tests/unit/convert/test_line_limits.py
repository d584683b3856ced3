"""What a file of lines may take of memory: a line has a limit, and none that keeps it costs many times its bytes."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.inputs import units
from eventlog.convert.reading import read
from eventlog.convert.settings import FilesInput, SnapshotRows
from eventlog.convert.snapshot import place_rows, snapshot_files
from eventlog.core.errors import DataError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sql.names import STANDARD
from tests.support.converting import log_row, write_lines
from tests.support.cost import is_linear
from tests.support.shares import met, shares

LONG = 3_000_000
HEADER = ",".join(STANDARD)
CSV = f"{HEADER}\n1,N,1,2026-01-01,usr,usr,idu=1,fname,,"


def values_in(file: Path, limit: int = 2 * LONG) -> list[Any]:
    files = FilesInput(places=(str(file),), line_limit=limit)
    return [value for unit in units(files) for rows in read(unit) for value in rows.column("new_value").to_pylist()]


def packed(folder: Path, name: str, *texts: str) -> Path:
    file = folder / f"{name}.gz"
    with gzip.open(file, "wb", compresslevel=1) as written:
        for text in texts:
            written.write(text.encode())
    return file


@contextmanager
def memory_below(most: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


BEGINNINGS = {
    "JSON": ("a.jsonl", '{"record_id": 1}\n{"new_value": "'),
    "CSV": ("a.csv", CSV),
    "CSV in quotes": ("a.csv", CSV + '"'),
}


@pytest.mark.parametrize("which", BEGINNINGS)
def test_a_line_without_an_end_is_named_and_takes_no_memory(tmp_path: Path, which: str) -> None:
    """200 KB became 100 MB, and 2.9 MB 5.6 GB."""
    name, before = BEGINNINGS[which]
    file = packed(tmp_path, name, before, *["x" * 1_000_000] * 100)
    with (
        memory_below(30_000_000),
        pytest.raises(DataError, match=r"a\.\w+\.gz, line 2: it has more than 2,000,000 bytes"),
    ):
        values_in(file, 2_000_000)


def test_a_text_in_quotes_that_never_end_has_the_limit_of_a_line(tmp_path: Path) -> None:
    file = packed(tmp_path, "a.csv", f'{HEADER}\n\n{CSV.splitlines()[1]}"', *["line\n" * 1000] * 1000)
    with pytest.raises(DataError, match=r"a\.csv\.gz, line 3: it has more than 1,000,000 bytes"):
        values_in(file, 1_000_000)


LONG_VALUES = {
    "letters in CSV": ("a.csv", CSV, f'"{"x" * LONG}"', "x" * LONG),
    "quotes in CSV": ("a.csv", CSV, '"' * (LONG + 2), '"' * (LONG // 2)),
    "letters in JSON": ("a.jsonl", '{"new_value": ', f'"{"x" * LONG}"}}', "x" * LONG),
    "lists in JSON": ("a.jsonl", '{"new_value": ', f"[{'[], ' * (LONG // 4)}1.50]}}", f"[{'[],' * (LONG // 4)}1.50]"),
}


@pytest.mark.parametrize("which", LONG_VALUES)
def test_a_long_value_costs_a_few_times_its_bytes(tmp_path: Path, which: str) -> None:
    """A quoted value took a hundred bytes for each of its letters, a list thirty for each of its lists."""
    name, before, text, value = LONG_VALUES[which]
    file = packed(tmp_path, name, before, text, "\n")
    with memory_below(12 * LONG):
        assert values_in(file) == [value]


def test_a_text_of_many_lines_is_read_in_linear_time(tmp_path: Path) -> None:
    def reading(lines: int) -> Any:
        return partial(values_in, packed(tmp_path, f"{lines}.csv", CSV, '"', "\n" * lines, '"\n'))

    assert is_linear(reading, 20_000)


@shares(read=0.1, refused=0.2)
@given(lengths=st.lists(st.integers(0, 400), max_size=12), limit=st.integers(200, 900), unit=st.integers(1, 2000))
def test_lines_up_to_the_limit_are_read_and_the_first_longer_one_is_named(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], limit: int, unit: int
) -> None:
    rows = [log_row(number, new_value='"\n' * (length // 2)) for number, length in enumerate(lengths)]
    file = write_lines(tmp_path_factory.mktemp("rows") / "a.jsonl", rows)
    over = [number for number, line in enumerate(file.read_bytes().splitlines(), 1) if len(line) > limit]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlog.convert.lines.BLOCK_BYTES", 1)  # several lines in a block are read in any case
        patch.setattr("eventlog.convert.inputs.UNIT_BYTES", unit)
        met(read=not over, refused=bool(over))
        if not over:
            assert values_in(file, limit) == [row["new_value"] for row in rows]
            return
        with pytest.raises(DataError, match=rf"a\.jsonl, line {over[0]}: it has more than {limit} bytes"):
            values_in(file, limit)


def test_a_snapshot_has_the_same_limit(tmp_path: Path) -> None:
    catalog = Catalog(tables=(Table(name="usr", columns=(Column(name="id", key=1), Column(name="name"))),))
    (tmp_path / "usr.jsonl").write_text(
        "".join(json.dumps({"id": "1", "name": "x" * size}) + "\n" for size in (LONG, 1))
    )
    for limit in (2 * LONG, 1_000_000):
        [file] = snapshot_files(SnapshotRows(folder=tmp_path, line_limit=limit), catalog)
        if limit > LONG:
            [names] = [[len(name) for rows in place_rows(file, catalog) for name in rows.column("name").to_pylist()]]
            assert names == [LONG, 1]
        else:
            with pytest.raises(DataError, match=r"usr\.jsonl, line 1: it has more than 1,000,000 bytes"):
                list(place_rows(file, catalog))
