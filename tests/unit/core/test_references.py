"""Whose key the values of a column are: by foreign keys, and by the names of a view's columns."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from eventlog.convert.long_object import decide_pieces
from eventlog.core.model import Change, Event, Kind, ReadBack, Reason, RowId, Unreadable
from eventlog.core.references import find_referenced
from eventlog.core.rules.round import Round
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import Written
from eventlog.xds.write import XdsFormat

PHONE = Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="idu"), Column(name="phoneno")))
USR = Table(schema="indirect", name="usr", columns=(Column(name="idu", key=1), Column(name="fname")), children=(PHONE,))


def test_of_several_owners_of_a_key_the_one_in_the_same_schema_is_meant() -> None:
    near, far = (Table(schema=schema, name="usr", columns=(Column(name="idu", key=1),)) for schema in ("a", "b"))
    view = Table(schema="a", name="v", view=True, columns=(Column(name="pk_idv"), Column(name="fk__idu__boss")))
    assert find_referenced(Catalog([near, far, view]), view, view.columns[1]) == near
    elsewhere = Table(schema="c", name="v", view=True, columns=view.columns)
    assert find_referenced(Catalog([near, far, elsewhere]), elsewhere, view.columns[1]) is None
    assert find_referenced(Catalog([far, elsewhere]), elsewhere, view.columns[1]) == far


def test_a_foreign_key_leads_to_the_class_it_names() -> None:
    boss, phone = Column(name="boss", references="Usr"), Column(name="phone", references="usr_phone")
    others = Column(name="gone", references="nosuch"), Column(name="fk__idu__x")
    grp = Table(name="grp", schema="indirect", columns=(boss, phone, *others))
    catalog = Catalog([USR, grp, Table(name="usr", schema="direct", columns=())])
    assert [find_referenced(catalog, grp, column) for column in grp.columns] == [USR, None, None, None]


def test_a_views_column_says_in_its_name_whose_key_it_holds() -> None:
    view = Table(
        name="v", view=True, columns=(Column(name="pk_idu"), Column(name="fk__IDU__boss"), Column(name="sv_x"))
    )
    catalog = Catalog([view, Table(name="other", columns=(Column(name="id", key=1),))])
    assert find_referenced(catalog, view, view.columns[1]) == view
    assert find_referenced(catalog, view, view.columns[2]) is None
    assert find_referenced(Catalog([Table(name="other", columns=())]), view, view.columns[1]) is None


PLACES = Table(name="place", columns=(Column(name="name", key=1, alike=("case",)), Column(name="v")))
SHOP = Table(
    name="shop",
    columns=(Column(name="id", type="integer", key=1), Column(name="place", references="place"), Column(name="v")),
    children=(
        Child(name="tag", parent_key=("id",), columns=(Column(name="id"), Column(name="of", references="place"))),
    ),
)
LOOSE = Catalog([PLACES, SHOP])


class Rows:
    """Answers read-backs, and notes what was asked."""

    def __init__(self, rows: Mapping[RowId, ReadBack]) -> None:
        self._rows = rows
        self.asked: list[RowId] = []

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        self.asked += wanted
        return {row: self._rows[row] for row in wanted if row in self._rows}


def shop_event(number: int, column: str, *, old: str | None = None, new: str | None = None) -> Event:
    return Event(
        position=(number,),
        kind=Kind.UPDATE_FIELD,
        table="shop",
        key="id=1",
        column=column,
        old=old,
        new=new,
        time="2026-01-01",
    )


def test_objects_that_values_name_are_called_as_their_rows_are() -> None:
    reader = Rows(
        {RowId(None, "place", "name=OSLO"): {"name": "Oslo"}, RowId(None, "place", "name=rom"): {"name": "Rom"}}
    )
    events = [
        shop_event(1, "place", old="OSLO", new="nowhere"),
        shop_event(2, "tag.of", new="rom"),
        shop_event(3, "v", new="x"),
    ]
    changes, _ = Round(catalog=LOOSE, reader=reader).decide(events)
    assert {row.key: key for change in changes for row, key in (change.called or {}).items()} == {
        "name=OSLO": "name=Oslo", "name=nowhere": "name=nowhere", "name=rom": "name=Rom",
    }  # fmt: skip
    written = "".join(item.text for item in XdsFormat().writer(LOOSE)(changes) if isinstance(item, Written))
    assert 'association-ref="name=Oslo,table=place">OSLO</value>' in written
    assert 'association-ref="name=nowhere,table=place">nowhere</value>' in written
    assert 'association-ref="name=Rom,table=place">rom</value>' in written
    assert Round(catalog=LOOSE, reader=reader, reads_others=False).decide(events).changes[0].called is None
    reader.asked.clear()
    Round(catalog=LOOSE, reader=reader).decide(events[2:])
    assert reader.asked == []


def test_a_change_waits_for_a_table_that_cannot_be_read_now() -> None:
    locked = Unreadable(note="locked", reason=Reason.LOCKED)
    reader = Rows({RowId(None, "place", "name=OSLO"): locked})
    made = Round(catalog=LOOSE, reader=reader).decide([shop_event(1, "place", new="OSLO")])
    assert (made.changes, [outcome.reason for outcome in made.outcomes]) == ([], [Reason.LOCKED])


def test_a_change_that_names_nobody_goes_beside_one_that_does() -> None:
    reader = Rows({RowId(None, "place", "name=OSLO"): {"name": "Oslo"}})
    other = replace(shop_event(2, "v", new="x"), key="id=2")
    made = Round(catalog=LOOSE, reader=reader).decide([shop_event(1, "place", new="OSLO"), other])
    assert [(change.row.key, change.called) for change in made.changes] == [
        ("id=1", {RowId(None, "place", "name=OSLO"): "name=Oslo"}), ("id=2", None),
    ]  # fmt: skip


def test_a_long_object_names_others_as_the_whole_does() -> None:
    reader = Rows({RowId(None, "place", "name=OSLO"): {"name": "Oslo"}})
    asked = Round(catalog=LOOSE, reader=reader)
    events = [shop_event(1, "place", new="OSLO"), shop_event(2, "place", old="OSLO", new=None)]
    written: list[Change] = []

    def write_one(change: Change) -> None:
        written.append(change)

    for _ in decide_pieces(asked, lambda: iter([[event] for event in events]), write_one):
        pass
    assert written == asked.decide(events).changes


def test_a_foreign_key_to_another_unique_column_names_no_object() -> None:
    held = [Column(name=name, references="usr", referenced_column=name) for name in ("IDU", "fname")]
    grp = Table(name="grp", schema="indirect", columns=tuple(held))
    namesake = Table(name="usr", schema="direct", columns=USR.columns)
    assert [find_referenced(Catalog([USR, grp]), grp, column) for column in held] == [USR, None]
    assert [find_referenced(Catalog([namesake, grp]), grp, column) for column in held] == [None, None]
