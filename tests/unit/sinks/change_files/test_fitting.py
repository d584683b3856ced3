"""Cells and the Arrow types of their columns: what is let pass without asking Arrow is what Arrow takes."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ExpressionError
from eventlog.qlik.change_tables.rows import ChangeColumn
from eventlog.sinks.change_files.arrow import Fitting, misfits
from tests.support.shares import met, shares

TYPES = ["VARCHAR(20)", "BIGINT", "DECIMAL(5, 2)", "DECIMAL(4, 4)", "DECIMAL(38, 0)", "DECIMAL(18)", "NUMBER", "DATE"]
CELLS = st.one_of(
    st.none(),
    st.integers(-(2**66), 2**66),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.decimals(-(10**6), 10**6, places=3),
    st.text(st.characters()),
    st.sampled_from(["\ud800", "ü", "12", Decimal("1.50"), Decimal("0E+3"), Decimal("0.00000"), True]),
)


@shares(refused=0.1, taken=0.1)
@given(st.sampled_from(TYPES[:-1]), CELLS)
def test_a_cell_is_refused_exactly_when_arrow_refuses_it(kind: str, cell: Any) -> None:
    columns = [ChangeColumn(name="A", type=kind)]
    wrong = bool(misfits(columns, [(cell,)]))
    met(refused=wrong, taken=not wrong)
    with pytest.raises(ExpressionError, match="column A: ") if wrong else nullcontext():
        Fitting(columns).check([(cell,)])
