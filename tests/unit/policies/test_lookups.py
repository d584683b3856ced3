"""Look-ups in rows of other tables: what is asked for, what is told, and what becomes of rows that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.convert.long_object import decide_pieces
from eventlog.core.errors import ConfigError
from eventlog.core.model import ABSENT, Change, Edit, Event, Kind, Op, ReadBack, Reason, Refusal, RowId, Unreadable
from eventlog.core.rules import Decision, Round
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.policies.bound import Policy
from eventlog.policies.steps import Hash, Lookup, Rename, Step, Where
from tests.support.memory import MemoryRows

USR = Table(
    name="usr",
    columns=(Column(name="idu", type="integer", key=1), Column(name="fname"), Column(name="dept", type="integer")),
    children=(Child(name="phone", parent_key=("idu",), columns=(Column(name="number"),)),),
)
DEPT = Table(
    name="dept",
    columns=(Column(name="id", type="integer", key=1), Column(name="name"), Column(name="boss", type="integer")),
)
PAIR = Table(name="pair", columns=(Column(name="a", key=1), Column(name="b", key=2), Column(name="c")))
CATALOG = Catalog([USR, DEPT, PAIR])
NAME = Lookup(classes=("usr",), attribute="department", of="dept", table="dept", take="name")
ROWS: Mapping[RowId, ReadBack] = {
    RowId(None, "usr", "idu=1"): {"fname": "Jo", "dept": 7},
    RowId(None, "usr", "idu=2"): {"fname": "Al", "dept": None},
    RowId(None, "usr", "idu=3"): {"fname": "Bo", "dept": 99},
    RowId(None, "usr", "idu=7"): {"fname": "Boss", "dept": 8},
    RowId(None, "dept", "id=7"): {"name": "Sales", "boss": 1},
    RowId(None, "dept", "id=8"): {"name": "R&D", "boss": 7},
}


def event(number: int, kind: Kind, key: str = "idu=1", **others: Any) -> Event:
    return Event(position=(number,), kind=kind, table="usr", key=key, time="2026-01-01 00:00:00", **others)


def decided(reader: MemoryRows | None, *events: Event, steps: tuple[Step, ...] = (NAME,)) -> tuple[Policy, Decision]:
    policy = Policy(steps, CATALOG)
    round_ = Round(catalog=CATALOG, reader=reader, needs=policy.needs, looks=policy.looks)
    return policy, round_.decide(events)


def told(policy: Policy, change: Change) -> dict[str, tuple[Any, Any]] | str:
    found = policy.apply(change)
    return found.note if isinstance(found, Refusal) else {one.column: (one.old, one.new) for one in found.edits}


def test_a_row_that_is_read_back_brings_what_it_refers_to_and_one_query_reads_all() -> None:
    reader = MemoryRows(ROWS)
    events = [event(number, Kind.INSERT_ROW_BACK, f"idu={key}") for number, key in enumerate([1, 2, 3], 1)]
    policy, decision = decided(reader, *events)
    assert [told(policy, one) for one in decision.changes] == [
        {"fname": (ABSENT, "Jo"), "dept": (ABSENT, 7), "department": (ABSENT, "Sales")},
        {"fname": (ABSENT, "Al"), "dept": (ABSENT, None), "department": (ABSENT, None)},
        {"fname": (ABSENT, "Bo"), "dept": (ABSENT, 99), "department": (ABSENT, None)},
    ]
    assert decided(reader)[1].changes == []
    assert reader.asked[1:] == [{RowId(None, "dept", f"id={key}"): frozenset(["name"]) for key in (7, 99)}]


def test_a_field_that_changes_is_told_with_what_it_referred_to_before() -> None:
    policy, decision = decided(MemoryRows(ROWS), event(1, Kind.UPDATE_FIELD, column="dept", old="7", new="8"))
    assert [told(policy, one) for one in decision.changes] == [{"dept": ("7", "8"), "department": ("Sales", "R&D")}]
    policy, decision = decided(
        reader := MemoryRows(ROWS), event(1, Kind.UPDATE_FIELD, column="fname", old="a", new="b")
    )
    assert [told(policy, one) for one in decision.changes] == [{"fname": ("a", "b")}]
    assert reader.asked == []
    policy, decision = decided(MemoryRows(ROWS), event(1, Kind.INSERT_FIELD, column="fname", new="b"))
    assert [told(policy, one) for one in decision.changes] == [{"fname": (ABSENT, "b"), "department": (ABSENT, None)}]


def test_what_was_looked_up_can_be_looked_up_with_and_steps_before_it_count() -> None:
    steps = (
        Rename(classes=("usr",), attributes={"dept": "unit"}),
        Lookup(classes=("usr",), attribute="boss", of="unit", table="dept", take="boss"),
        Lookup(classes=("usr",), attribute="boss name", of="boss", table="usr", take="fname"),
        Where(classes=("usr",), condition='new["boss name"] == "Boss"'),
    )
    pytest.importorskip("cel_expr_python")
    reader = MemoryRows(ROWS)
    policy, decision = decided(reader, event(1, Kind.UPDATE_ROW_BACK, "idu=7"), steps=steps)
    [change] = decision.changes
    assert told(policy, change) == {
        "fname": (ABSENT, "Boss"),
        "unit": (ABSENT, 8),
        "boss": (ABSENT, 7),
        "boss name": (ABSENT, "Boss"),
    }
    assert len(reader.asked) == 3


def test_what_cannot_be_read_yet_waits_and_what_never_can_is_an_error() -> None:
    later = Unreadable(note="no right", reason=Reason.NO_RIGHT)
    rows = {**ROWS, RowId(None, "dept", "id=7"): later}
    change = event(1, Kind.UPDATE_FIELD, column="dept", old="8", new="7")
    policy, decision = decided(MemoryRows(rows), change, replace(change, position=(2,), key="idu=2", new="8", old=None))
    assert [one.row.key for one in decision.changes] == ["idu=2"]
    assert [one.reason for one in decision.outcomes] == [Reason.NO_RIGHT, Reason.PUBLISHED]
    why = "step 1 of the policy: the value of department is not known, because dept cannot be read."
    never = {**rows, RowId(None, "dept", "id=7"): Unreadable(note="a value is broken")}
    for reader in (MemoryRows(never), None):
        policy, decision = decided(reader, change)
        assert [told(policy, one) for one in decision.changes] == [why]


def test_several_values_name_no_row() -> None:
    step = replace(NAME, of="phone.number")
    policy = Policy((step,), CATALOG)
    edit = Edit(column="phone.number", new=("1", "2"))
    change = Change(row=RowId(None, "usr", "idu=1"), op=Op.ADD, edits=(edit,), positions=((1,),))
    assert policy.looks(change) == {}
    assert "phone.number has several values" in str(told(policy, change))


def test_a_hidden_value_looks_up_nothing() -> None:
    steps = (Hash(classes=("usr",), attributes=("dept",), secret="0123456789abcdef"), NAME)  # of a test
    policy, decision = decided(
        MemoryRows(ROWS), event(1, Kind.UPDATE_FIELD, column="dept", old=None, new="7"), steps=steps
    )
    found = told(policy, decision.changes[0])
    assert isinstance(found, dict)
    assert found["department"] == (None, None)


@pytest.mark.parametrize(
    "step, said",
    [
        (replace(NAME, table="dep"), "lookup'): dep is no table. Did you mean dept?"),
        (replace(NAME, take="nam"), "lookup'): nam is no attribute of dept. Did you mean name?"),
        (replace(NAME, table="pair", take="c"), "pair has no key of one column"),
        (replace(NAME, of="depd"), "lookup'): depd is no attribute. Did you mean dept?"),
        (replace(NAME, attribute="idu"), "idu is a key column of usr"),
    ],
)
def test_what_there_is_not_is_refused_with_the_nearest_name(step: Lookup, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        Policy((step,), CATALOG).check()
    assert said in str(error.value)


@pytest.mark.parametrize("needy", [True, False])
def test_pieces_of_a_long_object_are_told_the_same(*, needy: bool) -> None:
    policy = Policy((NAME,), CATALOG)
    events = [
        event(1, Kind.UPDATE_FIELD, column="dept", old="7", new="8"),
        event(2, Kind.UPDATE_FIELD, column="dept", old="8", new="7"),
    ]
    round_ = Round(catalog=CATALOG, reader=MemoryRows(ROWS), looks=policy.looks)
    if needy:
        round_ = replace(round_, needs=policy.needs)
    found: list[Change] = []
    for _ in decide_pieces(round_, lambda: [[one] for one in events], found.append):
        pass
    assert [told(policy, one) for one in found] == [told(policy, one) for one in round_.decide(events).changes]
