"""Captured tables: keys and attributes, the schema file, and finding a table by the name that a log has for it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.rules.definitions import BEFORE_ALL_NUMBERS, Definition, Definitions
from eventlog.core.schema import Catalog, Child, Column, Table, TableMatch
from eventlog.core.schema_file import catalog_from_json, catalog_to_json
from eventlog.core.sql_types import Category
from tests.support.strategies import tables

DOCUMENTED = b"""
{"tables": [{"schema": "indirect", "name": "usr", "class": "usr", "number": 17,
  "columns": [{"name": "idu", "type": "integer", "key": 1}, {"name": "fname", "type": "varchar(64)"},
              {"name": "photo", "type": "bytea"}, {"name": "manager", "type": "integer", "references": "usr"}],
  "children": [{"name": "usr_phone", "parent_key": ["idu"], "columns": [{"name": "phoneno", "type": "varchar(32)"}]}]}]}
"""
PHONE = Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="idu"), Column(name="phoneno")))
USR = Table(schema="indirect", name="usr", columns=(Column(name="idu", key=1), Column(name="fname")), children=(PHONE,))


def named(name: str, schema: str | None = None, *columns: Column, view: bool = False) -> Table:
    return Table(name=name, schema=schema, columns=columns, view=view)


def test_the_documented_schema_file_is_read() -> None:
    (usr,) = catalog_from_json(DOCUMENTED)
    assert (usr.schema, usr.name, usr.class_name, usr.number, usr.view) == ("indirect", "usr", "usr", 17, False)
    assert usr.key == ("idu",)
    assert [column.category for column in usr.columns] == [Category.INT, Category.STRING, Category.OCTET, Category.INT]
    assert usr.columns[3].references == "usr"
    assert list(usr.attributes) == ["fname", "photo", "manager", "usr_phone.phoneno"]
    assert usr.multiple == {"usr_phone.phoneno"}


@given(st.lists(tables(), max_size=4, unique_by=lambda table: (table.schema, table.name)), st.booleans())
def test_a_catalog_survives_its_file(some: list[Table], case_sensitive: bool) -> None:
    text = catalog_to_json(Catalog(some, case_sensitive=case_sensitive))
    again = catalog_from_json(text)
    assert again.tables == tuple(some)
    assert again.case_sensitive == case_sensitive
    assert catalog_to_json(again) == text


@pytest.mark.parametrize(
    "text, told",
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `tables`"),
        (b'{"tables": [{"name": "usr"}]}', "missing required field `columns` - at `$.tables[0]`"),
        (b'{"tables": [{"name": 1, "columns": []}]}', "Expected `str`, got `int` - at `$.tables[0].name`"),
        (b'{"tables": [{"name": "a", "columns": [{"type": "int"}]}]}', "`name` - at `$.tables[0].columns[0]`"),
        (b'{"tables": [{"name": "\xff", "columns": []}]}', "0xff"),
        ('{"tables": [{"name": "\ud800", "columns": []}]}', "surrogates"),
    ],
)
def test_what_is_not_a_schema_file_is_refused_with_its_place(text: bytes | str, told: str) -> None:
    with pytest.raises(DataError, match=r"^my\.json is not a schema file: ") as caught:
        catalog_from_json(text, origin="my.json")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "schema, called", [("", "usr"), ('"schema": "hr", ', "hr.usr"), ('"schema": "a.b", ', '"a.b".usr')]
)
def test_a_table_may_stand_only_once(schema: str, called: str) -> None:
    usr = f'{{{schema}"name": "usr", "columns": []}}'
    namesakes = '{"schema": "c", "name": "usr", "columns": []}, {"name": "other", "columns": []}'
    with pytest.raises(DataError) as caught:
        catalog_from_json(f'{{"tables": [{usr}, {namesakes}, {usr}]}}')
    assert str(caught.value).startswith(f"schema.json describes the table {called} twice; describe each once. Take")
    assert len(catalog_from_json(f'{{"tables": [{usr}, {namesakes}]}}')) == 3


def test_a_column_may_stand_only_once() -> None:
    text = '{"tables": [{"name": "usr", "columns": [{"name": "b"}, {"name": "a"}, {"name": "a"}, {"name": "b"}]}]}'
    with pytest.raises(DataError, match=r"^schema\.json: table usr has the column a twice; name each once\.$"):
        catalog_from_json(text)


def test_a_child_holds_the_whole_key_of_its_parent() -> None:
    child = Child(name="usr_phone", parent_key=("x", "y"), columns=())
    text = catalog_to_json(Catalog([Table(name="usr", columns=(Column(name="idu", key=1),), children=(child,))]))
    with pytest.raises(DataError) as caught:
        catalog_from_json(text)
    assert str(caught.value) == (
        "schema.json: the child table usr_phone holds 2 key columns of its parent usr, whose key has 1; parent_key lists one for each."
    )


def test_prefixes_mean_something_in_views_only() -> None:
    columns = [Column(name=name) for name in ("pk_empno", "sv_fname", "mv_phoneno", "fk_mv__idg__mbr_of", "fk_x")]
    view, table = named("v", None, *columns, view=True), named("t", None, *columns)
    assert (view.key, table.key) == (("pk_empno",), ())
    assert list(view.attributes) == ["fname", "phoneno", "fk_mbr_of", "fk_x"]
    assert list(table.attributes) == ["pk_empno", "sv_fname", "mv_phoneno", "fk_mv__idg__mbr_of", "fk_x"]
    assert view.multiple == {"phoneno", "fk_mbr_of"}
    assert table.multiple == frozenset()
    assert view.attributes["phoneno"].column.name == "mv_phoneno"


@pytest.mark.parametrize(
    "names, found",
    [
        (["usr", "USR", " usr ", "indirect.usr", "Indirect.Usr"], TableMatch(USR)),
        (["usr_phone", "indirect.usr_phone", "USR_PHONE"], TableMatch(USR, PHONE)),
        (["nosuch", "", "direct.usr", "indirect.", ".usr", "usr.fname"], None),
    ],
    ids=["a table with and without its schema", "a child leads to its parent", "other names are not found"],
)
def test_a_table_is_found_by_its_name(names: list[str], found: TableMatch | None) -> None:
    assert [Catalog([USR]).find(name) for name in names] == [found] * len(names)


def test_a_catalog_that_tells_cases_apart() -> None:
    lower, upper = named("usr", "hr"), named("USR", "hr")
    catalog = Catalog([lower, upper], case_sensitive=True)
    assert (catalog.find("usr"), catalog.find("hr.USR")) == (TableMatch(lower), TableMatch(upper))
    assert (catalog.find("Usr"), catalog.find("HR.usr")) == (None, None)
    assert (catalog.fold("Usr"), Catalog().fold("Usr")) == ("Usr", "usr")


@pytest.mark.parametrize("schemas", [("a", "b"), ("a", "b", "c"), ("a", "b", "a"), (None, "a")])
def test_a_name_of_several_schemas_is_not_guessed(schemas: tuple[str | None, ...]) -> None:
    catalog = Catalog([named("usr", schema) for schema in schemas])
    with pytest.raises(DataError, match=r"^Usr is in several schemas; the log must say which, as schema\.Usr\.$"):
        catalog.find("Usr")
    assert catalog.find("a.usr") == TableMatch(named("usr", "a"))


def test_a_bare_name_means_the_table_that_is_known_to_be_called_so() -> None:
    own = replace(named("usr", "log"), bare=True)
    for some in ([own, named("usr", "a"), named("usr", "b")], [named("usr", "a"), named("usr", "b"), own]):
        catalog = catalog_from_json(catalog_to_json(Catalog(some)))
        assert [catalog.find(name) for name in ("USR", "log.usr")] == [TableMatch(own)] * 2
        assert catalog.find("a.usr") == TableMatch(named("usr", "a"))
        assert catalog.class_named("c", "usr") is None, "what another schema refers to nobody knows"


def test_a_class_is_named_within_a_schema_first_and_never_guessed() -> None:
    one, two, alone = named("usr", "a"), named("usr", "b"), named("grp", "b")
    catalog = Catalog([one, two, alone])
    assert (catalog.class_named("b", "USR"), catalog.class_named("a", "usr")) == (two, one)
    assert (catalog.class_named("c", "usr"), catalog.class_named(None, "usr")) == (None, None)
    assert (catalog.class_named("a", "grp"), catalog.class_named(None, "b.usr")) == (alone, two)


def test_definitions_of_other_times_are_read_as_they_were_written() -> None:
    today = named("person", None, Column(name="idu", key=1), Column(name="aa"))
    was = replace(named("usr", None, Column(name="idu", key=1), Column(name="a"), Column(name="b")), gone=("b",))
    dropped = named("city", None, Column(name="idc", key=1))
    definitions = [
        Definition(table=was, first=5, today=today, renamed={"a": "aa"}),
        Definition(table=today, first=12, today=today),
        Definition(table=dropped),
    ]
    text = catalog_to_json(Catalog([today], former=Definitions(definitions, Catalog([today]))))
    again = catalog_from_json(text)
    assert again.former is not None
    told = [(one.table, one.first, one.today, one.renamed, one.current) for one in again.former.known]
    assert told == [
        (dropped, BEFORE_ALL_NUMBERS, None, {}, False),
        (was, 5, today, {"a": "aa"}, False),
        (today, 12, today, {}, True),
    ]
    assert catalog_to_json(again) == text


@pytest.mark.parametrize(
    "definition, told",
    [
        ({"today": "city"}, "definition 1 is one of city, which is none of the tables"),
        ({"first": 3}, "definition 1 has neither `table` nor `today`"),
        ({"today": "usr", "first": "3"}, r"not a schema file: .*\$.definitions\[0\].first"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_place(definition: dict[str, object], told: str) -> None:
    file = {"tables": [{"name": "usr", "columns": [{"name": "idu", "key": 1}]}], "definitions": [definition]}
    text = msgspec.json.encode(file)
    with pytest.raises(DataError, match=told):
        catalog_from_json(text, origin="my.json")


def test_names_of_children_are_not_guessed_either() -> None:
    other = Table(schema="b", name="x", columns=(), children=(PHONE,))
    catalog = Catalog([USR, other])
    with pytest.raises(DataError, match="several schemas"):
        catalog.find("usr_phone")
    assert catalog.find("b.usr_phone") == TableMatch(other, PHONE)


def test_a_class_that_is_also_a_child_is_the_class_to_its_own_rows() -> None:
    phone = Table(schema="indirect", name="usr_phone", columns=(Column(name="idp", key=1),))
    for tables_ in ([USR, phone], [phone, USR]):
        catalog = Catalog(tables_)
        assert [catalog.find(name) for name in ("usr_phone", "indirect.usr_phone")] == [TableMatch(phone)] * 2


def test_tables_that_differ_by_case_alone_are_told_apart_and_others_know_no_case() -> None:
    names = ("Usr", "usr", "Other")
    catalog = Catalog([Table(name=name, schema="s", columns=()) for name in names])
    for written in (*names, "s.Usr", "s.usr", "OTHER", "S.OTHER"):
        match = catalog.find(written)
        assert match is not None
        assert match.table.name == {"OTHER": "Other"}.get(written.split(".")[-1], written.split(".")[-1])
        assert catalog.class_named("s", match.table.name) is match.table
    # Which of the two is meant nobody can say.
    assert catalog.find("USR") is None
    assert catalog.find("s.USR") is None
    bare = Catalog([Table(name=name, columns=()) for name in names])
    assert [bare.find(name) is not None for name in (*names, "OTHER", "USR")] == [True] * 4 + [False]
