"""Work that grows with the tables: names are compared a few times each, counted, whatever the clock says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.core.references import find_referenced
from eventlog.core.rules.screen import Identities, Naming, identities_of
from eventlog.core.schema import Catalog, Child, Column, Table
from tests.support.shares import met, shares

A_FEW_TIMES = 8
"""Spellings of a name that may be looked at: its own, its bare one, for each way of comparing, and the asked one's."""


class Counting(Catalog):
    """A catalog that counts the names which it is asked to compare."""

    compared = 0

    def fold(self, name: str) -> str:
        type(self).compared += 1
        return super().fold(name)


def wide(columns: int, *, view: bool) -> Table:
    made = tuple(Column(name=f"sv_c{n}" if view else f"c{n}") for n in range(columns))
    return Table(schema="hr", name="wide", view=view, columns=(Column(name="pk_idu", key=1), *made))


def columns_are_looked_up(count: int, *, view: bool = False) -> None:
    naming = Identities(Counting([wide(count, view=view)])).naming("wide")
    assert [naming.attribute(f"C{n}") for n in range(count)] == [f"c{n}" for n in range(count)]


def views_refer_to_others(count: int) -> None:
    columns = [(Column(name=f"pk_k{n}"), Column(name=f"fk__k{n - 1}__other")) for n in range(count)]
    catalog = Counting([Table(name=f"v{n}", view=True, columns=pair) for n, pair in enumerate(columns)])
    referred = [find_referenced(catalog, view, view.columns[1]) for view in catalog]
    assert referred == [None, *catalog.tables[:-1]]


WORK = (columns_are_looked_up, partial(columns_are_looked_up, view=True), views_refer_to_others)


@pytest.mark.parametrize("work", WORK, ids=["columns", "columns of a view", "views"])
@pytest.mark.parametrize("count", [20, 200])
def test_each_name_is_compared_a_few_times_however_many_there_are(work: Callable[[int], None], count: int) -> None:
    Counting.compared = 0
    work(count)
    assert Counting.compared < A_FEW_TIMES * count


def test_spellings_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("eventlog.core.rules.screen"), "KEPT_SPELLINGS", 5)
    identities = identities_of(Catalog([wide(1, view=False)]))
    for padding in range(20):
        naming = identities.naming("wide")
        assert naming.attribute("c0" + " " * padding) == "c0"
        assert len(naming.known) <= 5
    for spelling in ("Wide", "wIde", "wiDe", "widE", "WIde", "WiDe", "WidE"):
        assert identities.naming(spelling).attribute("c0") == "c0"
    assert len(identities._namings) <= 5


names = st.sampled_from(["a", "A", "b", "sv_a", "pk_b", "fk__a__b", "note.text", "text"])


@shares(found=0.2, missing=0.1)
@given(st.lists(names, unique=True, max_size=6), st.lists(names, unique=True, max_size=2), names, st.booleans())
def test_a_column_name_means_the_first_attribute_that_is_spelled_so(
    columns: list[str], child_columns: list[str], asked: str, view: bool
) -> None:
    child = Child(name="note", parent_key=(), columns=tuple(Column(name=name) for name in child_columns))
    table = Table(name="t", view=view, columns=tuple(Column(name=name) for name in columns), children=(child,))
    naming = Identities(Catalog([table])).naming("t")
    expected = _first(naming, table, asked)
    met(found=expected is not None, missing=expected is None)
    if expected is None:
        with pytest.raises(DataError, match="is not a column of t"):
            naming.attribute(asked)
    else:
        assert naming.attribute(asked) == expected


def _first(naming: Naming, table: Table, asked: str) -> str | None:
    """What is found by looking at one attribute after the other: names as they are first, then by any case, then without
    prefixes.
    """
    for fold in (str, str.casefold, naming.folded):
        for name, attribute in table.loggable.items():
            if fold(asked) == fold(name) or (attribute.child is None and fold(asked) == fold(attribute.column.name)):
                return name
    return None
