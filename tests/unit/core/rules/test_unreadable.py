"""What becomes of events whose row cannot be read back: they end, or wait, and nobody else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import Event, Kind, ReadBack, Reason, RowId, Status, Unreadable
from eventlog.core.rules import Options, decide
from eventlog.core.rules.screen import screen
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, History, histories

USR1, USR2 = RowId(None, "usr", "idu=1"), RowId(None, "usr", "idu=2")
PARTLY = Unreadable(note="usr idu=1 cannot be read back: column lname: division by zero.", row={"fname": "a"})
NOTHING = Unreadable(note="usr idu=1 cannot be read back.")
DENIED = Unreadable(note="permission denied.", reason=Reason.NO_RIGHT)
FULL = Unreadable(note="full.", reason=Reason.NO_ROOM)


def event(number: int, kind: Kind, column: str | None = None, key: str = "idu=1", new: str | None = None) -> Event:
    time = "2026-01-01 00:00:00"
    return Event(position=(number,), kind=kind, table="usr", key=key, column=column, time=time, new=new)


def ended(events: list[Event], found: ReadBack) -> list[tuple[Status, Reason]]:
    made = decide(events, {USR1: found, USR2: {"fname": "b", "lname": None}}, catalog=CATALOG)
    told = {one.note for one in made.outcomes if one.reason in (Reason.INVALID, Reason.NO_RIGHT, Reason.NO_ROOM)}
    assert isinstance(found, Unreadable)
    assert told <= {found.note}
    return [(one.status, one.reason) for one in made.outcomes]


ERROR, SAID = (Status.ERROR, Reason.INVALID), (Status.SUCCESS, Reason.PUBLISHED)


def test_what_cannot_be_read_is_an_error_and_the_rest_is_published() -> None:
    rows = [event(1, Kind.UPDATE_ROW_BACK), event(2, Kind.UPDATE_ROW_BACK, key="idu=2")]
    columns = [event(1, Kind.UPDATE_FIELD_BACK, "fname"), event(2, Kind.UPDATE_FIELD_BACK, "lname")]
    assert ended(rows, PARTLY) == ended(rows, NOTHING) == [ERROR, SAID]
    assert (ended(columns, PARTLY), ended(columns, NOTHING)) == ([SAID, ERROR], [ERROR, ERROR])
    carried = [event(1, Kind.UPDATE_FIELD, "lname", new="x"), event(2, Kind.UPDATE_ROW_BACK)]
    assert ended(carried, PARTLY) == [SAID, ERROR]


def test_a_key_that_is_no_text_is_an_error_and_not_a_row_that_is_gone() -> None:
    """A database that keeps any bytes has the row, and nobody can ask for it."""
    events = [event(1, Kind.UPDATE_ROW_BACK, key="idu=\udc80"), event(2, Kind.UPDATE_ROW_BACK, key="idu=3")]
    made = decide(events, {}, catalog=CATALOG)
    assert [(one.status, one.reason) for one in made.outcomes] == [ERROR, (Status.WARNING, Reason.VANISHED)]


@pytest.mark.parametrize("found", [DENIED, FULL])
def test_while_a_row_waits_to_be_read_all_of_its_open_lifetime_does(found: Unreadable) -> None:
    """Else its later events would be told before an earlier one."""
    events = [
        event(1, Kind.UPDATE_FIELD, "fname", new="before"),
        event(2, Kind.DELETE_ROW),
        event(3, Kind.INSERT_ROW_BACK),
        event(4, Kind.UPDATE_FIELD, "fname", new="after"),
        event(5, Kind.UPDATE_ROW_BACK, key="idu=2"),
    ]
    waits = (Status.NEW, found.reason)
    assert ended(events, found) == [SAID, SAID, waits, waits, SAID]


@shares(unreadable=0.2, others=0.4)
@given(histories(), st.sampled_from([PARTLY, NOTHING, DENIED, FULL]), st.booleans())
def test_one_that_cannot_be_read_changes_nothing_for_others(
    history: History, found: Unreadable, coalesce: bool
) -> None:
    options = Options(coalesce=coalesce)
    rows: dict[RowId, ReadBack] = {**history.table}
    usual = decide(history.events, rows, catalog=CATALOG, options=options)
    rows[USR1] = found
    made = decide(history.events, rows, catalog=CATALOG, options=options)
    met(unreadable=made != usual, others=any(one.row != USR1 for one in made.changes))
    assert [one for one in made.changes if one.row != USR1] == [one for one in usual.changes if one.row != USR1]
    mine = {event.position for event in history.events if event.key == USR1.key}
    assert [one for one in made.outcomes if one.position not in mine] == [
        one for one in usual.outcomes if one.position not in mine
    ]
    contributing = sorted(position for change in made.changes for position in change.positions)
    assert contributing == sorted(one.position for one in made.outcomes if one.reason is Reason.PUBLISHED)
    assert [one.position for one in made.outcomes] == [event.position for event in history.events]


def test_an_event_with_a_fault_ends_with_it() -> None:
    faulty = Event(position=(1,), kind=1, table="usr", key="idu=1", column="fname", time="now", fault="too large.")
    screened = screen([faulty], CATALOG, Options())
    assert [(one.status, one.note) for one in screened.outcomes.values()] == [(Status.ERROR, "too large.")]


def test_a_closed_lifetime_reads_nothing() -> None:
    events = [event(1, Kind.UPDATE_ROW_BACK), event(2, Kind.DELETE_ROW)]
    assert ended(events, DENIED) == [(Status.WARNING, Reason.VANISHED), SAID]
