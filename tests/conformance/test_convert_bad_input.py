"""Bad input ends in stated outcomes that are counted, or in a refusal that leaves nothing behind; never in silence."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eventlog.convert import plan
from eventlog.convert.commit import Summary
from eventlog.convert.settings import MessageFiles, SnapshotRows
from eventlog.core.errors import DataError
from eventlog.sql.names import STANDARD, TRANSACTION
from tests.support.converting import (
    LogRow,
    converted,
    elements_of,
    files_of,
    log_row,
    outcomes_of,
    write_lines,
    write_parquet,
)
from tests.support.examples import examples
from tests.support.strategies import CATALOG


def ended(rows: list[LogRow], folder: Path, *more: list[LogRow]) -> tuple[Summary, list[tuple[object, ...]]]:
    """Convert; return the summary, and position, status, reason and note of every outcome."""
    files = [write_lines(folder / f"{place}.jsonl", part) for place, part in enumerate([rows, *more])]
    summary = converted(files, folder / "out", catalog=CATALOG)
    return summary, [tuple(outcome.values()) for outcome in outcomes_of(folder / "out")]


def published(number: int) -> tuple[object, ...]:
    return number, "S", "published", None


def test_rows_that_the_rules_refuse_are_errors_with_reasons(tmp_path: Path) -> None:
    rows = [
        log_row(1),
        log_row(2, table_key="nonsense"),
        log_row(3, event_type=9),
        log_row(4, event_time=None),
        log_row(5, table_name="nosuch"),
        log_row(6, column_name=None),
        log_row(7, event_type=6),
    ]
    summary, outcomes = ended(rows, tmp_path)
    assert outcomes[0] == published(1)
    assert [outcome[:3] for outcome in outcomes[1:]] == [(number, "E", "invalid") for number in range(2, 8)]
    assert all(outcome[3] for outcome in outcomes[1:])
    assert (summary.rows, summary.bad, summary.statuses) == (7, 6, {"E": 6, "S": 1})


def test_rows_without_a_readable_record_id_come_last_in_the_order_of_their_reasons(tmp_path: Path) -> None:
    summary, outcomes = ended([log_row("b"), log_row(2), log_row("a")], tmp_path, [log_row(None)])
    assert outcomes[0] == published(2)
    assert [(position, status) for position, status, _, _ in outcomes[1:]] == [(None, "E")] * 3
    notes = [str(note) for _, _, _, note in outcomes[1:]]
    assert notes == sorted(notes)
    assert [note.split(";")[0] for note in notes] == ["record_id is 'a'", "record_id is 'b'", "record_id is NULL"]
    assert summary.bad == 3


def test_a_record_id_that_is_not_positive_is_an_error_as_in_the_daemon(tmp_path: Path) -> None:
    summary, outcomes = ended([log_row(0), log_row(-5), log_row(1)], tmp_path)
    assert outcomes == [
        (-5, "E", "invalid", "record_id is -5; it must be positive."),
        (0, "E", "invalid", "record_id is 0; it must be positive."),
        published(1),
    ]
    assert summary.bad == 2


@st.composite
def doubled_rows(draw: st.DrawFn) -> list[LogRow]:
    """Draw rows, many with the same record_id: equal ones, of the same object, or of another."""
    made = st.builds(
        log_row,
        st.integers(1, 6),
        table_key=st.sampled_from(["idu=1", "idu= 1", "idu=2", "idu=3"]),
        new_value=st.sampled_from(["a", "b"]),
    )
    return draw(st.lists(made, max_size=14))


@given(doubled_rows(), st.integers(0, 14))
@examples(60)
def test_doubles_end_alike_wherever_they_stand(
    tmp_path_factory: pytest.TempPathFactory, rows: list[LogRow], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("doubles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BUCKET_ROWS", 2)
        patch.setattr(plan, "RANGE_ROWS", 2)
        summary, outcomes = ended(rows[:cut], folder, rows[cut:])
    distinct = {tuple(row.values()) for row in rows}
    numbers = [row[0] for row in distinct]
    assert summary.duplicates == len(rows) - len(distinct)
    assert [(number, "E" if numbers.count(number) > 1 else "S") for number in sorted(numbers)] == [
        (position, status) for position, status, _, _ in outcomes
    ]


def test_what_xds_cannot_carry_is_left_out_and_the_rest_goes_on(tmp_path: Path) -> None:
    rows = [log_row(1, new_value="\u0001"), log_row(2, table_key="idu=2")]
    summary, outcomes = ended(rows, tmp_path)
    assert outcomes[0][:3] == (1, "W", "altered")
    assert "U+0001" in str(outcomes[0][3])
    assert (outcomes[1], summary.bad) == (published(2), 0)
    assert 'event-id="2"' in elements_of(tmp_path / "out")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_damaged_file_among_good_ones_leaves_nothing(tmp_path: Path, jobs: int) -> None:
    good = write_parquet(tmp_path / "a.parquet", [log_row(number) for number in range(20)])
    (tmp_path / "b.csv").write_text("record_id\n1\n")
    with pytest.raises(DataError, match=r"b\.csv has no column"):
        converted([good, tmp_path / "b.csv"], tmp_path / "out", jobs=jobs)
    assert not (tmp_path / "out").exists()


def test_files_of_one_table_whose_types_differ_too_much_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "usr"
    folder.mkdir(parents=True)
    for name, kind, number in (("a", pa.int16(), 1), ("b", pa.int64(), 2**40)):
        texts = pa.array(["x"])
        rows = pa.table({"idu": pa.array([number], kind), "fname": texts, "lname": texts})
        parquet.write_table(rows, folder / f"{name}.parquet")
    source = write_lines(tmp_path / "in.jsonl", [log_row(1, event_type=6, column_name=None)])
    snapshot = SnapshotRows(folder=tmp_path / "tables")
    with pytest.raises(DataError, match=r"b\.parquet cannot be read: .*1099511627776"):
        converted(source, tmp_path / "out", catalog=CATALOG, read_back=snapshot)


@pytest.mark.parametrize("telling", ["a", "b"])
def test_of_two_copies_that_counts_which_tells_the_transaction(tmp_path: Path, telling: str) -> None:
    """One was archived before the log had transactions."""
    columns = (*STANDARD, TRANSACTION)
    source = tmp_path / "in"
    source.mkdir()
    for name in ("a", "b"):
        told = {TRANSACTION: "77" if name == telling else None}
        write_parquet(source / f"{name}.parquet", [log_row(1, **told)], columns)
    converted(source, tmp_path / "out", catalog=CATALOG, target=MessageFiles())
    assert b'"transactionId":"0000000000000000000000000000004D"' in b"".join(
        content for name, content in files_of(tmp_path / "out").items() if name.endswith(".jsonl")
    )


@pytest.mark.parametrize("rows", [[], [log_row(None)]])
def test_nothing_to_convert_is_no_error(tmp_path: Path, rows: list[LogRow]) -> None:
    summary, outcomes = ended(rows, tmp_path)
    assert (summary.parts, summary.changes, len(outcomes)) == (0, 0, len(rows))
    assert sorted(files_of(tmp_path / "out")) == ["_SUCCESS", "outcomes.parquet"]
