"""Whose key the values of a column are: by foreign keys, and by the names of a view's columns."""

from __future__ import annotations

from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.xds.references import find_referenced

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
