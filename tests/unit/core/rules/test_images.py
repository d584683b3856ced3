"""Image rows: what they are, and that they stand for the field rows of their change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.convert.long_object import decide_pieces
from eventlog.core.model import ABSENT, Change, Edit, Event, Op, Reason, Status, Transaction
from eventlog.core.rules import Options, Round
from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.rules.images import decode_image, encode_image, open_images
from eventlog.core.rules.meaning import Decision
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.schema_file import catalog_from_json, catalog_to_json
from eventlog.xds.write import XdsFormat
from tests.support.strategies import CATALOG

NAMES = ("fname", "lname")
ROW = '["7","Jack",null]'


def with_images(tables: Catalog = CATALOG, **images: dict[int, tuple[str, ...]]) -> Catalog:
    definitions = [Definition(table=table, today=table, images=images.get(table.name, {})) for table in tables]
    return Catalog(tables, former=Definitions(definitions, tables))


IMAGES = with_images(usr={7: NAMES})


def log(*rows: tuple[Any, ...], transaction: int = 1) -> list[Event]:
    """Rows (kind, column, old, new) of the object idu=1."""
    same: dict[str, Any] = {"table": "usr", "key": "idu=1", "time": "2026-01-01 00:00:00"}
    return [
        Event(
            position=(number,),
            kind=kind,
            column=column,
            old=old,
            new=new,
            transaction=Transaction(id=transaction),
            **same,
        )
        for number, (kind, column, old, new) in enumerate(rows, 1)
    ]


def decided(events: list[Event], catalog: Catalog = IMAGES, options: Options | None = None) -> Decision:
    return Round(catalog=catalog, options=options or Options()).decide(open_images(events, catalog))


def written(changes: list[Change]) -> list[str]:
    """The XDS of changes, without the numbers of their events."""
    numbered = [replace(change, positions=((number,),)) for number, change in enumerate(changes)]
    return [one.text for one in XdsFormat().writer(CATALOG)(numbered)]


@pytest.mark.parametrize("values", [[], ["a", None, ""], ['"\\', "\n\x01", "ä\u2028😀"]])
def test_a_text_comes_back(values: list[str | None]) -> None:
    assert decode_image(encode_image(12, values)) == (12, values)


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", "null", '["a"]', '[null,"a"]', '["-1"]', '["1",2]', '["1",["a"]]', '["1"] x', '["٣"]']
)
def test_what_is_no_image_is_told_apart(text: str) -> None:
    assert decode_image(text) is None


def test_a_text_whose_writer_escapes_no_control_characters_is_read() -> None:
    assert decode_image('["7","two\nlines"]') == (7, ["two\nlines"])


def test_an_image_says_what_there_was_and_what_there_is() -> None:
    insert, update, change, delete = log(
        (5, None, None, ROW), (6, None, ROW, '["7","John",null]'), (6, None, None, ROW), (4, None, ROW, None)
    )
    added = decided([insert]).changes[0]
    assert (added.op, added.whole) == (Op.ADD, True)
    assert added.edits == (Edit(column="fname", new="Jack"), Edit(column="lname", new=None))
    modified = decided([update]).changes[0]
    assert (modified.op, modified.whole) == (Op.MODIFY, True)
    assert modified.edits == (Edit(column="fname", old="Jack", new="John"), Edit(column="lname", old=None, new=None))
    without_former = decided([change]).changes[0]
    assert [(edit.old, edit.new, edit.reset) for edit in without_former.edits] == [
        (ABSENT, "Jack", True),
        (ABSENT, None, True),
    ]
    gone = decided([delete]).changes[0]
    assert (gone.op, gone.whole, gone.edits) == (
        Op.DELETE,
        True,
        (Edit(column="fname", old="Jack"), Edit(column="lname", old=None)),
    )


def test_an_update_whose_texts_are_equal_says_nothing() -> None:
    decision = decided(log((6, None, ROW, ROW)))
    assert decision.changes == []
    assert [(one.status, one.reason) for one in decision.outcomes] == [(Status.SUCCESS, Reason.NOTHING)]


def test_a_childs_values_join_the_image_of_their_transaction_and_no_other_image_does() -> None:
    insert = (5, None, None, ROW)
    phone = (1, "usr_phone.phoneno", None, "1")
    more = (1, "usr_phone.phoneno", None, "2")
    assert [change.positions for change in decided(log(insert, phone, more)).changes] == [((1,), (2,), (3,))]
    update = (6, None, ROW, '["7","John",null]')
    again = (6, None, '["7","John",null]', ROW)
    assert [change.positions for change in decided(log(update, again)).changes] == [((1,),), ((2,),)]
    # An image begins a change of its own.
    assert [change.positions for change in decided(log((2, "usr_phone.phoneno", "1", None), update)).changes] == [
        ((1,),),
        ((2,),),
    ]


def test_the_rules_of_precedence_hold_for_an_image_as_for_field_rows() -> None:
    update = (6, None, ROW, '["7","John","Doe"]')

    class Reader:
        def rows(self, wanted: Any) -> Any:
            return {row: dict.fromkeys(columns, "now") for row, columns in wanted.items()}

    def read(*rows: tuple[Any, ...]) -> Decision:
        return Round(catalog=IMAGES, reader=Reader()).decide(open_images(log(*rows), IMAGES))

    superseded = read(update, (6, None, None, None))
    assert [one.reason for one in superseded.outcomes] == [Reason.SUPERSEDED, Reason.PUBLISHED]
    partly = read(update, (8, "lname", None, None))
    edits = {edit.column: (edit.old, edit.new) for change in partly.changes for edit in change.edits}
    assert edits == {"fname": ("Jack", "John"), "lname": (ABSENT, "now")}
    assert {one.reason for one in partly.outcomes} == {Reason.PUBLISHED}
    wholly = read(update, (8, "lname", None, None), (8, "fname", None, None))
    assert [one.reason for one in wholly.outcomes] == [Reason.SUPERSEDED, Reason.PUBLISHED, Reason.PUBLISHED]


@pytest.mark.parametrize(
    "row, says",
    [
        ((5, None, None, '["8","a",null]'), "definition 8 of usr"),
        ((5, None, None, '["7","a"]'), "has 1 values, and definition 7 has 2 columns"),
        ((5, None, None, '["7","a'), "is no image"),
        ((6, None, "x", ROW), "old_value is no image"),
        ((6, None, '["8","a","b"]', ROW), "old_value is no image"),
        ((4, None, '["7"]', None), "has 0 values"),
    ],
)
def test_what_only_looks_like_an_image_is_an_error(row: tuple[Any, ...], says: str) -> None:
    decision = decided(log(row))
    assert decision.changes == []
    [outcome] = decision.outcomes
    assert (outcome.status, outcome.reason) == (Status.ERROR, Reason.INVALID)
    assert says in (outcome.note or "")


def test_the_next_image_of_an_object_is_published_after_a_damaged_one() -> None:
    decision = decided(log((5, None, None, '["7","a'), (6, None, ROW, '["7","John",null]')))
    assert [change.positions for change in decision.changes] == [((2,),)]


@pytest.mark.parametrize("old", ['["7","Jack"]', '["8","Jack",null]', '["7","Ja', "x"])
def test_a_damaged_former_row_is_an_error_also_after_a_good_one(old: str) -> None:
    good = (6, None, ROW, '["7","John",null]')
    decision = decided(log(good, (6, None, old, ROW), good))
    assert [outcome.position for outcome in decision.outcomes if outcome.reason is Reason.INVALID] == [(2,)]
    assert [position for change in decision.changes for position in change.positions] == [(1,), (3,)]


@pytest.mark.parametrize("new", [None, "", "x", "{}", "[1]", '["a"]', '["7","a","b"]'])
def test_in_a_log_of_others_such_rows_are_read_back(new: str | None) -> None:
    catalog = with_images()
    assert open_images(log((5, None, None, new), (6, None, new, new), (4, None, new, None)), catalog) == log(
        (5, None, None, new), (6, None, new, new), (4, None, new, None)
    )


def test_without_definitions_an_image_names_the_one_that_it_needs() -> None:
    [event] = open_images(log((5, None, None, ROW)), CATALOG)
    assert "definition 7 of usr" in (event.fault or "")
    [event] = open_images(log((5, None, None, ROW)), None)
    assert "definition 7 of usr" in (event.fault or "")


def test_the_number_says_which_columns_are_meant_and_not_the_place_in_the_log() -> None:
    def table(*names: str) -> Table:
        columns = [Column(name=name, type="varchar(9)") for name in names]
        return Table(name="usr", columns=(Column(name="idu", type="integer", key=1), *columns))

    today = table("a", "c")
    former = Definition(
        table=replace(table("a", "b"), gone=()), first=1, today=today, renamed={"b": "c"}, images={1: ("a", "b")}
    )
    current = Definition(table=today, first=100, today=today, images={2: ("a", "c")})
    tables = Catalog([today])
    catalog = Catalog([today], former=Definitions([former, current], tables))
    known = catalog.former
    assert known is not None
    # A row with a high number that a trigger of before wrote, and one with a low number of the new one.
    late, early = log((5, None, None, '["1","x","y"]'), (5, None, None, '["2","x","y"]'))
    late, early = replace(late, position=(200,)), replace(early, position=(3,))
    opened = open_images([late, early], catalog)
    assert known.concerns(opened)
    spans = {event.position: (span, event) for span, events in known.spans(opened) for event in events}
    [(former_span, event)] = [spans[200,]]
    assert [*former_span.former.values()] == [former]
    assert event.image is not None
    assert event.image.row(event.image.after) == {"a": "x", "b": "y"}
    assert not spans[3,][0].former
    again = catalog_from_json(catalog_to_json(catalog))
    assert again.former is not None
    assert again.former.image_columns("usr", 1) == ("a", "b")
    assert again.former.image_columns("usr", 2) == ("a", "c")


def test_a_schema_file_has_the_images_of_tables_that_never_changed() -> None:
    again = catalog_from_json(catalog_to_json(IMAGES))
    assert again.former is not None
    assert again.former.image_columns("usr", 7) == NAMES


# --- the law: an image is the field rows of its change ------------------------------------------------------------------

VALUES = st.sampled_from([None, "a", "b", ""])
ROWS = st.tuples(VALUES, VALUES)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("row"), ROWS), st.tuples(st.just("phone"), st.sampled_from("12")), st.just(("gone", None))
    ),
    min_size=1,
    max_size=8,
)


def life(steps: list[tuple[str, Any]]) -> tuple[list[Event], list[Event]]:
    """The same life of an object as images and as field rows, each step a transaction."""
    images: list[Event] = []
    fields: list[Event] = []
    row: tuple[str | None, ...] | None = None
    number = 0
    for step, (what, value) in enumerate(steps):
        as_image: list[tuple[Any, ...]] = []
        as_fields: list[tuple[Any, ...]] = []
        if what == "row":
            text = json.dumps(["7", *value])
            if row is None:
                as_image = [(5, None, None, text)]
                named = [(name, new) for name, new in zip(NAMES, value, strict=True) if new is not None]
                as_fields = [(1, name, None, new) for name, new in named or [("fname", None)]]
            else:
                as_image = [(6, None, json.dumps(["7", *row]), text)]
                pairs = zip(NAMES, row, value, strict=True)
                as_fields = [(2, name, old, new) for name, old, new in pairs if old != new]
            row = value
        elif row is not None and what == "phone":
            as_image = as_fields = [(1, "usr_phone.phoneno", None, value)]
        elif row is not None:
            as_image = [(4, None, json.dumps(["7", *row]), None)]
            as_fields = [(4, None, None, None)]
            row = None
        for rows, into in ((as_image, images), (as_fields, fields)):
            for at, event in enumerate(log(*rows, transaction=step)):
                into.append(replace(event, position=(number + at,)))
        number += 10
    return images, fields


@given(STEPS)
def test_an_image_gives_the_xds_of_its_field_rows(steps: list[tuple[str, Any]]) -> None:
    images, fields = life(steps)
    assert written(decided(images).changes) == written(decided(fields).changes)


@given(STEPS, st.booleans(), st.integers(1, 3))
def test_in_pieces_it_is_the_same(steps: list[tuple[str, Any]], coalesce: bool, size: int) -> None:
    events = list(open_images(life(steps)[0], IMAGES))
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
    events = log((6, None, ROW, '["7","John",null]'), (6, None, '["7","John",null]', f'["7","{last}",null]'))
    decision = decided(events, options=Options(coalesce=True))
    assert [[(one.old, one.new) for one in change.edits] for change in decision.changes] == ([edits] if edits else [])
    assert all(change.whole for change in decision.changes)
    assert {outcome.reason for outcome in decision.outcomes} == {Reason.PUBLISHED if edits else Reason.NOTHING}


def test_coalesced_a_side_with_other_columns_tells_what_it_lacks_as_new() -> None:
    catalog = with_images(usr={7: NAMES, 8: ("fname",)})
    decision = decided(log((6, None, '["8","Jack"]', '["7","John","Doe"]')), catalog, Options(coalesce=True))
    edits = [edit for change in decision.changes for edit in change.edits]
    assert [(edit.column, edit.old, edit.new, edit.reset) for edit in edits] == [
        ("fname", "Jack", "John", False),
        ("lname", None, "Doe", True),
    ]
