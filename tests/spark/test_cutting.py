"""How a conversion is cut for Spark: pieces, buckets, and ranges that are known before anything runs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.inputs import Unit
from eventlog_spark.cutting import Cut, RowSpan, boundaries, cut, sampled
from eventlog_spark.exchange import ROWS, Bundle, unbundled, unpacked
from tests.spark.inputs import Row, order, write_rows

spans = st.builds(
    lambda rows, lowest, width: RowSpan(rows=rows, lowest=lowest, highest=lowest + width),
    st.integers(1, 2_000_000),
    st.integers(-(2**62), 2**61),
    st.integers(0, 2**61),
)


def rows(first: int, last: int) -> list[Row]:
    return [(n, "N", 4, "2026-01-01", None, "usr", "idu=1", None, None, None) for n in range(first, last + 1)]


@given(st.lists(spans, max_size=6))
def test_boundaries_ascend_and_lie_among_the_rows(found: list[RowSpan]) -> None:
    places = boundaries(found)
    assert all(one < following for one, following in pairwise(places))
    assert all(any(span.lowest <= place <= span.highest for span in found) for place in places)


def test_many_rows_are_cut_into_ranges_of_like_size() -> None:
    places = boundaries([RowSpan(rows=1_000_000, lowest=1, highest=1_000_000)])
    widths = [following - one for one, following in pairwise([1, *places, 1_000_000])]
    assert len(widths) >= 10
    assert max(widths) < 2 * min(widths)


def test_parquet_says_where_its_numbers_lie(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.parquet", rows(1, 10))
    write_rows(tmp_path / "b.parquet", rows(500, 503))
    with cut(order(tmp_path, tmp_path / "out")) as found:
        assert found.spans == (RowSpan(rows=10, lowest=1, highest=10), RowSpan(rows=4, lowest=500, highest=503))
        assert found.unknown == ()
        assert found.total == 14


def test_text_is_looked_at(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", rows(7, 90))
    write_rows(tmp_path / "b.csv.gz", rows(100, 120))
    conversion = order(tmp_path, tmp_path / "out")
    with cut(conversion) as found:
        assert (len(found.unknown), found.spans) == (2, ())
        assert found.total is None
        places = pa.RecordBatch.from_arrays([pa.array([0, 1])], names=["id"])
        answers = [
            answer.as_py()
            for batch in sampled(conversion, found.unknown, iter([places]))
            for answer in batch.column("content")
        ]
    looked = [span for answer in answers for span in msgspec.json.decode(answer, type=list[RowSpan])]
    assert [(span.lowest, span.highest) for span in looked] == [(7, 90), (100, 120)]


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
