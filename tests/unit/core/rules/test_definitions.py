"""Definitions in time: which one a row of the log was written under, and how its changes are told by today's names."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from eventlog.core.model import Change, Edit, Event, Op, RowId, Unreadable
from eventlog.core.rules.definitions import Definition, Definitions, DefinitionSpan, FormerRows
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import FormerNames
from tests.support.memory import MemoryRows


def table(name: str, *columns: str, key: str = "id", **more: Any) -> Table:
    return Table(name=name, columns=(Column(name=key, key=1), *[Column(name=one) for one in columns]), **more)


def event(number: int, name: str, column: str | None = None, *, kind: int = 2, key: str | None = "id=1") -> Event:
    return Event(position=(number,), kind=kind, table=name, key=key, column=column)


TODAY = table("person", "name", "mail")
CITY = table("city", "name")
CATALOG = Catalog([TODAY, CITY])
FORMER = Definition(table=table("person", "name", "post", "fax", gone=("fax",)), today=TODAY, renamed={"post": "mail"})
LATEST = Definition(table=TODAY, today=TODAY, first=100)
OF_CITY = Definition(table=CITY, today=CITY)
PERSON = (None, "person")


def history(*definitions: Definition, catalog: Catalog = CATALOG) -> Definitions:
    return Definitions(definitions or (LATEST, OF_CITY, FORMER), catalog)


def span(former: Definition = FORMER, catalog: Catalog | None = None) -> DefinitionSpan:
    return DefinitionSpan(catalog=catalog or Catalog([former.table, CITY]), former={former.full_name: former})


def change(op: Op = Op.MODIFY, *, key: str = "id=1", name: str = "person", **new: str) -> Change:
    edits = tuple(Edit(column=column, new=value) for column, value in new.items())
    return Change(row=RowId(None, name, key), op=op, edits=edits, positions=((5,), (6,)))


def parts(spans: Sequence[tuple[DefinitionSpan, Sequence[Event]]]) -> list[tuple[list[int], bool]]:
    """The numbers of each span, and whether `person` is a former one there."""
    return [([event.position[0] for event in events], PERSON in span.former) for span, events in spans]


def span_of(definitions: Definitions, *events: Event) -> DefinitionSpan:
    """The only span of these events."""
    [(span, _)] = definitions.spans(events)
    return span


def test_events_after_the_last_definition_concern_nobody() -> None:
    assert history().concerns([event(99, "person", "name")])
    assert not history().concerns([event(100, "person", "name"), event(101, "city", "name")])
    assert history().concerns([event(120, "person", "fax")]), "a late row names what only the former one has"


def test_events_are_parted_where_a_definition_begins() -> None:
    events = [event(98, "person", "name"), event(99, "city", "name"), event(100, "person", "name"), event(101, "city")]
    first, second = history().spans(events)
    assert parts([first, second]) == [([98, 99, 101], True), ([100], False)], "of a city nothing has changed"
    then, now = first[0].catalog, second[0].catalog
    assert [table.name for table in then] == ["person", "city"]
    assert {table.name: table.key for table in then}["person"] == ("id",)
    assert now is CATALOG
    assert "fax" in next(iter(then)).attributes


def test_an_object_is_parted_by_its_own_events_alone() -> None:
    """However the rows of others alternate between definitions."""
    one = [event(98, "person", "name"), event(99, "person", "fax"), event(102, "person", "fax"), event(103, "person")]
    other = [event(100, "person", "name", key="id=2"), event(101, "person", kind=6, key="id=2")]
    found = history().spans(sorted([*one, *other], key=lambda one: one.position))
    assert parts(found) == [([98, 99, 102], True), ([100, 101, 103], False)]
    assert parts(history().spans(one)) == [([98, 99, 102], True), ([103], False)]


def test_changes_are_told_in_pieces_in_which_every_table_looks_the_same() -> None:
    definitions = history()
    then, now = (span for span, _ in definitions.spans([event(99, "person"), event(100, "person")]))
    told = [
        (then, change()),
        (then, change(name="city")),
        (now, change()),
        (now, change(name="city")),
        (then, change()),
    ]
    pieces = [(PERSON in span.former, len(several)) for span, several in definitions.pieces(told)]
    assert pieces == [(True, 2), (False, 2), (True, 1)]
    assert [several for _, several in definitions.pieces([])] == [[]]


def test_definitions_go_to_other_processes() -> None:
    catalog = Catalog(CATALOG.tables, former=history())
    found = pickle.loads(pickle.dumps(catalog))  # noqa: S301  # what was just made
    assert parts(found.former.spans([event(99, "person"), event(100, "person")])) == [([99], True), ([100], False)]


@pytest.mark.parametrize(
    "number, column, key, former",
    [
        (99, "name", "id=1", True),
        (100, "name", "id=1", False),
        (99, "mail", "id=1", False),  # the former one has no such column, so the row was written by a later trigger
        (100, "fax", "id=1", True),
        (100, "fax", None, True),
        (100, "fax", "no key", True),
        (100, "unknown", "id=1", False),  # nobody has it: it goes by its number
        (99, "unknown", "id=1", True),
        (99, "name", "other=1", True),
    ],
)
def test_a_row_belongs_to_the_nearest_definition_that_has_what_it_names(
    number: int, column: str, key: str | None, former: bool
) -> None:
    found = span_of(history(), event(number, "PERSON ", column, key=key))
    assert (PERSON in found.former) is former


def test_a_row_that_asks_for_its_object_goes_by_today() -> None:
    found = span_of(history(), event(5, "person", kind=6))
    assert not found.former


def test_objects_have_their_names_of_today() -> None:
    keyed = Definition(table=table("person", "name", key="number"), today=TODAY, renamed={"number": "id"})
    definitions = history(keyed, LATEST)
    for _ in range(2):  # the second one by what is kept
        assert definitions.row_id("person", "number=7") == RowId(None, "person", "id=7")
    assert definitions.row_id("person", "id=7") is None, "today's name is no former one"
    assert definitions.row_id("city", "id=7") is None
    gone = history(Definition(table=table("person"), today=None), catalog=Catalog([CITY]))
    assert gone.row_id("person", "id=7") == RowId(None, "person", "id=7")


def test_columns_are_told_by_their_new_names() -> None:
    told, catalog, refusals = span().by_names([change(post="a", fax="b"), change(name="city")], FormerNames.NEW)
    assert [[edit.column for edit in one.edits] for one in told] == [["mail", "fax"], []]
    assert [(one.name, tuple(one.attributes)) for one in catalog] == [
        ("person", ("name", "mail", "fax")),
        ("city", ("name",)),
    ]
    assert refusals == []


def test_of_a_class_that_is_gone_no_policy_can_speak() -> None:
    gone = Definition(table=table("person", "name"), today=None)
    told, _, [refusal] = span(gone).by_names([change(name="person")], FormerNames.ONLY_NEW)
    assert told == []
    assert refusal.note == "person is gone, so no policy can say what may be published of it."
    [kept], _, _ = span(gone).by_names([change()], FormerNames.NEW)
    assert kept == change()


def test_rows_are_read_back_by_todays_names_and_told_by_former_ones() -> None:
    person, city = RowId(None, "person", "id=1"), RowId(None, "city", "id=1")
    reader = MemoryRows({person: {"name": "Ann", "mail": "a@b"}, city: {"name": "Rome"}})
    found = FormerRows(reader, span()).rows({person: frozenset({"name", "post", "fax"}), city: frozenset({"name"})})
    assert [*reader.asked] == [{person: frozenset({"name", "mail", "fax"}), city: frozenset({"name"})}]
    assert found == {person: {"name": "Ann", "post": "a@b"}, city: {"name": "Rome"}}


def test_what_cannot_be_read_keeps_its_reason_and_what_is_gone_is_not_there() -> None:
    person = RowId(None, "person", "id=1")
    gone = Definition(table=table("person", "name"), today=None)
    assert FormerRows(MemoryRows({}), span(gone)).rows({person: frozenset({"name"})}) == {}
    reader = MemoryRows({person: Unreadable(note="mail is too large", row={"name": "Ann"})})
    found = FormerRows(reader, span()).rows({person: frozenset({"name", "post"})})
    assert found == {person: Unreadable(note="mail is too large", row={"name": "Ann"})}


def test_a_row_that_asks_for_its_object_by_a_former_key_goes_by_the_newest_definition_that_has_it() -> None:
    today = table("person", "mail", key="number")
    renamed = {"id": "number", "post": "mail"}
    oldest = Definition(table=table("person", "post"), today=today, renamed=renamed)
    middle = Definition(table=table("person", "mail"), today=today, renamed={"id": "number"}, first=50)
    former = Definitions([oldest, middle, Definition(table=today, today=today, first=100)], Catalog([today]))
    told = span_of(former, event(10, "person", kind=5))
    assert told.former == {PERSON: middle}
    told = span_of(former, event(10, "person", kind=5, key="other=1"))
    assert told.former == {PERSON: oldest}, "no definition has this key: the one of its time says so"
    told = span_of(former, event(10, "person", kind=5, key="number=1"))
    assert not told.former


def test_a_child_and_a_schema_name_their_class_too() -> None:
    child = Child(name="phone", parent_key=("person",), columns=(Column(name="person"), Column(name="number")))
    former = Definition(table=table("person", "name", schema="hr", children=(child,)), today=None)
    for name in ("hr.person", "phone", "HR.phone"):
        found = span_of(history(former, catalog=Catalog([CITY])), event(5, name, key="person=1"))
        assert found.former[("hr", "person")] is former, name


def test_what_another_column_is_called_today_is_not_told() -> None:
    swapped = Definition(table=table("person", "mail", gone=("mail",)), today=TODAY)
    told, _, [refusal] = span(swapped).by_names([change(mail="old one")], FormerNames.NEW)
    assert told == []
    assert (refusal.partial, refusal.positions) == (True, ((5,), (6,)))
    assert refusal.note == "person has no column mail any more, so the change is published without."


@pytest.mark.parametrize("op", [Op.ADD, Op.MODIFY, Op.DELETE])
def test_where_only_new_names_count_what_is_gone_is_left_out(op: Op) -> None:
    told, catalog, refusals = span().by_names([change(op, post="a", fax="b")], FormerNames.ONLY_NEW)
    assert [[edit.column for edit in one.edits] for one in told] == [["mail"]]
    assert "fax" not in next(iter(catalog)).attributes
    assert len(refusals) == (0 if op is Op.DELETE else 1), "of a deleted row nobody misses a value"


def test_keys_and_tables_have_their_new_names() -> None:
    citizen = table("citizen", "name", schema="hr")
    keyed = Definition(table=table("person", "name", key="number"), today=citizen, renamed={"number": "id"})
    [told], catalog, _ = span(keyed).by_names([change(Op.DELETE, key="number=7")], FormerNames.ONLY_NEW)
    assert told.row == RowId("hr", "citizen", "id=7")
    assert {(one.schema, one.name) for one in catalog} == {("hr", "citizen"), (None, "city")}
    [new], _, _ = span(keyed).by_names([change(Op.DELETE, key="number=7")], FormerNames.NEW)
    assert new.row == RowId(None, "person", "id=7")


def test_tables_are_told_by_their_own_names_where_an_output_wants_that() -> None:
    found = span()
    assert found.catalog_by_names(FormerNames.OWN) is found.catalog
    assert next(iter(found.catalog_by_names(FormerNames.NEW))).attributes.keys() == {"name", "mail", "fax"}


def test_under_a_former_name_today_is_told_by_that_name() -> None:
    citizen = table("citizen", "name", "mail")
    renamed = Definition(table=table("person", "name"), today=citizen)
    definitions = history(renamed, Definition(table=citizen, today=citizen, first=50), catalog=Catalog([citizen]))
    found = span_of(definitions, event(5, "person", kind=6), event(6, "person", kind=6))
    assert [(one.name, tuple(one.attributes)) for one in found.catalog] == [
        ("person", ("name", "mail")),
        ("citizen", ("name", "mail")),
    ]
    told = span_of(definitions, event(5, "person", "name"))
    assert told.former[PERSON] is renamed


def test_a_name_means_the_class_that_is_known_to_be_called_so() -> None:
    """And neither a table of the same name in another schema, nor another one's child."""
    own, hers = table("usr", "name", schema="log", bare=True), table("usr", "name", schema="hr")
    parent = table("acc", schema="log", children=(Child(name="usr", parent_key=("id",), columns=(Column(name="id"),)),))
    then = Definition(table=table("usr", "name", "fax", schema="log", bare=True, gone=("fax",)), today=own)
    since = Definition(table=own, today=own, first=50)
    others = [Definition(table=one, today=one, first=100) for one in (hers, parent)]
    definitions = Definitions([then, since, *others], Catalog([own, hers, parent]))
    assert span_of(definitions, event(49, "usr", "name")).former == {("log", "usr"): then}
    assert span_of(definitions, event(49, "log.usr", "fax"), event(120, "usr", "fax")).former == {("log", "usr"): then}
    assert span_of(definitions, event(120, "usr", "name"), event(120, "hr.usr", "name")).former == {}


def test_a_row_from_before_all_definitions_goes_by_the_first() -> None:
    first = Definition(table=FORMER.table, today=TODAY, renamed={"post": "mail"}, first=10)
    found = span_of(history(first, LATEST), event(5, "person", "name"))
    assert found.former[PERSON] is first


def test_of_a_class_that_is_gone_no_key_has_a_name_of_today() -> None:
    gone = Definition(table=table("gone", key="number"), today=None)
    assert history(gone, LATEST).former_keys == {PERSON: {frozenset({"id"})}}


def test_runs_of_one_object_end_where_its_definition_does() -> None:
    rows = [event(1, "nobody"), event(98, "person"), event(99, "person"), event(100, "person")]
    assert [(PERSON in span.former, count) for span, count in history().runs(rows)] == [(True, 3), (False, 1)]
