"""Placing, sorting, ranges and parts: whatever the batches, the same rows in the same order and the same bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert import partitions
from eventlog.convert.partitions import BY_OBJECT, in_order
from eventlog.convert.rows import ROWS, Placing, bucket_of, object_number
from eventlog.core.errors import DataError
from eventlog.core.model import Event, RowId
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from tests.support.converting import row_of
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, events_of_any_quality

numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)


@shares(alike=0.2, apart=0.3)
@given(st.lists(events_of_any_quality(1), max_size=9), st.sampled_from([CATALOG, None]))
def test_rows_have_one_number_when_they_are_about_one_object(events: list[Event], catalog: Catalog | None) -> None:
    rows = [row_of(event) for event in events]
    batch = pa.RecordBatch.from_pylist([row | {"problem": None} for row in rows], schema=ROWS)
    found = Placing(catalog).place(batch).column("object").to_pylist()
    meant = [_meant(catalog, row["table_name"], row["table_key"], row["event_type"]) for row in rows]
    spelled = {(row["table_name"], row["table_key"]) for row in rows}
    met(alike=len(set(meant)) < len(spelled), apart=len(set(meant)) > 1)
    for number, one in zip(found, meant, strict=True):
        for other, another in zip(found, meant, strict=True):
            assert (number == other) == (one == another)


def _meant(catalog: Catalog | None, table: str | None, key: str | None, kind: int | None) -> object:
    try:
        return Identities(catalog).identify(table, key, row_event=kind in (4, 5, 6))[2]
    except DataError:
        return table, key


def test_an_object_has_its_number_for_ever() -> None:
    """Snapshots, engines and machines rely on it, and so do runs that go on with what others began."""
    assert object_number(RowId("indirect", "usr", "idu=1")) == 877279564576353862
    assert bucket_of(pa.array([877279564576353862, -1, 0]), 16).to_pylist() == [6, 15, 0]


@given(
    st.lists(st.tuples(numbers, st.none() | numbers), max_size=40),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([1, 1 << 20]),
)
def test_sorting_on_the_disk_is_sorting(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int | None]], run: int, head: int, merged: int
) -> None:
    schema = pa.schema([("object", pa.int64()), ("record_id", pa.int64())])
    batches = _cut(pa.Table.from_pylist([dict(zip(schema.names, pair, strict=True)) for pair in pairs], schema=schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "RUN_ROWS", run)
        patch.setattr(partitions, "HEAD_ROWS", head)
        patch.setattr(partitions, "MERGED_BYTES", merged)
        spill = tmp_path_factory.mktemp("sorted") / "spill"
        found = [tuple(row.values()) for batch in in_order(batches, BY_OBJECT, spill) for row in batch.to_pylist()]
    assert found == sorted(pairs, key=lambda pair: (pair[0], pair[1] is None, pair[1] or 0))
    assert not list(spill.parent.iterdir())


def test_rows_of_a_megabyte_are_sorted_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUN_BYTES", "SPILLED_BYTES"):
        monkeypatch.setattr(partitions, name, 2_000_000)
    monkeypatch.setattr(partitions, "MERGED_BYTES", 4_000_000)
    names = ("object", "record_id", "value")
    rows = (
        pa.RecordBatch.from_arrays(
            [pa.array([number * 7 % 60]), pa.array([number]), pa.array(["x" * 1_000_000])], names
        )
        for number in range(60)
    )
    before, most, found = pa.total_allocated_bytes(), 0, []
    for batch in in_order(rows, BY_OBJECT, tmp_path / "spill"):
        most = max(most, pa.total_allocated_bytes() - before)
        found += batch.column("object").to_pylist()
    assert found == list(range(60))
    assert most < 20_000_000


def _cut(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in batches of three."""
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=3)
    return batches
