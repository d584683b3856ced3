"""What must hold of the rules for every history: replay, cut anywhere, account for all."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.model import REFRESH_FOR, Event, Kind, Reason, Status, Transaction
from eventlog.core.rules import STATUS, Options, Round, decide
from tests.support.daily import daily
from tests.support.memory import MemoryRows
from tests.support.replay import Store, filled, replay
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, PHONE, History, careless_logs, cuts, histories, pieces

options = st.builds(
    Options,
    user=st.sampled_from([None, "idm"]),
    allow_loopback=st.booleans(),
    coalesce=st.booleans(),
    future=st.booleans(),
    now=st.sampled_from([None, dt.datetime(2026, 1, 1, 12)]),
)


TIME = dt.datetime(2026, 1, 1)


def held(history: History) -> Store:
    """What the tables hold in the end, as the receiver should."""
    return filled(
        {
            row: {name: set(value) if name == PHONE else {value} - {None} for name, value in values.items()}
            for row, values in history.rows.items()
        }
    )


@shares(changes=0.8, rows=0.5)
@given(histories(), st.booleans())
def test_replaying_the_changes_gives_what_the_tables_hold(history: History, coalesce: bool) -> None:
    changes, _ = decide(history.events, history.table, catalog=CATALOG, options=Options(coalesce=coalesce))
    met(changes=changes, rows=held(history))
    assert filled(replay(changes, CATALOG)) == held(history)


@daily
@shares(cut=0.4)
@given(st.data(), histories(), st.booleans())
def test_so_does_cutting_the_history_anywhere(data: st.DataObject, history: History, coalesce: bool) -> None:
    store: Store = {}
    cut = list(pieces(history.events, data.draw(cuts(history))))
    met(cut=sum(map(bool, cut)) > 1)
    for events in cut:
        changes, _ = decide(events, history.table, catalog=CATALOG, options=Options(coalesce=coalesce))
        store = replay(changes, CATALOG, store)
    assert filled(store) == held(history)


@shares(loaded=0.3, changes=0.5)
@given(st.data(), histories(), options.map(lambda some: replace(some, user=None)))
def test_a_load_for_one_output_takes_nothing_from_the_others_and_gives_it_what_the_tables_hold(
    data: st.DataObject, history: History, options: Options
) -> None:
    events: list[Event] = []
    for event in [*history.events, None]:
        for row in data.draw(st.lists(st.sampled_from([*history.rows]), max_size=2)) if history.rows else ():
            key, number = row.key, len(events)
            by = data.draw(st.sampled_from([f"{REFRESH_FOR}far", f"{REFRESH_FOR}near "]))
            load = Event(position=(number,), kind=Kind.INSERT_ROW_BACK, table="usr", key=key, time=TIME, perpetrator=by)
            events.append(load)
        if event is not None:
            events.append(replace(event, position=(len(events),)))
    theirs = [event for event in events if not (event.perpetrator or "").startswith(REFRESH_FOR)]
    changes = decide(events, history.table, catalog=CATALOG, options=options).changes
    met(loaded=[one for one in changes if one.only], changes=theirs)
    assert [one for one in changes if not one.only] == decide(
        theirs, history.table, catalog=CATALOG, options=options
    ).changes
    assert all(one.refresh for one in changes if one.only)
    if not options.future:
        far = [one for one in changes if one.only in ("", "far")]
        assert filled(replay(far, CATALOG)) == held(history)


@shares(published=0.15, several=0.05)
@given(careless_logs(), options, st.booleans(), st.booleans())
def test_every_event_has_one_outcome_and_stands_in_at_most_one_change(
    events: list[Event], options: Options, known: bool, readable: bool
) -> None:
    changes, outcomes = decide(events, {} if readable else None, catalog=CATALOG if known else None, options=options)
    assert sorted(outcome.position for outcome in outcomes) == [event.position for event in events]
    contributing = [position for change in changes for position in change.positions]
    published = {outcome.position for outcome in outcomes if outcome.reason is Reason.PUBLISHED}
    met(published=published, several=len(changes) > 1)
    assert sorted(contributing) == sorted(published)
    assert len({change.event_id for change in changes}) == len(changes)


@shares(odd=0.3, published=0.3)
@given(careless_logs(), options)
def test_a_reason_decides_the_letter_and_every_other_letter_has_a_note(events: list[Event], options: Options) -> None:
    outcomes = decide(events, {}, catalog=CATALOG, options=options).outcomes
    reasons = {outcome.reason for outcome in outcomes}
    met(odd=reasons - {Reason.PUBLISHED}, published=Reason.PUBLISHED in reasons)
    for outcome in outcomes:
        assert outcome.status is STATUS[outcome.reason]
        assert (outcome.note is None) == (outcome.status is Status.NEW or outcome.reason is Reason.PUBLISHED)
        if outcome.reason is Reason.SUPERSEDED:
            assert outcome.winner is not None


@shares(shuffled=0.3)
@given(st.data(), histories())
def test_the_order_in_which_events_are_handed_over_does_not_matter(data: st.DataObject, history: History) -> None:
    shuffled = data.draw(st.permutations(history.events))
    met(shuffled=shuffled != history.events)
    straight = decide(history.events, history.table, catalog=CATALOG)
    assert decide(shuffled, history.table, catalog=CATALOG) == straight


@shares(objects=0.3)
@given(histories())
def test_changes_come_in_the_order_of_their_last_events(history: History) -> None:
    changes, _ = decide(history.events, history.table, catalog=CATALOG)
    met(objects=len({change.row for change in changes}) > 1)
    places = [change.positions[-1] for change in changes]
    assert places == sorted(places)


@shares(several=0.3)
@given(st.data(), histories(), st.booleans())
def test_a_change_names_the_transaction_that_its_events_were_written_in(
    data: st.DataObject, history: History, coalesce: bool
) -> None:
    numbers = sorted(data.draw(st.integers(1, 4)) for _ in history.events)
    events = [
        replace(event, transaction=Transaction(id=number))
        for event, number in zip(history.events, numbers, strict=True)
    ]
    written = {event.position: event.transaction for event in events}
    changes, _ = decide(events, history.table, catalog=CATALOG, options=Options(coalesce=coalesce))
    met(several=len({change.transaction for change in changes}) > 1)
    for change in changes:
        assert change.transaction == written[change.positions[-1]]
        assert coalesce or {written[position] for position in change.positions} == {change.transaction}


@daily
@shares(several=0.4, read=0.5)
@given(histories(), st.booleans())
def test_every_way_to_decide_a_history_tells_the_same(history: History, coalesce: bool) -> None:
    options = Options(coalesce=coalesce)
    told = decide(history.events, history.table, catalog=CATALOG, options=options)
    reader = MemoryRows(history.table)
    way = Round(catalog=CATALOG, reader=reader, options=options)
    assert way.decide(history.events) == told
    met(several=len(told.changes) > 1, read=reader.asked)
    events = sorted(history.events, key=lambda event: (event.key or "", event.position))
    by_object = replace(way, by_object=True).decide(events)
    last = [change.positions[-1] for change in told.changes]
    assert sorted(by_object.changes, key=lambda one: last.index(one.positions[-1])) == told.changes
    assert sorted(by_object.outcomes, key=lambda one: one.position) == list(told.outcomes)
