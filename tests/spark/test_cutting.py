"""How a conversion is cut for Spark: pieces, buckets, and ranges that all buckets know alike."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.partitions import PartitionFile
from eventlog.convert.plan import RANGE_BYTES
from eventlog.convert.tasks import DecidedBucket, UnitNumbers, find_boundaries
from eventlog.core.errors import SourceError
from eventlog_spark.cutting import cut
from eventlog_spark.deciding import BucketResult, together
from eventlog_spark.exchange import NOTES, read_pieces, scatter_rows, unbundle_blobs
from tests.spark.inputs import Row, order, write_rows

notes = st.builds(UnitNumbers, rows=st.integers(1, 2_000_000), sampled=st.lists(st.integers(-(2**63), 2**63 - 1)))


@given(st.lists(notes, max_size=6), st.randoms())
def test_boundaries_ascend_lie_among_the_rows_and_are_the_same_for_each_bucket(
    noted: list[UnitNumbers], random: Random
) -> None:
    places, _ = find_boundaries(noted)
    assert all(one < following for one, following in pairwise(places))
    assert set(places) <= {number for one in noted for number in one.sampled}
    assert find_boundaries(random.sample(noted, len(noted)))[0] == places


def test_few_rows_that_are_long_are_told_of_often_enough_to_be_cut(tmp_path: Path) -> None:
    """Every task is told of one row in thousands where rows are short: that would be one of all these."""
    long: list[Row] = [
        (n, "N", 1, "2026-01-01", "app", "usr", f"idu={n}", "fname", None, f"{n:x}" * 25_000) for n in range(4096, 5096)
    ]
    write_rows(tmp_path / "a.parquet", long)
    with cut(order(tmp_path, tmp_path / "out")) as found:
        places = pa.RecordBatch.from_arrays([pa.array([0])], names=["id"])
        rows = read_pieces(order(tmp_path, tmp_path / "out"), found.pieces, found.taken, None, iter([places]))
        sent = [blob for batch in scatter_rows(None, 2, 1, rows) for blob in unbundle_blobs(batch)]
    [noted] = [msgspec.json.decode(blob.content, type=UnitNumbers) for blob in sent if blob.kind == NOTES]
    starts = [4096, *find_boundaries([noted])[0], 5096]
    assert max((end - start) * 100_000 for start, end in pairwise(starts)) < 2 * RANGE_BYTES


def test_buckets_that_were_told_different_things_are_not_put_together() -> None:
    empty = PartitionFile(path="", batches=b"")
    decided = DecidedBucket(rendered=empty, ended=empty, outcomes={})
    answers = [msgspec.json.encode(BucketResult(decided=decided, boundaries=cut)) for cut in ((5,), (5,), (6,))]
    assert len(together(answers[:2]).buckets) == 2
    with pytest.raises(SourceError, match="read twice and had changed"):
        together(answers)


def test_long_rows_make_more_buckets(tmp_path: Path) -> None:
    long: list[Row] = [
        (n, "N", 4, "2026-01-01", None, "usr", "idu=1", None, None, str(n) * 20_000_000) for n in range(1, 5)
    ]
    write_rows(tmp_path / "a.parquet", long)
    with cut(order(tmp_path, tmp_path / "out")) as found:
        assert found.buckets == 8
