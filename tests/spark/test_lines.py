"""Files of lines at addresses, which tasks read in pieces: the rows of the whole, or one sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert import local
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.inputs import Unit
from eventlog.convert.reading import read
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.core.errors import DataError
from eventlog.sql.clocks import UTC
from eventlog.sql.names import STANDARD
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.lines import IN_PIECES, LineRules, read_lines
from tests.spark.inputs import Row, order, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEADER = [*STANDARD]
values = st.text(st.sampled_from('a,\n"é\r{'), max_size=5)


def row(number: int, value: str) -> Row:
    return number, "N", 2, "2026-01-01 00:00:00", "app", "usr", f"idu={number % 5}", "fname", None, value


def pieces(content: bytes, size: int) -> Iterator[tuple[int, bool, list[bytes]]]:
    """The lines of the pieces of a file, as Hadoop gives them: those that begin in a piece, but the first one behind it too."""
    starts = [0]
    starts += [place + 1 for place, byte in enumerate(content[:-1]) if byte == 10]
    for start in range(0, len(content), size):
        end = start + size
        mine = [place for place in starts if (start < place or not start) and place <= end and place < len(content)]
        yield start, end >= len(content), [content[place:].partition(b"\n")[0] for place in mine]


def batches_of(file: Path, size: int) -> Iterator[pa.RecordBatch]:
    for start, is_last, lines in pieces(file.read_bytes(), size):
        # Spark cuts where it likes.
        for several in ([], lines[:3], lines[3:]):
            columns = [
                pa.array(several, pa.binary()),
                pa.array([file.as_uri()] * len(several), pa.string()),
                pa.array([start] * len(several), pa.int64()),
                pa.array([is_last] * len(several), pa.bool_()),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["value", "file", "start", "is_last"])


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    return [found for batch in batches for found in batch.to_pylist()]


def name_of(file: Path) -> str:
    return f"file:{file}"


def breaks_in_quotes(content: bytes) -> bool:
    return any(content[:place].count(b'"') % 2 for place, byte in enumerate(content) if byte == 10)


@given(rows=st.lists(values, max_size=12), size=st.integers(1, 400), kind=st.sampled_from(["csv", "jsonl"]))
def test_pieces_have_the_rows_of_the_file_or_say_that_they_are_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], size: int, kind: str
) -> None:
    file = write_rows(tmp_path_factory.mktemp("in") / f"a.{kind}", [row(*one) for one in enumerate(rows, 1)])
    rules = LineRules(headers={name_of(file): HEADER}, large=frozenset({name_of(file)}), clock=UTC, line_limit=10_000)
    noted: dict[tuple[str, int], int] = {}
    here = rows_of(read(Unit(path=str(file), kind="csv" if kind == "csv" else "lines")))
    content = file.read_bytes()
    try:
        found, failed = rows_of(read_lines(rules, noted.update, batches_of(file, size))), ""
    except DataError as error:
        found, failed = rows_of(read_lines(rules, noted.update, batches_of(file, len(content)))), error.message
    assert bool(failed) <= (IN_PIECES in failed and kind == "csv" and breaks_in_quotes(content))
    assert found == here
    # The last line has an end of its own, or is counted with one.
    assert sum(noted.values()) >= len(content)


@pytest.fixture
def small(spark: SparkSession) -> Iterator[None]:
    """Spark cuts files into pieces of a few lines."""
    from eventlog_spark.cluster import configured

    with (
        configured(spark, "spark.sql.files.maxPartitionBytes", "300"),
        configured(spark, "spark.sql.files.openCostInBytes", "300"),
    ):
        yield


def at_an_address(folder: Path, conversion: Conversion) -> object:
    inputs = (f"file:{folder}/in",)
    return convert_at(conversion, Addresses(destination=f"file:{folder}/out", inputs=inputs))


CASES = {
    "lines": ("a b.jsonl", "x", False),
    "values with quotes": ("a.csv", 'say "no", please', False),
    "line breaks in quotes": ("é.csv", "\n" * 301, True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_in_pieces_gives_the_bytes_of_the_local_engine(
    spark: SparkSession, small: None, tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    name, value, is_whole = CASES[case]
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / name, [row(number, value) for number in range(1, 40)])
    write_rows(tmp_path / "in" / "z.jsonl.gz", [row(number, value) for number in range(40, 50)])
    made = replace(order(tmp_path / "in", tmp_path / "here"), input=FilesInput(places=(str(tmp_path / "in"),)))
    here = local.convert(made, jobs=1)
    with caplog.at_level(logging.WARNING, "eventlog_spark"):
        assert at_an_address(tmp_path, made) == here
    assert ["one task reads each file" in message for message in caplog.messages] == [True] * is_whole
    first, second = (
        [tmp_path / folder / part for part in ("part-00000.xml", OUTCOMES_FILE)] for folder in ("here", "out")
    )
    assert first[0].read_bytes() == second[0].read_bytes()
    assert parquet.read_table(first[1]).equals(parquet.read_table(second[1]))


WRONG = {
    "a line that is none": ("a.jsonl", r"in/a\.jsonl, line 31: ", '"record_id": 31,', '"record_id" 31,'),
    "a line of other fields": ("a.csv", r"in/a\.csv, line 32: there are 11 fields", "\n31,", "\n31,,"),
    "a line that is too long": (
        "a.jsonl",
        r"in/a\.jsonl has a line of more than 5,000 bytes",
        '"record_id": 31',
        f'"a": "{"x" * 6_000}", "record_id": 31',
    ),
    "semicolons": ("a.csv", r"in/a\.csv: its columns are parted by semicolons", ",", ";"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_in_a_piece_is_named_by_its_line(
    spark: SparkSession, small: None, tmp_path: Path, case: str
) -> None:
    name, said, former, instead = WRONG[case]
    (tmp_path / "in").mkdir()
    file = write_rows(tmp_path / "in" / name, [row(number, "x") for number in range(1, 60)])
    content = file.read_text()
    assert former in content
    file.write_text(content.replace(former, instead))
    source = FilesInput(places=(str(tmp_path / "in"),), line_limit=5_000)
    with pytest.raises(DataError, match=said):
        at_an_address(tmp_path, replace(order(tmp_path / "in", tmp_path / "here"), input=source))
    assert not list((tmp_path / "out").glob("*"))
