"""The short way of whole rows tells what the long way tells."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import ABSENT, Change, Edit, Op
from eventlog.core.schema import Column, Table
from eventlog.qlik.change_tables.whole import WholeRows
from eventlog.qlik.values import TableValues
from tests.support.qlik_changes import USR, UTC, change
from tests.support.shares import met, shares

cell_of: dict[str, st.SearchStrategy[Any]] = {
    "idu": st.integers(0, 9),
    "fname": st.text(max_size=3),
    "born": st.dates() | st.just("2026-01-01"),
}
cell_of["pay"] = st.decimals(allow_nan=False, places=2, min_value=0, max_value=9) | st.integers(0, 3)


@st.composite
def whole_changes(draw: st.DrawFn) -> Change:
    """Images of a row as sources give them, some columns missing and some values of other types."""
    names = draw(st.lists(st.sampled_from(["fname", "born", "pay", "idu", "usr_phone.phoneno"]), max_size=4))
    edits = []
    for name in names:
        one: st.SearchStrategy[Any] = st.none() | st.just(ABSENT) | cell_of.get(name, st.just("1"))
        edits.append(Edit(column=name, old=draw(one), new=draw(one)))
    key = draw(st.sampled_from(["idu=1", 'idu="1"', "idu=-5", "idu=0007"]))
    return change(draw(st.sampled_from(list(Op))), *edits, key=key, whole=True)


@shares(short=0.2)
@given(st.lists(whole_changes(), max_size=5))
def test_the_short_way_tells_what_the_long_way_tells(changes: list[Change]) -> None:
    values = TableValues(USR)
    short = WholeRows(values)
    told = [short.told(one) for one in changes]
    met(short=any(quick is not None for quick in told))
    for one, quick in zip(changes, told, strict=True):
        before, after, *bits = values.told(one)
        if quick is not None:
            assert [quick[0] and list(quick[0]), quick[1] and list(quick[1]), *quick[2:]] == [before, after, *bits]


def test_the_short_way_is_taken_by_whole_rows_of_the_right_types() -> None:
    at, zoned = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=UTC)
    table = Table(
        name="t",
        columns=(
            Column(name="a", key=1),
            Column(name="b", type="timestamp"),
            Column(name="c", type="timestamptz"),
            Column(name="d", type="float8"),
        ),
    )
    short = WholeRows(TableValues(table))
    told = short.told(change(Op.ADD, Edit(column="d", new=1.5), Edit(column="c", new=zoned), key="a=x", table="t"))
    assert told == (None, ("x", None, zoned, 1.5), 13, 0, 13)
    assert short.told(change(Op.ADD, Edit(column="b", new=zoned), key="a=x", table="t")) is None
    assert short.told(change(Op.ADD, Edit(column="b", new=at), key="a=x", table="t")) is not None
    assert short.told(change(Op.ADD, Edit(column="a", new="y"), key="a=x", table="t")) is None
    lonely = WholeRows(TableValues(Table(name="t", columns=(Column(name="a"),))))
    assert lonely.told(change(Op.ADD, key="", table="t")) == (None, (None,), 0, 0, 0)


def test_the_short_way_looks_at_the_values_before_and_after() -> None:
    at, zoned = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=UTC)
    table = Table(name="t", columns=(Column(name="b", type="timestamp"), Column(name="a", key=1), Column(name="c")))
    short, long = WholeRows(TableValues(table)), TableValues(table)

    def told_of(old: Any, new: Any) -> Any:
        edits = Edit(column="b", old=old, new=new), Edit(column="c", old="x", new="y")
        one = change(Op.MODIFY, *edits, key="a=k", table="t", whole=True)
        quick, (before, after, *bits) = short.told(one), long.told(one)
        assert quick is None or (list(quick[0] or ()), list(quick[1] or ()), *quick[2:]) == (before, after, *bits)
        return quick

    assert told_of(at, at)[2:] == (4, 7, 7)
    assert told_of(at, at)[1] == (at, "k", "y")
    assert told_of(None, at)[2] == told_of(at, None)[2] == 5
    assert told_of(zoned, at) is told_of(at, zoned) is told_of("2026-01-01", at) is told_of(at, "2026-01-01") is None
    assert short.told(change(Op.TRUNCATE, key="", table="t", whole=True)) is None
    assert short.told(change(Op.DELETE, Edit(column="b", old=1), key="a=k", table="t", whole=True)) is None


def test_rows_in_the_order_of_the_columns_need_no_order() -> None:
    table = Table(name="t", columns=(Column(name="a", type="int", key=1), Column(name="b")))
    one = change(Op.MODIFY, Edit(column="b", old="x", new="y"), key="a=1", table="t", whole=True)
    assert WholeRows(TableValues(table)).told(one) == ((1, "x"), (1, "y"), 2, 3, 3)
