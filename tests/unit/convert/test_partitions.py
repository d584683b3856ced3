"""Files of labelled batches: what is read under a label is what was written under it, in that order."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.partitions import PartitionFile, partition_file, read_label, within

SCHEMA = pa.schema([("number", pa.int64())])
BATCHES = st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 99), min_size=1, max_size=3)), max_size=12)


def written(folder: str, batches: list[tuple[int, list[int]]]) -> PartitionFile:
    with partition_file(Path(folder) / "rows.arrow", SCHEMA) as writer:
        for label, numbers in batches:
            writer.write(label, pa.record_batch([pa.array(numbers)], schema=SCHEMA))
    return writer.finished()


def numbers_in(files: list[PartitionFile], label: int) -> list[int]:
    return [number for batch in read_label(files, label) for number in batch.column(0).to_pylist()]


@given(BATCHES, st.integers(0, 5), st.integers(0, 5))
def test_a_label_has_what_was_written_under_it(batches: list[tuple[int, list[int]]], first: int, last: int) -> None:
    with TemporaryDirectory() as folder:
        file = written(folder, batches)
        parts = list(within([file], first, last))
        for label in range(6):
            numbers = [number for other, several in batches if other == label for number in several]
            assert numbers_in([file], label) == numbers
            assert file.counted().get(label, 0) == len(numbers)
            assert numbers_in(parts, label) == (numbers if first <= label <= last else [])


def test_a_batch_is_known_by_32_bytes(tmp_path: Path) -> None:
    """Hundreds of files have hundreds of batches each, and all are known at the same time."""
    few = written(str(tmp_path), [(7, [1])])
    many = written(str(tmp_path), [(number, [1]) for number in range(1_000)])
    assert len(pickle.dumps(many)) - len(pickle.dumps(few)) < 33 * 1_000
