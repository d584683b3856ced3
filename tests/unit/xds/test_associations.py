"""Associations and class names: which table and schema a document names."""

from __future__ import annotations

import datetime as dt

import pytest

from eventlog.core.model import Change, Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.xds.write import XdsFormat
from tests.support.xds_events import read_events

KEY = Column(name="id", key=1)
PLAIN = Table(name="plain", columns=(KEY, Column(name="boss", references="plain")))
NAMED = Table(name="named", schema="own", class_name="Person", columns=(KEY,))


def said(
    row: RowId, *tables: Table, schema_name: str | None = None, edit: Edit | None = None
) -> tuple[str | None, str | None]:
    """The class name and the association, or the association-ref of the edit."""
    op = Op.DELETE if edit is None else Op.ADD
    change = Change(row=row, op=op, edits=() if edit is None else (edit,), positions=((1,),))
    text = XdsFormat(schema_name=schema_name).fragment(change, Catalog(tables) if tables else None)
    [event] = read_events(text.encode())
    if edit is None:
        return event.class_name, event.association
    return event.class_name, event.attributes[0].steps[0].values[0].association


@pytest.mark.parametrize(
    "row, schema_name, expected",
    [
        (RowId(None, "plain", "id=1"), None, ("plain", "id=1,table=plain")),
        (RowId(None, "plain", "id=1"), "dflt", ("plain", "id=1,table=plain,schema=dflt")),
        (RowId("s", "plain", "id=1"), "dflt", ("plain", "id=1,table=plain,schema=s")),
        (RowId("own", "named", "id=1"), "dflt", ("Person", "id=1,table=named,schema=own")),
        (RowId("OWN", "named", "id=1"), None, ("Person", "id=1,table=named,schema=own")),
        (RowId(None, "NAMED", "id=1"), None, ("Person", "id=1,table=named,schema=own")),
        (RowId("elsewhere", "named", "id=1"), None, ("named", "id=1,table=named,schema=elsewhere")),
        (RowId("other", "x", "id=1"), "dflt", ("x", "id=1,table=x,schema=other")),
        (RowId(None, "a.x", "id=1"), "dflt", ("x", "id=1,table=x,schema=a")),
        (RowId("a,b", "x=y", 'id="+"'), None, ("x=y", 'id="+",table="x=y",schema="a,b"')),
    ],
)
def test_table_and_schema(row: RowId, schema_name: str | None, expected: tuple[str, str]) -> None:
    assert said(row, PLAIN, NAMED, schema_name=schema_name) == expected


def test_without_a_catalog_names_are_those_of_the_log() -> None:
    assert said(RowId(None, "usr", "idu=1")) == ("usr", "idu=1,table=usr")
    assert said(RowId(None, "indirect.usr", "idu=1")) == ("usr", "idu=1,table=usr,schema=indirect")


def test_a_reference_follows_the_same_rules() -> None:
    edit = Edit(column="boss", new="a+b")
    assert said(RowId(None, "plain", "id=1"), PLAIN, edit=edit)[1] == 'id="a+b",table=plain'
    assert said(RowId(None, "plain", "id=1"), PLAIN, edit=edit, schema_name="d")[1] == 'id="a+b",table=plain,schema=d'


def test_a_reference_prefers_the_schema_of_its_own_table() -> None:
    columns = (KEY, Column(name="boss", references="p"))
    both = [Table(name="p", schema=schema, columns=columns) for schema in "ab"]
    assert said(RowId("b", "p", "id=1"), *both, edit=Edit(column="boss", new="2"))[1] == "id=2,table=p,schema=b"


def test_a_reference_that_several_tables_could_mean_is_a_plain_value() -> None:
    both = [Table(name="p", schema=schema, columns=(KEY,)) for schema in "ab"]
    usr = Table(name="usr", schema="c", columns=(KEY, Column(name="boss", references="p")))
    assert said(RowId("c", "usr", "id=1"), *both, usr, edit=Edit(column="boss", new="2"))[1] is None


def test_a_reference_to_a_day_names_it_as_a_log_does() -> None:
    day = Table(
        name="day", columns=(Column(name="d", type="date", key=1), Column(name="eve", type="date", references="day"))
    )
    edit = Edit(column="eve", new=dt.date(2025, 3, 23))
    assert said(RowId(None, "day", "d=2025-03-24"), day, edit=edit)[1] == "d=2025-03-23,table=day"


@pytest.mark.parametrize(
    "key, kind, value, spelled",
    [
        ("integer", "numeric(10,2)", "7.00", "7"),
        ("integer", "varchar(9)", "07", "7"),
        ("numeric(10,2)", "integer", 7, "7.00"),
        ("numeric", "numeric(10,2)", "7.50", "7.5"),
        ("char(5)", "varchar(9)", "ab  ", "ab"),
        ("varchar(9)", "varchar(9)", "ab  ", '"ab  "'),
        ("date", "timestamp", "2025-03-23 00:00:00", "2025-03-23"),
        ("timestamp", "date", "2025-03-23", "2025-03-23 00:00:00.000000000"),
        ("uuid", "varchar(40)", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        ("integer", "varchar(9)", "no number", "no number"),
    ],
)
def test_a_reference_is_spelled_as_the_key_is(key: str, kind: str, value: str | int, spelled: str) -> None:
    other = Table(name="other", columns=(Column(name="k", type=key, key=1),))
    usr = Table(name="usr", columns=(KEY, Column(name="o", type=kind, references="other")))
    assert (
        said(RowId(None, "usr", "id=1"), usr, other, edit=Edit(column="o", new=value))[1] == f"k={spelled},table=other"
    )
