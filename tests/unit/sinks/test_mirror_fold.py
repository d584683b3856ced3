"""Folding the rows of change tables: the fewest steps that come to the same as all rows one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.schema import WHOLE_ROW
from eventlog.qlik.change_tables.folding import ChangeRow, Emptied, Moved, Nets, Step, count, fold

Rows = dict[tuple[Any, ...], dict[str, Any]]


def told(oper: str, key: int, *changed: str, **values: Any) -> ChangeRow:
    return ChangeRow(oper=oper, values={"k": key, "a": None, "b": None, **values}, changed=frozenset(changed))


def done(steps: Iterable[Step], rows: Rows) -> Rows:
    """What a mirror holds after the steps."""
    for step in steps:
        if isinstance(step, Emptied):
            rows = {}
        elif isinstance(step, Moved):
            former = rows.pop(step.former, {"k": None, "a": None, "b": None})
            rows[(step.values["k"],)] = former | step.values
        else:
            rows = _netted(step, rows)
    return rows


def _netted(step: Nets, rows: Rows) -> Rows:
    for key, net in step.rows.items():
        before = (
            {"k": key[0], "a": None, "b": None} if net.whole else rows.get(key, {"k": key[0], "a": None, "b": None})
        )
        rows.pop(key, None)
        if net.values is not None:
            rows[key] = before | net.values
    return rows


def test_the_last_of_many_updates_counts() -> None:
    [step] = fold([told("U", 1, "a", a=1), told("U", 1, "b", b=2), told("U", 1, "a", a=3)], ("k",))
    assert isinstance(step, Nets)
    assert {key: (net.values, net.whole) for key, net in step.rows.items()} == {(1,): ({"k": 1, "a": 3, "b": 2}, False)}


def test_a_delete_beats_what_was_before_it_and_an_insert_begins_anew() -> None:
    [step] = fold([told("U", 1, "a", a=1), told("D", 1, "k"), told("I", 1, "k", "b", b=2)], ("k",))
    assert isinstance(step, Nets)
    net = step.rows[(1,)]
    assert (net.values, net.whole) == ({"k": 1, "a": None, "b": 2}, True)


def test_a_changed_key_moves_the_row() -> None:
    before = ChangeRow(oper="B", values={"k": 1, "a": None, "b": None}, changed=frozenset())
    steps = list(fold([told("U", 1, "a", a=5), before, told("U", 2, "k", "b", b=6)], ("k",)))
    assert done(steps, {(1,): {"k": 1, "a": 0, "b": 0}}) == {(2,): {"k": 2, "a": 5, "b": 6}}


def test_truncating_empties_and_what_follows_stays() -> None:
    steps = list(fold([told("I", 1, "k"), told("T", 0), told("I", 2, "k", "a", a=1)], ("k",)))
    assert done(steps, {(9,): {"k": 9}}) == {(2,): {"k": 2, "a": 1, "b": None}}


values = st.none() | st.integers(0, 3)
rows = st.one_of(
    st.builds(lambda k, a, b: told("I", k, "k", "a", "b", a=a, b=b), st.integers(1, 3), values, values),
    st.builds(lambda k, a: told("U", k, "a", a=a), st.integers(1, 3), values),
    st.builds(lambda k, b: told("U", k, "b", b=b), st.integers(1, 3), values),
    st.builds(lambda k: told("D", k, "k"), st.integers(1, 3)),
    st.builds(lambda: told("T", 0)),
)


@given(st.lists(rows, max_size=15), st.integers(0, 15))
def test_folding_many_rows_and_folding_one_by_one_come_to_the_same(changes: list[ChangeRow], cut: int) -> None:
    one_by_one: Rows = {}
    for change in changes:
        one_by_one = done(fold([change], ("k",)), one_by_one)
    assert done(fold(changes, ("k",)), {}) == one_by_one
    assert done(fold(changes[cut:], ("k",)), done(fold(changes[:cut], ("k",)), {})) == one_by_one


def test_rows_without_a_key_are_counted() -> None:
    rows = [
        told(oper, 1, **{WHOLE_ROW: text})
        for oper, text in (("I", "x"), ("I", "y"), ("I", "x"), ("D", "y"), ("D", "y"))
    ]
    assert {key: row.more for key, row in count(rows).rows.items()} == {("x",): 2, ("y",): -1}
