"""The law of shapes: the rules never look at a value. They see whether there is one, and whether two are the same.

So two histories of one shape give the same changes, with values exchanged: rules and text may run once for a kind of
change, and fill in values after that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Change, Event, Kind, ReadBack, RowId, Transaction
from eventlog.core.rules import Options, Round
from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.rules.images import encode_image, open_images
from eventlog.core.rules.meaning import Decision
from eventlog.core.rules.screen import Screened, screen
from eventlog.core.schema import Catalog
from tests.support.shares import met, shares
from tests.support.strategies import CATALOG, PHONE, tricky

NUMBER: Final = 7
NAMES: Final = ("fname", "lname")
TABLES: Final = Catalog(
    CATALOG,
    former=Definitions(
        [
            Definition(table=table, today=table, images={NUMBER: NAMES} if table.name == "usr" else {})
            for table in CATALOG
        ],
        CATALOG,
    ),
)

Symbol = str | None
Texts = Mapping[str, str]
SYMBOLS: Final = "abcd"
symbols = st.none() | st.sampled_from(SYMBOLS)
telling = st.sampled_from(
    ["", " ", "0", "1", "1.0", "01", "A", "a", "NULL", "null", "[", '["7","x","y"]', "2026-01-01 00:00:00"]
)
"""Values that somebody might look at."""
texts = st.lists(telling | tricky, min_size=len(SYMBOLS), max_size=len(SYMBOLS), unique=True).map(
    lambda found: dict(zip(SYMBOLS, found, strict=True))
)


class Fact(Struct, frozen=True):
    """A row of a log, with symbols for its values. One without a column is an image, if it has `after` or `before`."""

    kind: int
    key: str
    column: str | None = None
    before: tuple[Symbol, ...] = ()
    after: tuple[Symbol, ...] = ()
    transaction: int = 1


class Shape(Struct, frozen=True):
    """A history without values, and what reading back finds."""

    facts: tuple[Fact, ...]
    found: tuple[tuple[Symbol, Symbol, tuple[str, ...]] | None, ...]
    coalesce: bool


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    key, transaction = draw(st.sampled_from(["idu=1", "idu=2"])), draw(st.integers(1, 2))
    before: tuple[Symbol, ...] = draw(st.tuples(symbols, symbols))
    after: tuple[Symbol, ...] = draw(st.tuples(symbols, symbols))
    kind = draw(st.sampled_from([*Kind]))
    if kind in (Kind.INSERT_ROW_BACK, Kind.UPDATE_ROW_BACK, Kind.DELETE_ROW):
        if draw(st.integers(0, 3)) == 0:  # to be read back, or bare
            return Fact(kind, key, transaction=transaction)
        before = (
            () if kind == Kind.INSERT_ROW_BACK or (kind == Kind.UPDATE_ROW_BACK and draw(st.booleans())) else before
        )
        return Fact(kind, key, None, before, () if kind == Kind.DELETE_ROW else after, transaction)
    column = draw(st.sampled_from(["fname", "lname", PHONE]))
    return Fact(kind, key, column, before[:1], after[:1], transaction)


rows = st.none() | st.tuples(symbols, symbols, st.lists(st.sampled_from(SYMBOLS), max_size=2, unique=True).map(tuple))
shapes = st.builds(Shape, st.lists(facts(), min_size=1, max_size=8).map(tuple), st.tuples(rows, rows), st.booleans())
cases = st.tuples(shapes, texts, texts)


def fill(shape: Shape, values: Texts) -> tuple[list[Event], dict[RowId, ReadBack]]:
    """The history of a shape with these values, and what the table holds."""

    def text(fact: Fact, symbols: tuple[Symbol, ...]) -> str | None:
        filled = [None if symbol is None else values[symbol] for symbol in symbols]
        if fact.column is not None:
            return filled[0]
        return encode_image(NUMBER, filled) if filled else None

    events = [
        Event(
            position=(number,),
            kind=fact.kind,
            table="usr",
            key=fact.key,
            column=fact.column,
            old=text(fact, fact.before),
            new=text(fact, fact.after),
            time="2026-01-01 00:00:00",
            transaction=Transaction(id=fact.transaction),
        )
        for number, fact in enumerate(shape.facts, 1)
    ]
    found: dict[RowId, ReadBack] = {}
    for number, row in enumerate(shape.found, 1):
        if row is not None:
            fname, lname = (None if symbol is None else values[symbol] for symbol in row[:2])
            phones = tuple(values[symbol] for symbol in row[2])
            found[RowId(None, "usr", f"idu={number}")] = {"fname": fname, "lname": lname, PHONE: phones}
    return events, found


def decide(shape: Shape, values: Texts) -> Decision:
    events, found = fill(shape, values)

    class Reader:
        def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
            answers: dict[RowId, ReadBack] = {}
            for row, columns in wanted.items():
                back: Any = found.get(row)
                if back is not None:
                    answers[row] = {name: back[name] for name in columns if name in back}
            return answers

    rules = Round(catalog=TABLES, reader=Reader(), options=Options(coalesce=shape.coalesce))
    return rules.decide(open_images(events, TABLES))


def exchange(changes: list[Change], former: Texts, values: Texts) -> list[Change]:
    """The changes with other values."""
    symbol_of = {text: symbol for symbol, text in former.items()}

    def other(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(other, value))
        return values[symbol_of[value]] if isinstance(value, str) else value

    return [
        replace(
            change,
            edits=tuple(replace(edit, old=other(edit.old), new=other(edit.new)) for edit in change.edits),
        )
        for change in changes
    ]


def holds(case: tuple[Shape, Texts, Texts]) -> bool:
    """Whether both histories of a shape come to the same."""
    shape, some, others = case
    changes, outcomes = decide(shape, some)
    other_changes, other_outcomes = decide(shape, others)
    return exchange(changes, some, others) == other_changes and list(outcomes) == list(other_outcomes)


@shares(changes=0.8, images=0.5, back=0.2)
@given(cases)
def test_other_values_give_the_same_changes_with_values_exchanged(case: tuple[Shape, Texts, Texts]) -> None:
    shape = case[0]
    is_image = [fact.column is None and bool(fact.before or fact.after) for fact in shape.facts]
    is_back = [fact.column is None and not (fact.before or fact.after) for fact in shape.facts]
    met(changes=decide(shape, case[1]).changes, images=any(is_image), back=any(is_back))
    assert holds(case)


def _without_empty(event: Event) -> Event:
    return replace(event, new=event.new or None)


def _without_case(event: Event) -> Event | None:
    same = event.old is not None and event.new is not None and event.old.lower() == event.new.lower()
    return None if same and event.old != event.new else event


def _without_equal_numbers(event: Event) -> Event | None:
    try:
        return None if event.old != event.new and float(event.old or "") == float(event.new or "") else event
    except ValueError:
        return event


@pytest.mark.in_turn
@pytest.mark.parametrize("look", [_without_empty, _without_case, _without_equal_numbers])
def test_rules_that_look_at_a_value_are_found(
    look: Callable[[Event], Event | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def screen_by_value(events: Any, *arguments: Any, **named: Any) -> Screened:
        looked = map(look, events)
        return screen([event for event in looked if event is not None], *arguments, **named)

    monkeypatch.setattr("eventlog.core.rules.round.screen", screen_by_value)
    # Nobody reads what is found, so it need not be small.
    enough = settings(max_examples=5_000, database=None, phases=[Phase.generate])
    assert not holds(find(cases, lambda case: not holds(case), settings=enough))
