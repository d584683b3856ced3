"""Rows of change tables between two stages of a conversion: they come back as they were, and a file of them can run no code."""

from __future__ import annotations

import datetime as dt
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.packed_rows import RowPacker, unpack_rows
from eventlog.convert.settings import TableFiles
from eventlog.convert.to_change_tables import SCHEMA, TableForm
from eventlog.core.errors import MachineError
from eventlog.core.schema import Column, Table

INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.times(timezones=st.none() | st.just(INDIA)).map(lambda time: time.replace(fold=0)),
    st.datetimes(timezones=st.none() | st.just(dt.UTC)).map(lambda time: time.replace(fold=0)),
)
WIDTHS = st.shared(st.integers(1, 6), key="width")
ROWS = WIDTHS.flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=2).map(tuple))


def with_types(rows: Any) -> list[list[tuple[type, str]]]:
    """Exactly what the cells are: 1, 1.0, True and Decimal(1) are equal to each other."""
    return [[(type(cell), repr(cell)) for cell in row] for row in rows]


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_rows_come_back_as_they_were(changes: list[tuple[tuple[Any, ...], ...]]) -> None:
    packer = RowPacker()
    for rows in changes:
        assert with_types(unpack_rows(*packer.pack(rows))) == with_types(rows)


class Malice:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._folder),)


@pytest.mark.parametrize("letters", ["s", "ss/ss", "x", "", None])
def test_a_file_of_rows_that_somebody_wrote_runs_no_code(tmp_path: Path, letters: str | None) -> None:
    made = tmp_path / "made"
    table = Table(name="t", columns=(Column(name="id", type="integer", key=1),))
    row = {
        "position": 1,
        "stamp": "0" * 16,
        "table": 0,
        "letters": letters,
        "rows": pickle.dumps(Malice(made)),
        "route": "",
    }
    batch = pa.RecordBatch.from_pylist([row], schema=SCHEMA)
    with pytest.raises(MachineError, match="work folder of the conversion are damaged"):
        list(TableForm(TableFiles(), {0: table}).written(batch))
    assert not made.exists()
