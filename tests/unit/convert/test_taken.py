"""Which rows of a batch a conversion takes: those that wait and have one of its numbers, and all that do not wait."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.taken import MOST_RANGES, ConvertedRows
from eventlog.sources.marks import RowRanges

NUMBERS = st.none() | st.integers(-50, 50) | st.sampled_from([-(2**63), 2**63 - 1])


def batch(rows: list[tuple[int | None, str | None]]) -> pa.RecordBatch:
    numbers, statuses = zip(*rows, strict=True) if rows else ((), ())
    return pa.RecordBatch.from_pydict(
        {"record_id": pa.array(numbers, pa.int64()), "status": pa.array(statuses, pa.string())}
    )


@given(
    st.lists(st.tuples(NUMBERS, st.sampled_from(["N", "S", None]))),
    st.none() | st.sets(st.integers(-50, 50) | st.just(2**63 - 1), max_size=4 * MOST_RANGES),
)
def test_rows_are_kept_by_their_numbers(rows: list[tuple[int | None, str | None]], numbers: set[int] | None) -> None:
    kept = ConvertedRows(None if numbers is None else RowRanges.of(numbers)).keep(batch(rows))
    wanted = [row for row in rows if numbers is None or row[1] != "N" or row[0] in numbers]
    assert list(zip(kept.column("record_id").to_pylist(), kept.column("status").to_pylist(), strict=True)) == wanted


def test_many_runs_and_rows_without_a_number() -> None:
    odd = ConvertedRows(RowRanges.of(range(1, 200, 2)))
    assert odd.keep(batch([(number, "N") for number in range(200)])).num_rows == 100
    assert odd.keep(batch([(None, "N"), (None, "S")])).to_pylist() == [{"record_id": None, "status": "S"}]
