"""Lifetimes, precedence and merging, beyond what the golden files show; and that all of it is linear."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from eventlog.core.model import Edit, Event, Op, Outcome, Reason, Row, RowId, Transaction
from eventlog.core.rules import Options, decide
from tests.support.cost import is_linear
from tests.support.strategies import CATALOG, PHONE

ONE = RowId(None, "usr", "idu=1")
JACK: Row = {"fname": "Jack", "lname": None, PHONE: ("1", "2")}
COALESCE = Options(coalesce=True)

Written = tuple[int, str | None, str | None, str | None]


def log(*rows: Written) -> list[Event]:
    """Rows of usr idu=1, numbered from 1: type, column, old, new."""
    return [
        Event(
            position=(number,), kind=kind, table="usr", key="idu=1", column=column, old=old, new=new, time="2026-01-01"
        )
        for number, (kind, column, old, new) in enumerate(rows, 1)
    ]


def told(*rows: Written, row: Row | None = JACK, options: Options | None = None) -> list[tuple[str, Op, list[Edit]]]:
    """What the rows amount to: event-id, operation and edits of every change."""
    rows_found = {} if row is None else {ONE: row}
    changes, _ = decide(log(*rows), rows_found, catalog=CATALOG, options=options)
    assert {change.row for change in changes} <= {ONE}
    return [(change.event_id, change.op, list(change.edits)) for change in changes]


def outcomes(*rows: Written, row: Row | None = JACK, options: Options | None = None) -> list[Outcome]:
    return list(decide(log(*rows), {} if row is None else {ONE: row}, catalog=CATALOG, options=options).outcomes)


DELETE: Written = (4, None, None, None)


def test_a_column_that_was_not_read_is_an_error_and_never_null() -> None:
    found = outcomes((8, "fname", None, None), (2, "fname", "a", "b"), row={"lname": "x"})
    assert [outcome.reason for outcome in found] == [Reason.INVALID, Reason.PUBLISHED]
    assert found[0].note == "the row that was read back has no column fname."


@pytest.mark.parametrize(
    "rows, op, edits",
    [
        ([(2, "fname", "a", "b"), (2, "fname", "b", "c")], Op.MODIFY, [Edit(column="fname", old="a", new="c")]),
        ([(1, "fname", None, "a"), (2, "fname", "a", None)], Op.ADD, [Edit(column="fname", new=None)]),
        (
            [(2, "lname", "x", "y"), (1, "fname", None, "a"), (2, "fname", "a", "b")],
            Op.MODIFY,
            [Edit(column="lname", old="x", new="y"), Edit(column="fname", new="b")],
        ),
        (
            [(2, "fname", "a", "b"), (3, "fname", "b", "a")],
            Op.MODIFY,
            [Edit(column="fname", old="a", new="a", reset=True)],
        ),
        (
            [(3, "fname", "a", "b"), (2, "fname", "b", "c")],
            Op.MODIFY,
            [Edit(column="fname", old="a", new="c", reset=True)],
        ),
        (
            [(2, "fname", "a", "b"), (2, "lname", "x", "y"), (2, "fname", "b", "a")],
            Op.MODIFY,
            [Edit(column="lname", old="x", new="y")],
        ),
    ],
)
def test_coalesced_the_first_old_value_and_the_last_new_one_count(
    rows: list[Written], op: Op, edits: list[Edit]
) -> None:
    number = f"1-{len(rows)}"
    assert told(*rows, options=COALESCE) == [(number, op, edits)]
    assert {outcome.reason for outcome in outcomes(*rows, options=COALESCE)} == {Reason.PUBLISHED}


def one_object(count: int) -> list[Event]:
    return log(*[(2, "fname", "a", "b")] * count)


def with_deletes(count: int) -> list[Event]:
    return log(*[(1, "fname", None, "a"), DELETE] * (count // 2))


def mixed(count: int) -> list[Event]:
    """Field rows of every type, and 8 rows among them."""
    return log(
        *[(1, "fname", None, "a"), (2, "lname", "a", "b"), (8, PHONE, None, None), (3, "lname", "a", "b")]
        * (count // 4)
    )


@pytest.mark.parametrize("made", [one_object, with_deletes, mixed], ids=lambda made: made.__name__)
@pytest.mark.parametrize("options", [Options(), COALESCE], ids=["history", "coalesce"])
def test_deciding_many_events_of_one_object_is_linear(made: Callable[[int], list[Event]], options: Options) -> None:
    def decided(count: int) -> Callable[[], object]:
        events = made(count)
        return lambda: decide(events, {ONE: JACK}, catalog=CATALOG, options=options)

    assert is_linear(decided, 1_500)


@pytest.mark.parametrize("first", [7, 8])
def test_a_row_beats_a_field_that_names_a_key_column(first: int) -> None:
    """A table that is all key has nothing else to name, and a row that is read as a whole has no key columns."""
    found = outcomes((first, "idu", None, None), (5, None, None, None), row={"fname": "Jack"})
    assert [outcome.reason for outcome in found] == [Reason.SUPERSEDED, Reason.PUBLISHED]


def test_coalesced_each_transaction_begins_anew() -> None:
    rows: list[Written] = [(2, "fname", "a", "b"), (1, "lname", None, "c"), (2, "fname", "b", "d")]
    events = [replace(one, transaction=Transaction(id=one.position[0])) for one in log(*rows)]
    changes, _ = decide(events, catalog=CATALOG, options=COALESCE)
    assert [(one.event_id, one.op) for one in changes] == [("1", Op.MODIFY), ("2", Op.ADD), ("3", Op.MODIFY)]
