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

from eventlog.convert.inputs import Unit
from eventlog.convert.partitions import PartitionFile
from eventlog.convert.tasks import DecidedBucket, UnitNumbers
from eventlog.core.errors import SourceError
from eventlog_spark.cutting import Cut, boundaries, cut
from eventlog_spark.deciding import BucketResult, together
from eventlog_spark.exchange import NOTES, ROWS, Bundle, Scattering, scattered, unbundled, unpacked
from tests.spark.inputs import Row, order, write_rows

notes = st.builds(UnitNumbers, rows=st.integers(1, 2_000_000), sampled=st.lists(st.integers(-(2**63), 2**63 - 1)))


def rows(first: int, last: int) -> list[Row]:
    return [(n, "N", 4, "2026-01-01", None, "usr", "idu=1", None, None, None) for n in range(first, last + 1)]


@given(st.lists(notes, max_size=6), st.randoms())
def test_boundaries_ascend_lie_among_the_rows_and_are_the_same_for_each_bucket(
    noted: list[UnitNumbers], random: Random
) -> None:
    places = boundaries(noted)
    assert all(one < following for one, following in pairwise(places))
    assert set(places) <= {number for one in noted for number in one.sampled}
    assert boundaries(random.sample(noted, len(noted))) == places


def test_many_rows_are_cut_into_ranges_of_like_size() -> None:
    places = boundaries([UnitNumbers(rows=1_000_000, sampled=list(range(1, 1_000_000, 8_000)))])
    widths = [following - one for one, following in pairwise([1, *places, 1_000_000])]
    assert len(widths) >= 10
    assert max(widths) < 2 * min(widths)


def test_every_bucket_is_told_where_the_numbers_lie(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet", rows(1, 10))
    write_rows(tmp_path / "b.csv.gz", rows(100, 120))
    conversion = order(tmp_path, tmp_path / "out")
    with cut(conversion) as found:
        assert found.total is None
        work = Scattering(conversion=conversion, pieces=found.pieces, buckets=4)
        places = pa.RecordBatch.from_arrays([pa.array(range(len(found.pieces)))], names=["id"])
        sent = [blob for batch in scattered(work, lambda _: None, iter([places])) for blob in unbundled(batch)]
    noted = [(blob.bucket, msgspec.json.decode(blob.content, type=UnitNumbers)) for blob in sent if blob.kind == NOTES]
    assert sorted((bucket, one.lowest, one.highest, one.rows) for bucket, one in noted) == [
        told for bucket in range(4) for told in ((bucket, 1, 10, 10), (bucket, 100, 120, 21))
    ]
    assert all(one.sampled for _, one in noted)


def test_buckets_that_were_told_different_things_are_not_put_together() -> None:
    empty = PartitionFile(path="", labels=(), rows=())
    decided = DecidedBucket(rendered=empty, ended=empty, outcomes={})
    answers = [msgspec.json.encode(BucketResult(decided=decided, boundaries=cut)) for cut in ((5,), (5,), (6,))]
    assert len(together(answers[:2]).buckets) == 2
    with pytest.raises(SourceError, match="read twice and had changed"):
        together(answers)


@given(st.integers(0, 10**11))
def test_buckets_are_a_power_of_two_and_not_too_many(count: int) -> None:
    buckets = Cut(pieces=(Unit(path="a", kind="parquet"),), rows=count).buckets
    assert 1 <= buckets <= 1_024
    assert buckets & (buckets - 1) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.text(max_size=3)))))
def test_what_goes_through_the_shuffle_arrives_as_it_was(sent: list[tuple[int, list[str]]]) -> None:
    bundle = Bundle(ROWS)
    for bucket, texts in sent:
        bundle.write(bucket, pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["text"]))
    arrived = [blob for batch in bundle.rest() for blob in unbundled(batch)]
    assert [(blob.bucket, blob.kind) for blob in arrived] == [(bucket, ROWS) for bucket, _ in sent]
    assert [[text for one in unpacked(blob.content) for text in one.column(0).to_pylist()] for blob in arrived] == [
        texts for _, texts in sent
    ]
