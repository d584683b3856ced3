"""Masks in change tables of a lake, by which updates are put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.core.model import Op
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.masks import bits_of_bytes, bits_of_hex
from tests.support.changerows import USR, told
from tests.support.lakes import LAKES, put


@pytest.mark.parametrize("kind", sorted(LAKES))
@pytest.mark.parametrize("mask", ["binary", "hex"])
def test_masks_count_the_columns_as_the_table_has_them(tmp_path: Path, kind: str, mask: str) -> None:
    """Also where the source has lost a column in the middle, which the table keeps."""
    lake = LAKES[kind](tmp_path)
    sink = lake.sink()
    put(sink, "a", told(1, Op.ADD, 1, fname="Jack", pay="1.50"), mask=mask)
    less = Catalog([Table(name="usr", columns=tuple(c for c in USR.columns if c.name != "fname"))])
    changed = told(2, Op.MODIFY, 1, pay=("1.50", "2.50"))
    put(sink, "b", changed, catalog=less, mask=mask, before_image=False)
    table = lake.read("usr__ct")
    assert table is not None
    written = lake.rows("usr__ct")[-1]["header__change_mask"]
    bits = bits_of_hex(written) if mask == "hex" else bits_of_bytes(written)
    names = [name for place, name in enumerate(table.schema.names) if bits >> place & 1]
    assert [name for name in names if not name.startswith("header__")] == ["pay"]
