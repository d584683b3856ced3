"""The first step of the rules: the order of events, who is set aside and why, and what must be read back."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.model import REFRESH_FOR, Event, Kind, Op, Reason, Row, RowId
from eventlog.core.rules import EXPLANATION, MEANING, PRECEDENCE, STATUS, Options, decide, list_wanted, screen
from eventlog.core.rules.screen import in_order
from eventlog.core.schema import Catalog, Column, Table
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, PHONE, careless_logs

ONE, TWO = RowId(None, "usr", "idu=1"), RowId(None, "usr", "idu=2")
NOON = dt.datetime(2026, 1, 1, 12)
LATER = "2026-01-01 13:00:00"
ours = Options(user="idm")
waiting = Options(future=True, now=NOON)


def event(number: int, kind: int | None = 1, key: str | None = "idu=1", **facts: Any) -> Event:
    row = kind in (4, 5, 6)
    usual = {"table": "usr", "column": None if row else "fname", "new": None if row else "x", "time": NOON}
    return Event(position=(number,), kind=kind, key=key, **(usual | facts))


def became(*events: Event, options: Options | None = None) -> dict[int, Reason]:
    """The reasons by the number of the event."""
    outcomes = decide(events, {}, catalog=CATALOG, options=options).outcomes
    return {outcome.position[0]: outcome.reason for outcome in outcomes}


def asked(*events: Event, catalog: Catalog | None = CATALOG, options: Options | None = None) -> dict[RowId, set[str]]:
    found = list_wanted(screen(events, catalog, options or Options()))
    return {row: set(attributes) for row, attributes in found.items()}


@pytest.mark.parametrize("options", [Options(), Options(user=""), Options(user="idm", allow_loopback=True)])
def test_loopback_needs_a_user_and_can_be_allowed(options: Options) -> None:
    assert became(event(1, perpetrator="idm"), event(2, perpetrator=""), options=options) == {
        1: Reason.PUBLISHED,
        2: Reason.PUBLISHED,
    }


def test_a_loopback_delete_of_a_childs_row_closes_nothing() -> None:
    events = [event(1, 8), event(2, 4, table="usr_phone", perpetrator="idm")]
    found = decide(events, {ONE: {"fname": "x"}}, catalog=CATALOG, options=ours).outcomes
    assert [outcome.reason for outcome in found] == [Reason.PUBLISHED, Reason.LOOPBACK]


@given(st.permutations(range(6)))
def test_events_are_ordered_by_position(numbers: list[int]) -> None:
    ordered = in_order([event(number, time=LATER) for number in numbers], Options())
    assert [one.position[0] for one in ordered] == list(range(6))


@given(st.lists(st.integers(0, 3), min_size=6, max_size=6), st.permutations(range(6)))
def test_with_future_events_time_comes_first_and_then_position(hours: list[int], numbers: list[int]) -> None:
    events = [event(number, time=NOON + dt.timedelta(hours=hours[number])) for number in numbers]
    found = [(hours[one.position[0]], one.position[0]) for one in in_order(events, waiting)]
    assert found == sorted(found)


@pytest.mark.parametrize("options", [replace(waiting, future=False), replace(waiting, now=None)])
def test_without_future_events_or_a_clock_nothing_waits(options: Options) -> None:
    assert became(event(1, time=LATER), options=options) == {1: Reason.PUBLISHED}


def test_a_delete_that_is_not_due_closes_nothing_whoever_made_it() -> None:
    options = replace(waiting, user="idm")
    for perpetrator in (None, "idm"):
        events = [event(1, 6), event(2, 4, time=LATER, perpetrator=perpetrator)]
        found = decide(events, {ONE: {"fname": "x"}}, catalog=CATALOG, options=options).outcomes
        assert [outcome.reason for outcome in found] == [Reason.PUBLISHED, Reason.NOT_DUE]


@pytest.mark.parametrize("options", [Options(), waiting, Options(coalesce=True), replace(waiting, coalesce=True)])
def test_a_change_has_the_place_and_the_time_of_its_last_event(options: Options) -> None:
    events = [event(1, time="2026-01-01"), event(2, key="idu=2"), event(3, column="lname"), event(4, 4, key="idu=2")]
    changes, _ = decide(events, catalog=CATALOG, options=options)
    assert [change.positions for change in changes] == [((2,),), ((1,), (3,)), ((4,),)]
    assert {change.time for change in changes} == {NOON}


def test_what_must_be_read_back() -> None:
    every = {"fname", "lname", PHONE}
    assert asked(event(1), event(2, 4, key="idu=2")) == {}
    assert asked(event(1, 7), event(2, 8, column="LNAME"), event(3, 2)) == {ONE: {"fname", "lname"}}
    assert asked(event(1, 8), event(2, 6), event(3, 5, key="idu=2")) == {ONE: every, TWO: every}
    assert asked(event(1, 8, table="usr_phone", column="phoneno")) == {ONE: {PHONE}}
    assert asked(event(1, 6), event(2, 4)) == {}, "what is deleted is not read back"
    assert asked(event(1, 6, perpetrator="idm"), options=ours) == {}
    assert asked(event(1, 6), catalog=None) == {ONE: set()}
    assert asked(event(1, 7, column="any"), catalog=None) == {ONE: {"any"}}


@pytest.mark.parametrize("rows", [(8, 6), (6, 8)])
def test_what_one_output_and_all_outputs_ask_for_is_read_together(rows: tuple[int, int]) -> None:
    loads = [event(number, kind, perpetrator=f"{REFRESH_FOR}far") for number, kind in enumerate(rows, 1) if kind == 6]
    others = [event(number, kind) for number, kind in enumerate(rows, 1) if kind == 8]
    assert asked(*loads, *others) == {ONE: {"fname", "lname", PHONE}}


def test_an_object_of_several_spellings_that_only_one_output_asks_for_is_read() -> None:
    table = Table(name="usr", columns=(Column(name="idu", key=1, alike=("case",)), Column(name="fname")))
    alone = event(1, 6, key="idu=Ab", perpetrator=f"{REFRESH_FOR}far")
    assert asked(alone, catalog=Catalog([table])) == {RowId(None, "usr", "idu=Ab"): {"idu", "fname"}}


def test_columns_are_asked_for_as_the_database_writes_them() -> None:
    table = Table(name="usr", columns=(Column(name="IDU", key=1), Column(name="Fname")))
    assert asked(event(1, 8, column="FNAME"), catalog=Catalog([table])) == {RowId(None, "usr", "IDU=1"): {"Fname"}}


@shares(asked=0.2, told=0.2)
@given(careless_logs())
def test_rows_that_nobody_asked_for_change_nothing(events: list[Event]) -> None:
    row: Row = {"fname": "Jack", "lname": None, PHONE: ()}
    rows = dict.fromkeys((ONE, TWO), row)
    answers = dict.fromkeys(list_wanted(screen(events, CATALOG, Options())), row)
    changes, outcomes = decide(events, answers, catalog=CATALOG)
    met(asked=answers and answers != rows, told=changes)
    assert decide(events, rows, catalog=CATALOG) == (changes, outcomes)


def test_every_type_and_every_reason_has_its_place_in_the_tables() -> None:
    assert set(MEANING) == set(Kind)
    assert set(STATUS) == set(EXPLANATION) == set(Reason)
    assert len({name for name, _ in PRECEDENCE}) == len(PRECEDENCE)


@pytest.mark.parametrize("coalesce", [True, False])
def test_a_whole_row_that_is_all_key_is_an_add(coalesce: bool) -> None:
    """It has no attributes to tell, and its delete is told: without the add a receiver would have fewer rows each day."""
    catalog = Catalog([Table(name="usr", columns=(Column(name="idu", key=1),))])
    changes, (first, last) = decide(
        [event(1, 5), event(2, 6)], {ONE: {}}, catalog=catalog, options=Options(coalesce=coalesce)
    )
    assert (first.reason, first.winner) == (Reason.SUPERSEDED, (2,))
    assert last.reason is Reason.PUBLISHED
    assert [(change.op, change.edits, change.refresh) for change in changes] == [(Op.ADD, (), False)]


def test_a_key_that_cannot_be_read_is_not_shown_where_keys_are_hidden() -> None:
    (outcome,) = decide([event(1, key="idu=secret,")], catalog=CATALOG, options=Options(hiding=True)).outcomes
    assert outcome.reason is Reason.INVALID
    assert "secret" not in str(outcome.note)


COLUMNS = (Column(name="idu", key=1), Column(name="fname"), Column(name="fax"))
GONE = Catalog([Table(name="usr", columns=COLUMNS, gone=("fax",))])


@pytest.mark.parametrize(
    "kind, logged, op, told",
    [
        (Kind.INSERT_FIELD_BACK, "7", Op.ADD, ("fax", "7")),
        (Kind.UPDATE_FIELD_BACK, "7", Op.MODIFY, ("fax", "7")),
        (Kind.INSERT_FIELD_BACK, None, Op.MODIFY, ("fname", "a")),  # a new object is read back whole
    ],
)
def test_a_column_that_is_gone_has_the_value_that_was_logged(
    kind: Kind, logged: str | None, op: Op, told: tuple[str, str]
) -> None:
    (change,) = decide([event(1, int(kind), column="fax", new=logged)], {ONE: {"fname": "a"}}, catalog=GONE).changes
    assert (change.op, [(edit.column, edit.new) for edit in change.edits]) == (op, [told])
    assert change.created is (logged is None)


def test_a_column_that_is_gone_without_a_logged_value_has_vanished() -> None:
    logged = event(1, int(Kind.UPDATE_FIELD_BACK), column="fax", new=None)
    (outcome,) = decide([logged], {ONE: {"fname": "a"}}, catalog=GONE).outcomes
    assert (outcome.reason, outcome.note) == (
        Reason.VANISHED,
        "usr has no captured column fax any more to be read back, and no value of it was logged.",
    )


def test_what_is_due_just_now_does_not_wait() -> None:
    zoned = replace(waiting, now=NOON.replace(tzinfo=dt.UTC))
    assert became(event(1, time=NOON), options=waiting) == became(event(1, time=NOON), options=zoned)
    assert became(event(1, time=NOON), options=zoned) == {1: Reason.PUBLISHED}
