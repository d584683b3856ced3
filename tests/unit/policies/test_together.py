"""Steps that go together in one pass, and expressions whose values are remembered: nothing is told otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, Row, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.policies import actions, bound, steps
from eventlog.policies.bound import Policy
from eventlog.policies.steps import Step
from tests.support.shares import met, shares

CATALOG = Catalog(
    [
        Table(
            name="usr",
            columns=(Column(name="idu", key=1), Column(name="fname"), Column(name="lname"), Column(name="salary")),
            children=(Child(name="phone", parent_key=("idu",), columns=(Column(name="no"),)),),
        )
    ]
)


def change(**told: Any) -> Change:
    """A change whose edits are told as `name=[old, new]`."""
    edits = tuple([Edit(column=name, old=value[0], new=value[1]) for name, value in told.items()])
    return Change(row=RowId(None, "usr", "idu=1"), op=Op.MODIFY, edits=edits, positions=((7,),))


SINGLE = (
    steps.Drop(attributes=("lname",)),
    steps.Drop(attributes=("fname", "Name")),
    steps.Keep(attributes=("fname", "Name", "phone.*")),
    steps.Rename(attributes={"fname": "Name", "phone.no": "Telephone"}),
    steps.Redact(attributes=("fname", "salary")),
    steps.Map(attributes=("fname", "Name", "lname"), values={"a": "b"}, otherwise="c"),
    steps.Text(attributes=("Name", "fname"), to="upper"),
    steps.Join(attribute="both", of=("fname", "lname")),
    steps.Constant(attribute="salary", value="none"),
    steps.Compute(attribute="lname", expression="new.salary + 'x'", on_error="null"),
)
cells = st.none() | st.just(ABSENT) | st.sampled_from(["a", "b"])
edits = st.dictionaries(
    st.sampled_from(["fname", "lname", "salary"]), st.tuples(cells, cells, st.booleans()), max_size=3
)


@shares(changed=0.3, refused=0.02)
@given(
    st.permutations(SINGLE), st.integers(1, 5), edits, st.booleans(), st.none() | st.just({"lname": "x", "salary": 1})
)
def test_steps_together_tell_what_they_tell_one_after_the_other(
    some: list[Step], count: int, given_edits: dict[str, Any], whole: bool, beside: Row | None
) -> None:
    told_edits = tuple(
        [Edit(column=name, old=old, new=new, reset=reset) for name, (old, new, reset) in given_edits.items()]
    )
    one = replace(change(), whole=whole, beside=beside, edits=told_edits)
    policy = Policy(tuple(some[:count]), CATALOG)
    expected: Change | Refusal = one
    for traced in policy.trace(one):
        expected = traced.after
    met(changed=isinstance(expected, Change) and expected != one, refused=isinstance(expected, Refusal))
    assert policy.apply(one) == expected


@pytest.mark.parametrize("set_to, outcome", [("salary", "none"), ("fname", "A")])
def test_what_is_set_between_steps_about_another_attribute_stays_so(set_to: str, outcome: str) -> None:
    """Only where the step between has nothing to do with theirs do both go together."""
    between = steps.Constant(attribute=set_to, value="none" if set_to == "salary" else "a")
    both = steps.Text(attributes=("fname",), to="upper"), steps.Text(attributes=("fname",), to="upper")
    one = replace(change(fname=[None, "b"]), op=Op.ADD)
    applied = Policy((both[0], between, both[1]), CATALOG).apply(one)
    assert isinstance(applied, Change)
    assert {edit.column: edit.new for edit in applied.edits}[set_to] == outcome


def test_what_an_expression_came_to_is_remembered_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "KNOWN_VALUES", 2)
    policy = Policy((steps.Where(condition="new.fname == 'a'"),), CATALOG)
    for _ in range(2):
        for name, is_told in (("a", True), ("b", False), ("c", False), (None, False)):
            assert isinstance(policy.apply(change(fname=["x", name])), Change) is is_told
    truth = Policy((steps.Where(condition="new.lname == 1"),), CATALOG)
    assert [isinstance(truth.apply(change(lname=["x", value])), Change) for value in (1, True, 1)] == [
        True,
        False,
        True,
    ]


def test_what_changes_need_is_remembered_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound, "KNOWN_CHANGES", 1)
    policy = Policy((steps.Where(condition="new.fname == 'a' && new.lname == 'b'"),), CATALOG)
    for _ in range(2):
        for _ in range(2):
            assert policy.needs(change(fname=["x", "y"])) == {"lname"}
        assert policy.needs(change(salary=["x", "y"])) == {"fname", "lname"}
        assert policy.needs(change(lname=["x", "y"], fname=["x", "y"])) == frozenset()


def test_of_a_whole_row_what_no_single_step_leaves_out_is_told() -> None:
    """Together nothing seems to be left: one step makes the values equal, another one drops what is not there."""
    one = replace(change(fname=["a", "b"]), whole=True)
    told = Policy((steps.Redact(attributes=("fname",)), steps.Drop(attributes=("lname",))), CATALOG).apply(one)
    assert isinstance(told, Change)
    assert [(edit.column, edit.old == edit.new) for edit in told.edits] == [("fname", True)]
