"""Which object and which attribute a log row speaks of, however its trigger wrote their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.core.model import RowId
from eventlog.core.rules.screen import Identities, Naming
from eventlog.core.schema import Catalog, Child, Column, Table
from tests.support.strategies import tricky


def table(name: str, *columns: str, key: int = 1, view: bool = False, children: tuple[Child, ...] = ()) -> Table:
    """A table of schema hr whose first columns are its key."""
    made = tuple(
        Column(name=column, key=place if place <= key else None) for place, column in enumerate(columns, start=1)
    )
    return Table(schema="hr", name=name, columns=made, view=view, children=children)


PHONE = Child(name="usr_phone", parent_key=("usr_id",), columns=(Column(name="usr_id"), Column(name="phoneno")))
SEATING = Child(name="seating", parent_key=("house_no", "room_no"), columns=(Column(name="person"),))
NOTES = Child(name="notes", parent_key=("about",), columns=(Column(name="text"),))
TABLES = (
    table("usr", "idu", "fname", "photo", children=(PHONE,)),
    table("room", "house", "nr", "name", key=2, children=(SEATING,)),
    table("diary", "day", "entry", key=0, children=(NOTES,)),
    table("view_usr", "pk_empno", "sv_fname", "mv_phoneno", "fk__empno__manager", key=0, view=True),
)
KNOWN, CASE_SENSITIVE = Catalog(TABLES), Catalog(TABLES, case_sensitive=True)


def row_id(table: str | None, key: str | None, catalog: Catalog | None = KNOWN, *, row_event: bool = False) -> RowId:
    return Identities(catalog).identify(table, key, row_event=row_event)[1]


def naming(table: str, catalog: Catalog | None = KNOWN) -> Naming:
    return Identities(catalog).naming(table)


def problem(table: str | None, key: str | None, catalog: Catalog | None = KNOWN, *, row_event: bool = False) -> str:
    """What is wrong with the two texts; nobody may then take them for an object."""
    identities = Identities(catalog)
    assert identities.row_id(table, key, row_event=row_event) is None
    with pytest.raises(DataError) as caught:
        identities.identify(table, key, row_event=row_event)
    return str(caught.value)


@pytest.mark.parametrize(
    "name, key, expected",
    [
        ("usr", "idu=1", "idu=1"),
        ("hr.usr", "idu= 1", "idu=1"),
        (" USR ", 'IDU="1"', "idu=1"),
        ("usr", 'idu="a+b"', 'idu="a+b"'),
        ("room", "nr=2+house=1", "house=1+nr=2"),
        ("room", "HOUSE= 1 + Nr= 2", "house=1+nr=2"),
        ("view_usr", "pk_empno=1", "pk_empno=1"),
        ("view_usr", "EMPNO=1", "pk_empno=1"),
        ("diary", "any=1+b=2", "any=1+b=2"),
    ],
)
def test_an_object_is_named_as_the_database_names_it(name: str, key: str, expected: str) -> None:
    found = row_id(name, key)
    assert found == RowId("hr", name.strip().lower().removeprefix("hr."), expected)
    assert Identities(KNOWN).row_id(name, key) == found


@given(tricky, tricky, st.booleans(), st.sampled_from(["{}={}+{}={}", " {} ={}+ {}={}"]))
def test_the_order_of_a_compound_key_is_the_tables(house: str, nr: str, swapped: bool, written: str) -> None:
    def quotes(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    parts = [("house", quotes(house)), ("NR", quotes(nr))]
    (a, b), (c, d) = reversed(parts) if swapped else parts
    assert row_id("room", written.format(a, b, c, d)) == row_id("room", f"house={quotes(house)}+nr={quotes(nr)}")


@pytest.mark.parametrize(
    "name, key, told",
    [
        ("  ", "idu=1", "table_name is missing; it must name a table or view."),
        ("usr", "idu=1+x=2", "table_key idu=1+x=2 does not name the key of usr, which is idu."),
        ("usr", "idu=1+IDU=2", "table_key idu=1+IDU=2 does not name the key of usr, which is idu."),
        ("room", "house=1", "table_key house=1 does not name the key of room, which is house and nr."),
        ("view_usr", "fname=1", "table_key fname=1 does not name the key of view_usr, which is pk_empno."),
    ],
)
def test_what_names_no_object_is_told_with_what_would(name: str | None, key: str | None, told: str) -> None:
    assert problem(name, key) == told


def test_a_name_of_several_schemas_is_told() -> None:
    catalog = Catalog([Table(name="usr", schema=schema, columns=()) for schema in ("a", "b")])
    assert problem("usr", "idu=1", catalog).startswith("usr is in several schemas")


@pytest.mark.parametrize("key", ["idu=1", "usr_id=1", "USR_ID= 1"])
@pytest.mark.parametrize("row_event", [True, False])
def test_a_childs_row_counts_to_its_parent(key: str, row_event: bool) -> None:
    assert row_id("usr_phone", key, row_event=row_event) == RowId("hr", "usr", "idu=1")


@pytest.mark.parametrize("key", ["usr_id=1+phoneno=5", "phoneno=5 + USR_ID=1"])
def test_a_childs_own_key_names_the_parent_for_row_events_only(key: str) -> None:
    assert row_id("usr_phone", key, row_event=True) == RowId("hr", "usr", "idu=1")
    assert problem("usr_phone", key) == (
        f"table_key {key} is of the child table usr_phone and does not name its parent usr by idu."
    )


def test_a_child_of_a_compound_key_translates_every_part() -> None:
    expected = RowId("hr", "room", "house=1+nr=2")
    for row_event in (True, False):  # by its own names or by its parent's, in any order
        assert row_id("seating", "nr=2+HOUSE=1", row_event=row_event) == expected
        assert row_id("seating", "house_no=1+room_no=2", row_event=row_event) == expected
    assert problem("seating", "house=1+room_no=2").endswith("its parent room by house and nr.")
    assert row_id("seating", "room_no=2+house_no=1") == expected
    assert row_id("seating", "room_no=2+person=7+house_no=1", row_event=True) == expected
    assert problem("seating", "room_no=2+person=7", row_event=True).endswith("its parent room by house and nr.")


def test_objects_of_a_table_without_a_key_are_one_however_its_names_are_written() -> None:
    identities = Identities(KNOWN)
    _, shown, identity = identities.identify("diary", "DAY=1", row_event=False)
    assert shown == RowId("hr", "diary", "DAY=1")
    assert identity == identities.row_id("diary", "day= 1") != identities.row_id("diary", "day=2")
    strict = Identities(CASE_SENSITIVE)
    assert strict.row_id("diary", "DAY=1") == strict.row_id("diary", "day=1")


def test_without_a_catalog_names_stay_as_written_and_cases_are_one() -> None:
    identities = Identities(None)
    _, shown, identity = identities.identify("Hr.Usr", 'IDU= "1"', row_event=True)
    assert shown == RowId(None, "Hr.Usr", "IDU=1")
    assert identity == identities.row_id("hr.usr", "idu=1") == RowId(None, "hr.usr", "idu=1")
    assert identities.row_id("usr", "a=X") != identities.row_id("usr", "a=x")
    assert identities.row_id("usr", "a=1+b=2") != identities.row_id("usr", "b=2+a=1")


@pytest.mark.parametrize(
    "name, column, attribute",
    [
        ("usr", "fname", "fname"),
        ("usr", " FNAME ", "fname"),
        ("usr", "usr_phone.phoneno", "usr_phone.phoneno"),
        ("USR", "USR_PHONE.PhoneNo", "usr_phone.phoneno"),
        ("usr_phone", "phoneno", "usr_phone.phoneno"),
        ("view_usr", "sv_fname", "fname"),
        ("view_usr", "FName", "fname"),
        ("view_usr", "mv_phoneno", "phoneno"),
        ("view_usr", "fk_manager", "fk_manager"),
        ("view_usr", "fk__empno__manager", "fk_manager"),
        ("view_usr", "MANAGER", "fk_manager"),
    ],
)
def test_a_column_is_an_attribute_of_its_class(name: str, column: str, attribute: str) -> None:
    found = naming(name)
    assert found.attribute(column) == found.attribute(column) == attribute
    assert found.known == {column: attribute}


@pytest.mark.parametrize(
    "name, column, told",
    [
        ("usr", " ", "column_name is missing; types 1, 2, 3, 7 and 8 speak of one column."),
        ("usr", "phoneno", "column_name phoneno is not a column of usr; is the catalog up to date?"),
        ("usr_phone", "fname", "column_name fname is not a column of usr_phone; is the catalog up to date?"),
        ("usr_phone", "idu", "column_name idu is not a column of usr_phone; is the catalog up to date?"),
        ("usr_phone", "usr_id", "column_name usr_id is not a column of usr_phone; is the catalog up to date?"),
    ],
)
def test_what_is_no_attribute_is_told(name: str, column: str | None, told: str) -> None:
    found = naming(name)
    for _ in range(2):  # what is wrong is not remembered as known
        with pytest.raises(DataError) as caught:
            found.attribute(column)
        assert str(caught.value) == told


@pytest.mark.parametrize(
    "column, attribute",
    [("sv_boss", "boss"), ("BOSS", "boss"), ("fk_boss", "fk_boss"), ("fk__id__boss", "fk_boss"), ("sv_id", "id")],
)
def test_columns_that_only_prefixes_tell_apart(column: str, attribute: str) -> None:
    view = table("v", "pk_id", "fk__id__boss", "sv_boss", "sv_id", key=0, view=True)
    assert naming("v", Catalog([view])).attribute(column) == attribute


def test_without_a_catalog_every_column_is_believed() -> None:
    assert naming("usr", None).attribute(" No Such ") == "No Such"


def test_a_child_of_a_table_without_a_key_goes_by_its_own_columns() -> None:
    assert row_id("notes", "ABOUT=monday") == RowId("hr", "diary", "about=monday")
    assert problem("notes", "x=1", row_event=True).endswith("does not name its parent diary by about.")


def test_a_database_that_tells_cases_apart_is_believed() -> None:
    assert row_id("usr", "idu=1", CASE_SENSITIVE) == RowId("hr", "usr", "idu=1")
    assert "not among the captured tables" in problem("USR", "idu=1", CASE_SENSITIVE)
    # Of tables alone: a column has one name in whatever case.
    assert row_id("usr", "IDU=1", CASE_SENSITIVE) == RowId("hr", "usr", "idu=1")


def test_a_column_is_named_in_any_case() -> None:
    assert naming("usr", CASE_SENSITIVE).attribute("FNAME") == "fname"
