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
from eventlog.convert.plan import RANGE_BYTES
from eventlog.convert.settings import Conversion
from eventlog.convert.tasks import DecidedBucket, UnitNumbers
from eventlog.core.errors import SourceError
from eventlog_spark.cutting import Cut, boundaries, cut, task_count
from eventlog_spark.deciding import BucketResult, BucketRules, decided, together
from eventlog_spark.exchange import NOTES, ROWS, Bundle, Scattering, bundled, scattered, unbundled, unpacked
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


def test_long_rows_are_cut_into_more_ranges() -> None:
    noted = [UnitNumbers(rows=1_000, size=1_000_000_000, sampled=list(range(1_000)))]
    assert len(boundaries(noted)) == 100
    assert not boundaries([UnitNumbers(rows=1_000, sampled=list(range(1_000)))])


def test_every_task_is_told_where_the_numbers_lie(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet", rows(1, 10))
    write_rows(tmp_path / "b.csv.gz", rows(100, 120))
    conversion = order(tmp_path, tmp_path / "out")
    with cut(conversion) as found:
        assert found.total is None
        work = Scattering(conversion=conversion, pieces=found.pieces, buckets=8, tasks=4)
        places = pa.RecordBatch.from_arrays([pa.array(range(len(found.pieces)))], names=["id"])
        sent = [blob for batch in scattered(work, lambda _: None, iter([places])) for blob in unbundled(batch)]
    noted = [(blob.bucket, msgspec.json.decode(blob.content, type=UnitNumbers)) for blob in sent if blob.kind == NOTES]
    assert sorted((bucket, one.lowest, one.highest, one.rows) for bucket, one in noted) == [
        told for bucket in range(4) for told in ((bucket, 1, 10, 10), (bucket, 100, 120, 21))
    ]
    assert all(one.sampled and one.size for _, one in noted)


def test_few_rows_that_are_long_are_told_of_often_enough_to_be_cut(tmp_path: Path) -> None:
    """Every task is told of one row in thousands where rows are short: that would be one of all these."""
    long: list[Row] = [
        (n, "N", 1, "2026-01-01", "app", "usr", f"idu={n}", "fname", None, f"{n:x}" * 25_000) for n in range(4096, 5096)
    ]
    write_rows(tmp_path / "a.parquet", long)
    with cut(order(tmp_path, tmp_path / "out")) as found:
        work = Scattering(conversion=order(tmp_path, tmp_path / "out"), pieces=found.pieces, buckets=2, tasks=1)
        places = pa.RecordBatch.from_arrays([pa.array([0])], names=["id"])
        sent = [blob for batch in scattered(work, lambda _: None, iter([places])) for blob in unbundled(batch)]
    [noted] = [msgspec.json.decode(blob.content, type=UnitNumbers) for blob in sent if blob.kind == NOTES]
    starts = [4096, *boundaries([noted]), 5096]
    assert max((end - start) * 100_000 for start, end in pairwise(starts)) < 2 * RANGE_BYTES


def test_a_task_decides_each_of_its_buckets_by_itself(tmp_path: Path) -> None:
    many: list[Row] = [
        (n, "N", 1, "2026-01-01", "app", "usr", f"idu={n % 30}", "fname", None, f"{n}") for n in range(90)
    ]
    write_rows(tmp_path / "a.parquet", many)
    conversion = order(tmp_path, tmp_path / "out")
    alone, several = (_decided_by(tasks, conversion, tmp_path / f"{tasks}") for tasks in (8, 2))
    assert len(alone[0]) > 4
    assert several == alone


def _decided_by(tasks: int, conversion: Conversion, folder: Path) -> tuple[list[list[object]], object, object]:
    """What so many tasks make of eight buckets: the changes of each, and what was noted."""
    folder.mkdir()
    with cut(conversion) as found:
        work = Scattering(conversion=conversion, pieces=found.pieces, buckets=8, tasks=tasks)
        places = pa.RecordBatch.from_arrays([pa.array(range(len(found.pieces)))], names=["id"])
        sent = [blob for batch in scattered(work, lambda _: None, iter([places])) for blob in unbundled(batch)]
    rules, answers = BucketRules(conversion=conversion, folder=str(folder)), list[BucketResult]()
    for task in range(tasks):
        mine = bundled([blob for blob in sent if blob.bucket % tasks == task])
        told = [blob for batch in decided(rules, iter([mine])) for blob in unbundled(batch)]
        answers += [msgspec.json.decode(blob.content, type=BucketResult) for blob in told]
    changes: list[list[object]] = [[batch.to_pylist() for batch in one.decided.rendered.read()] for one in answers]
    return sorted(changes, key=str), [one.noted for one in answers if one.noted], answers[0].boundaries


def test_buckets_that_were_told_different_things_are_not_put_together() -> None:
    empty = PartitionFile(path="", labels=(), rows=(), places=(), sizes=())
    decided = DecidedBucket(rendered=empty, ended=empty, outcomes={})
    answers = [msgspec.json.encode(BucketResult(decided=decided, boundaries=cut)) for cut in ((5,), (5,), (6,))]
    assert len(together(answers[:2]).buckets) == 2
    with pytest.raises(SourceError, match="read twice and had changed"):
        together(answers)


@given(st.integers(0, 10**11), st.integers(0, 10**15))
def test_buckets_are_a_power_of_two_and_not_too_many(count: int, size: int) -> None:
    buckets = Cut(pieces=(Unit(path="a", kind="parquet"),), rows=count, size=size).buckets
    assert 1 <= buckets <= 1_024
    assert buckets & (buckets - 1) == 0


def test_long_rows_make_more_buckets(tmp_path: Path) -> None:
    long = [(*row[:-1], str(row[0]) * 20_000_000) for row in rows(1, 4)]
    write_rows(tmp_path / "a.parquet", long)
    with cut(order(tmp_path, tmp_path / "out")) as found:
        assert found.buckets == 8


@given(st.integers(0, 5_000), st.integers(1, 200))
def test_a_task_gets_several_pieces_where_cores_have_enough_to_do(pieces: int, cores: int) -> None:
    tasks = task_count(pieces, cores)
    assert tasks <= pieces <= 4 * tasks
    assert tasks >= min(pieces, 4 * cores)
    assert task_count(4_000, cores) == max(1_000, 4 * cores)


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
