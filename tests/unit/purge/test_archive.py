"""Archive files: readable, complete or absent, and named so that repeats replace themselves and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eventlog.core.errors import SinkError
from eventlog.purge.archive import COLUMNS, Archive
from tests.support.examples import examples

Row = tuple[Any, ...]
texts = st.none() | st.text(max_size=20)
log_rows = st.tuples(
    st.integers(1, 2**63 - 1),
    st.sampled_from(["S", "W", "E"]),
    st.integers(1, 8),
    st.just("2025-03-23T10:57:19"),
    *[texts] * (len(COLUMNS) - 6),
    st.none() | st.integers(1, 2**63 - 1),
    texts,
)


def row(number: int, status: str = "S") -> Row:
    return (
        number,
        status,
        1,
        "2025-03-23 10:57:19",
        None,
        "usr",
        f"idu={number}",
        "fname",
        None,
        "Jack",
        None,
        None,
        None,
        None,
    )


def written(folder: Path, *rows: Row, log: str = "event_log") -> Path:
    file = Archive(folder, log).file()
    file.write(rows)
    path = file.finish()
    assert path is not None
    return Path(path)


def read(path: Path) -> list[Row]:
    table: Any = parquet.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    return [tuple(found.values()) for found in table.to_pylist()]


@examples(30)
@given(rows=st.lists(log_rows, min_size=1, max_size=20))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    assert read(written(tmp_path_factory.mktemp("archive"), *rows)) == rows


def test_the_name_says_the_log_and_which_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "a" / "b", row(9), row(2), log="Own.Log")
    assert path.name.startswith("%4fwn.%4cog-0000000000000000002-0000000000000000009-")
    assert path.suffix == ".parquet"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_same_rows_replace_themselves_and_others_stand_beside(tmp_path: Path) -> None:
    first, again = written(tmp_path, row(1), row(2), row(3)), written(tmp_path, row(1), row(2), row(3))
    other = written(tmp_path, row(1), row(3))
    changed = written(tmp_path, row(1, "E"), row(3))
    assert first == again
    assert sorted(tmp_path.iterdir()) == sorted({first, other, changed})


def test_a_folder_that_cannot_be_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("here")
    with pytest.raises(SinkError, match=r"cannot be written: .*no row was deleted"):
        Archive(file, "event_log")


def test_a_disk_that_takes_no_more_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("eventlog.purge.archive.flush", full)
    with pytest.raises(SinkError, match="No space left on device"):
        written(tmp_path, row(1))
    assert not list(tmp_path.glob("*.parquet"))
