"""Keys that mean one row of a table are one object, however a writer spells the values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import Event, RowImage
from eventlog.core.rules import Options, decide, list_wanted, screen
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.tablekey import quote_value
from tests.support.examples import examples

SPELLINGS = [
    ("integer", "1", ["01", "+1", "1.0", "0001", " 1"]),
    ("bigint", "-7", ["-07", "-7.00"]),
    ("integer", "0", ["-0", "00", "+0"]),
    ("smallint unsigned", "5", ["05"]),
    ("numeric(10,0)", "12", ["12.", "012", "1.2e1"]),
    ("numeric(10,2)", "1.50", ["1.5", "01.50", "+1.50", "1.500", "15e-1"]),
    ("numeric(10,2)", "0.00", ["0", "-0.00", "-0", ".0"]),
    ("decimal(5,1)", "-2.5", ["-02.5", "-2.50"]),
    ("numeric", "1.5", ["1.50", "01.5"]),
    ("char(5)", "ab", ["ab   ", "ab "]),
    ("date", "2024-01-05", ["2024-01-05 00:00:00", "20240105"]),
    (
        "timestamp",
        "2024-01-05 10:00:00.000000000",
        ["2024-01-05T10:00:00", "2024-01-05 10:00", "2024-01-05 10:00:00.000"],
    ),
    ("timestamptz", "2024-01-05 10:00:00.000000000", ["2024-01-05T12:00:00+02:00", "2024-01-05 10:00:00Z"]),
    ("boolean", "1", ["t", "true", "TRUE"]),
    ("uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", ["F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"]),
]
KEPT = [
    ("varchar(9)", ["01", " a", "A", "1.50"]),
    ("integer", ["x", "1e", "", "1.5", "NaN"]),
    ("numeric(10,2)", ["NaN", "x", "1.505", "Infinity"]),
    ("date", ["infinity", "2024-13-01", "0044-03-15 BC"]),
    ("timestamp", ["infinity", "0044-03-15 10:00:00 BC", "24:00"]),
]


def identities(*types: str, **more: Any) -> Identities:
    columns = tuple(Column(name=f"k{number}", type=kind, key=number + 1) for number, kind in enumerate(types))
    return Identities(Catalog([Table(schema="s", name="t", columns=columns)], **more))


def key_of(text: str, *types: str, **more: Any) -> str:
    row = identities(*types, **more).row_id("t", text)
    assert row is not None
    return row.key


@pytest.mark.parametrize("kind, canonical, spelled", SPELLINGS)
def test_a_value_is_spelled_in_one_way(kind: str, canonical: str, spelled: list[str]) -> None:
    known = f"k0={quote_value(canonical)}"
    assert key_of(known, kind) == known
    for text in spelled:
        assert key_of(f"k0={quote_value(text)}", kind) == known, text
        assert key_of(f"k1=x+K0={quote_value(text)}", kind, "varchar") == f"{known}+k1=x", text


@pytest.mark.parametrize("kind, values", KEPT)
def test_what_is_no_such_value_stays_as_it_is(kind: str, values: list[str]) -> None:
    for value in values:
        assert key_of(f"k0={quote_value(value)}", kind) == f"k0={quote_value(value)}"


def test_rows_of_one_object_are_one_change() -> None:
    columns = (Column(name="k", type="integer", key=1), Column(name="a"), Column(name="b"))
    events = [
        Event(position=(number,), kind=2, table="t", key=key, column=column, old="x", new="y", time="2026-01-01")
        for number, (key, column) in enumerate([("k=1", "a"), ("k=01", "b")], 1)
    ]
    changes, _ = decide(events, catalog=Catalog([Table(schema="s", name="t", columns=columns)]))
    assert [(change.row.key, len(change.edits)) for change in changes] == [("k=1", 2)]


def test_columns_know_no_case_where_tables_do() -> None:
    assert key_of("K0=1", "integer", case_sensitive=True) == "k0=1"
    with pytest.raises(DataError):
        identities("integer", case_sensitive=True).naming("T")


@given(st.integers(-(10**20), 10**20), st.integers(0, 5))
@examples(50)
def test_the_canonical_form_of_a_number_is_its_own(number: int, zeros: int) -> None:
    written = f"{'-' if number < 0 else ''}{'0' * zeros}{abs(number)}"
    assert key_of(f"k0={written}", "bigint") == f"k0={number}"
    exact = key_of(f"k0={written}.5", "numeric(30,2)")
    assert exact == key_of(exact, "numeric(30,2)")


LOOSE = [
    (("case",), ["Ab", "ab", "AB"], ["Ab ", "É", "é"]),
    (("blanks",), ["Ab", "Ab  "], ["ab", " Ab"]),
    (("case", "blanks"), ["Ab", "ab ", "aB  "], [" ab", "Éb"]),
    (("more",), ["Ab"], ["ab", "Ab "]),
]


@pytest.mark.parametrize("alike, one, others", LOOSE)
def test_texts_that_a_collation_takes_for_one_are_one_object(
    alike: tuple[str, ...], one: list[str], others: list[str]
) -> None:
    columns = (Column(name="k", key=1, alike=alike), Column(name="n", type="integer", key=2))
    known = Identities(Catalog([Table(schema="s", name="t", columns=columns)]))
    names = {known.row_id("t", f"n=01+K={quote_value(text)}") for text in one}
    assert len(names) == 1
    assert names == {known.row_id("t", f"k={quote_value(text)}+n=1") for text in one}
    apart = {known.row_id("t", f"k={quote_value(text)}+n=1") for text in others}
    assert len(apart | names) == len(others) + 1


def test_what_is_not_there_is_called_as_the_log_has_it() -> None:
    """A lifetime that a delete ends is called as the delete says, and nothing is asked of images."""
    columns = (Column(name="k", key=1, alike=("case",)), Column(name="a"))
    catalog = Catalog([Table(schema="s", name="t", columns=columns)])
    written = [(2, "k=Ab"), (4, "k=AB"), (2, "k=ab")]
    events = [
        Event(position=(at,), kind=kind, table="t", key=key, column="a", old="x", new="y", time="2026-01-01")
        for at, (kind, key) in enumerate(written, 1)
    ]
    changes, _ = decide(events, catalog=catalog)
    assert [(change.op.value, change.row.key) for change in changes] == [
        ("modify", "k=AB"), ("delete", "k=AB"), ("modify", "k=ab"),
    ]  # fmt: skip
    assert [*list_wanted(screen(events, catalog, Options())).values()] == [frozenset({"k"})]
    image = RowImage(number=1, names=("a",), before=("x",), after=("y",))
    alone = replace(events[0], image=image)
    assert not list_wanted(screen([alone], catalog, Options()))
    assert not list_wanted(screen(events[:2], catalog, Options()))
    truncated = Event(position=(9,), kind=4, table="t", key="*", time="2026-01-01")
    assert [change.op.value for change in decide([truncated], catalog=catalog).changes] == ["truncate"]


def test_columns_of_a_key_that_differ_by_case_alone_are_told_apart() -> None:
    columns = (Column(name="k", key=1), Column(name="K", key=2), Column(name="a"))
    catalog = Catalog([Table(schema="s", name="t", columns=columns)])
    events = [
        Event(position=(number,), kind=2, table="t", key=key, column="a", old="x", new="y", time="2026-01-01")
        for number, key in enumerate(("k=1+K=2", "K=2+k=1", "k=2+K=1"), 1)
    ]
    changes, _ = decide(events, catalog=catalog)
    assert [(change.row.key, change.positions) for change in changes] == [
        ("k=1+K=2", ((1,),)), ("k=1+K=2", ((2,),)), ("k=2+K=1", ((3,),)),
    ]  # fmt: skip
