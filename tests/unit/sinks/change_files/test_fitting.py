"""Cells and the Arrow types of their columns: what is let pass without asking Arrow is what Arrow takes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ExpressionError
from eventlog.qlik.change_tables.rows import ChangeColumn
from eventlog.sinks.change_files import arrow
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


def refused(kind: str, cell: Any) -> bool:
    try:
        Fitting([ChangeColumn(name="A", type=kind)]).check([(cell,)])
    except ExpressionError:
        return True
    return False


@shares(refused=0.1, taken=0.1)
@given(st.sampled_from(TYPES[:-1]), CELLS)
def test_a_cell_is_refused_exactly_when_arrow_refuses_it(kind: str, cell: Any) -> None:
    wrong = bool(misfits([ChangeColumn(name="A", type=kind)], [(cell,)]))
    met(refused=wrong, taken=not wrong)
    assert refused(kind, cell) == wrong


@pytest.mark.parametrize(
    "kind, cell",
    [("VARCHAR(20)", "漢字"), ("VARCHAR(20)", "plain"), ("DECIMAL(5, 2)", Decimal("999.99")), ("DECIMAL(5, 2)", 999)],
)
def test_arrow_is_not_asked_about_ordinary_cells(kind: str, cell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> dict[int, str]:
        raise AssertionError("Arrow was asked")

    monkeypatch.setattr(arrow, "misfits", asked)
    assert not refused(kind, cell)


def test_the_refusal_names_the_column() -> None:
    with pytest.raises(ExpressionError, match="column A: "):
        Fitting([ChangeColumn(name="A", type="DECIMAL(5, 2)")]).check([(Decimal(1000),)])
