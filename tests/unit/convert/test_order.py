"""Placing, sorting, ranges and parts: whatever the batches, the same rows in the same order and the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert import partitions
from eventlog.convert.forms import Parts
from eventlog.convert.partitions import (
    BY_OBJECT,
    by_range,
    in_order,
    partition_file,
    ranges,
    sample,
    within,
)
from eventlog.convert.plan import part_spans
from eventlog.convert.rows import ROWS, Placing, bucket_of, object_number
from eventlog.convert.to_xds import TextForm
from eventlog.core.errors import DataError
from eventlog.core.model import Event, RowId
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.xds.write import XdsFormat
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


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=20), st.integers(0, 9), st.integers(0, 9))
def test_a_file_knows_its_batches_by_their_labels(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[int, int]], first: int, last: int
) -> None:
    schema = pa.schema([("number", pa.int64())])
    with partition_file(tmp_path_factory.mktemp("labels") / "x.arrow", schema) as writer:
        for place, (label, rows) in enumerate(written):
            writer.write(label, pa.RecordBatch.from_arrays([pa.array([place] * rows, pa.int64())], schema=schema))
    file = writer.finished()
    ordered = sorted(enumerate(written), key=lambda one: one[1][0])
    for found, least, most in ((file, 0, 9), (file.within(first, last), first, last)):
        mine = [(label, [place] * rows) for place, (label, rows) in ordered if least <= label <= most]
        assert list(zip(found.labels, [batch.column(0).to_pylist() for batch in found.read()], strict=True)) == mine
        assert [batch.column(0).to_pylist() for batch in found.read(3)] == [rows for label, rows in mine if label == 3]
        assert found.counted() == {label: sum(len(rows) for other, rows in mine if other == label) for label, _ in mine}
    kept = file.within(first, last)
    assert within([file, file], first, last) == ((kept, kept) if kept.labels else ())


def _cut(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in batches of three."""
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=3)
    return batches


@given(st.lists(numbers, max_size=40), st.integers(1, 9))
def test_ranges_part_all_positions_and_keep_their_order(positions: list[int], count: int) -> None:
    boundaries = ranges(sample(pa.array(positions, pa.int64())), count)
    assert len(boundaries) < count
    assert all(one < other for one, other in pairwise(boundaries))
    batch = pa.RecordBatch.from_arrays([pa.array(positions, pa.int64())], names=["position"])
    found = [(label, part.column(0).to_pylist()) for label, part in by_range(batch, boundaries)]
    assert [number for _, part in found for number in part] == sorted(positions)
    assert [label for label, _ in found] == sorted({label for label, _ in found})
    for label, part in found:
        assert all(number >= boundaries[label - 1] for number in part if label)
        assert all(number < boundaries[label] for number in part if label < len(boundaries))


@given(st.dictionaries(st.integers(0, 5), st.integers(1, 9), max_size=4), st.integers(1, 5))
def test_spans_are_whole_parts_and_begin_where_they_say(counted: dict[int, int], part_events: int) -> None:
    places = [(label, place) for label in sorted(counted) for place in range(counted[label])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlog.convert.plan.SPAN_EVENTS", 4)
        spans = list(part_spans(counted, part_events))
    assert [number for span in spans for number in range(span.first, span.last)] == list(range(len(places)))
    assert all(span.first % part_events == 0 for span in spans)
    assert [(span.range, span.skipped) for span in spans] == [places[span.first] for span in spans]
    assert [span.until for span in spans] == [places[span.last - 1][0] for span in spans]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=20), st.integers(1, 7), st.integers(1, 4))
def test_parts_hold_their_events_however_the_texts_come(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], part_events: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    rows = [{"position": number, "text": text} for number, text in enumerate(["before", *texts])]
    whole = pa.RecordBatch.from_pylist(rows, schema=TextForm.schema).slice(1)
    parts = Parts(first=2 * part_events, before=2 * part_events, part_events=part_events)
    written = TextForm(XdsFormat()).write(folder, _pieces(whole, size), parts)
    opening, closing = XdsFormat().wrapping()
    runs = [texts[start : start + part_events] for start in range(0, len(texts), part_events)]
    found = {file.name: file.read_bytes().decode() for file in folder.iterdir()}
    assert found == {f"part-{2 + number:05d}.xml": opening + "".join(run) + closing for number, run in enumerate(runs)}
    assert written == len(runs)


def _pieces(rows: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        yield rows.slice(start, size)
