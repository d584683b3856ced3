"""Tables of a lake as engines that share no code with their writers find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.core.model import Op
from tests.support.changerows import told
from tests.support.lakes import LAKES, DuckDB, Mode, put

CHANGES = (
    told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5"),
    told(2, Op.ADD, 2, fname="Zoë"),
    told(3, Op.ADD, 3),
)


@pytest.mark.parametrize("mode", ["append", "mirror"])
@pytest.mark.parametrize("kind", sorted(LAKES))
def test_duckdb_finds_the_same_rows(tmp_path: Path, kind: str, mode: Mode) -> None:
    """Also in the partitions of a table whose rows were changed, and after a mirror was emptied."""
    name, duckdb = "usr" if mode == "mirror" else "usr__ct", DuckDB()
    lake = LAKES[kind](tmp_path / "lake", mode, partition_by=("fname",))
    sink = lake.sink()
    plans = [
        CHANGES,
        (told(4, Op.MODIFY, 2, fname=("Zoë", "Ada")), told(5, Op.DELETE, 3)),
        (told(6, Op.TRUNCATE, 0), told(7, Op.ADD, 7, fname="Jack", pay="-0.01")),
    ]
    for number, changes in enumerate(plans):
        put(sink, str(number), *changes)
        theirs, ours = duckdb.read(lake, name), lake.read(name)
        assert ours is not None
        assert theirs.schema.names == ours.schema.names
        assert sorted(map(repr, theirs.to_pylist())) == sorted(map(repr, ours.to_pylist()))
