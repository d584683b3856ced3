"""Events of tables whose triggers log whole rows: what stayed is told as captured, and a delete has the row that went."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.convert.long_object import decide_pieces
from eventlog.core.model import Change, Edit, Event, Op, Reason, Transaction
from eventlog.core.rules import Options, Round, decide
from eventlog.core.schema import Catalog
from tests.support.strategies import CATALOG

IMAGES = Catalog([replace(table, images=True) for table in CATALOG])
ROW = '{"fname":"Jack","lname":null,"gone":"x"}'


def log(*rows: tuple[Any, ...]) -> list[Event]:
    same: dict[str, Any] = {"table": "usr", "key": "idu=1", "time": "2026-01-01", "transaction": Transaction(id=1)}
    return [
        Event(position=(number,), kind=kind, column=column, old=old, new=new, **same)
        for number, (kind, column, old, new) in enumerate(rows, 1)
    ]


def test_what_is_null_before_and_after_was_captured_but_in_the_log_of_somebody_else() -> None:
    update = log((2, "fname", "Jack", "John"), (2, "lname", None, None))
    [change] = decide(update, catalog=IMAGES).changes
    assert change.edits == (Edit(column="fname", old="Jack", new="John"), Edit(column="lname", old=None, new=None))
    assert (change.whole, change.positions) == (True, ((1,), (2,)))
    decision = decide(update, catalog=CATALOG)
    assert [(change.positions, change.whole) for change in decision.changes] == [(((1,),), False)]
    assert decision.outcomes[1].reason is Reason.NOTHING


@pytest.mark.parametrize(
    "old, edits",
    [
        (ROW, (Edit(column="fname", old="Jack"), Edit(column="lname", old=None))),
        ('{"fname":"two\nlines"}', (Edit(column="fname", old="two\nlines"),)),
        ("no JSON", ()),
        ('{"fname":1}', ()),
        ("[]", ()),
        (None, ()),
    ],
)
def test_a_delete_has_the_row_that_went_where_it_can_be_read(old: str | None, edits: tuple[Edit, ...]) -> None:
    [change] = decide(log((4, None, old, None)), catalog=IMAGES).changes
    assert (change.op, change.edits, change.whole) == (Op.DELETE, edits, bool(edits))
    [plain] = decide(log((4, None, old, None)), catalog=CATALOG).changes
    assert (plain.edits, plain.whole) == ((), False)
    assert decide(log((4, None, old, None))).changes[0].edits == ()


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_in_pieces_it_is_the_same(size: int, coalesce: bool) -> None:
    two = Transaction(id=2)
    first = log((1, "fname", None, "a"), (1, "lname", None, None), (2, "fname", "a", "b"), (2, "lname", None, None))
    more = log(*[(2, "fname", "b", "a"), (2, "fname", "a", "b")], (4, None, ROW, None), (5, None, None, None))
    later = [replace(event, position=(event.position[0] + 4,), transaction=two) for event in more]
    events = [*first, *later]
    told: list[Change] = []

    def pieces() -> list[list[Event]]:
        return [events[place : place + size] for place in range(0, len(events), size)]

    def tell(change: Change) -> None:
        told.append(replace(change, positions=tuple(change.positions)))

    round_ = Round(catalog=IMAGES, options=Options(coalesce=coalesce))
    outcomes = [outcome for some in decide_pieces(round_, pieces, tell) for outcome in some]
    whole = round_.decide(events)
    assert told == whole.changes
    assert sorted(outcomes, key=lambda one: one.position) == list(whole.outcomes)


@pytest.mark.parametrize("last, edits", [("Jack", None), ("Joe", [("Jack", "Joe"), (None, None)])])
def test_coalesced_the_row_stays_whole_or_nothing_is_told(last: str, edits: list[tuple[Any, Any]] | None) -> None:
    events = log((2, "fname", "Jack", "John"), (2, "lname", None, None), (2, "fname", "John", last))
    decision = decide([*events], catalog=IMAGES, options=Options(coalesce=True))
    assert [[(one.old, one.new) for one in change.edits] for change in decision.changes] == ([edits] if edits else [])
    assert {outcome.reason for outcome in decision.outcomes} == {Reason.PUBLISHED if edits else Reason.NOTHING}
