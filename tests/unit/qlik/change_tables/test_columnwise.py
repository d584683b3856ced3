"""Column by column comes what one by one comes: the same documents, numbers and refusals, whatever the changes are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, RowId, Transaction, Who
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Writer, encode
from eventlog.qlik.change_seq import Sequencer
from eventlog.qlik.change_tables.format import (
    ChangeTableFormat,
    lay_out,
)
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable, ChangeTables
from tests.support.shares import met, shares

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="text"),
        Column(name="pay", type="bigint"),
        Column(name="since", type="timestamp"),
    ),
)
PAIR = Table(
    name="pair", columns=(Column(name="a", key=2), Column(name="x", type="text"), Column(name="b", type="int", key=1))
)
LOOSE = Table(name="loose", columns=(Column(name="x", type="text"),))
CATALOG = Catalog([USR, PAIR, LOOSE])
AT = dt.datetime(2026, 1, 1)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "fname": st.sampled_from(["Jack", "Jill", None]),
    "pay": st.sampled_from([1, 2, None]),
    "since": st.sampled_from([AT, AT + dt.timedelta(days=1), None]),
    "x": st.sampled_from(["x", "y", None]),
}
ODD: st.SearchStrategy[Any] = st.sampled_from([ABSENT, "2026-01-01", 7, AT.replace(tzinfo=dt.UTC)])
TRANSACTIONS = [None, *[Transaction(id=n, time=AT + dt.timedelta(minutes=7 * (n % 3))) for n in range(4)]]
TABLES = {
    "usr": (["fname", "pay", "since"], ["idu=1", "idu=23", "idu=-4", 'idu="1"']),
    "pair": (["x"], ["b=1+a=k", "a=l+b=2"]),
    "loose": (["x"], [""]),
    "unknown": (["x"], ["x=1"]),
}


@st.composite
def changes_of(draw: st.DrawFn, tables: list[str], *, odd: bool) -> Change:
    """An image of a row; sometimes it is none, or holds what the schema does not say."""
    table = draw(st.sampled_from(tables))
    names, keys = TABLES[table]
    edits = []
    for name in names[: draw(st.integers(0, 3)) if odd else 3]:
        one = CELLS[name] | ODD if odd else CELLS[name]
        edits.append(Edit(column=name, old=draw(one), new=draw(one)))
    return Change(
        row=RowId(None, table, draw(st.sampled_from(keys if odd else keys[:2]))),
        op=draw(st.sampled_from(list(Op) if odd else list(Op)[:3])),
        edits=tuple(edits),
        positions=((draw(st.integers(1, 99)),),),
        time=draw(st.sampled_from([AT, AT.replace(tzinfo=dt.UTC), None, "2026-02-03"])),
        whole=not odd or draw(st.booleans()),
        transaction=draw(st.sampled_from(TRANSACTIONS)),
        stream=draw(st.sampled_from([None, "here"])),
        refresh=draw(st.booleans()),
    )


def runs(tables: list[str], *, odd: bool) -> st.SearchStrategy[list[Change]]:
    return st.lists(changes_of(tables, odd=odd), min_size=8, max_size=12)


settings_of = st.builds(
    ChangeTableSettings,
    mask=st.sampled_from(["bytes", "hex"]),
    before_image=st.booleans(),
    partition_every=st.sampled_from([0, 10]),
    tables=st.sampled_from([(), ("usr",)]),
    headers=st.sampled_from(
        [ChangeTableSettings().headers, ("change_oper", "change_mask"), ("change_seq", "timestamp"), ("change_seq",)]
    ),
)


class OneByOne(ChangeTableFormat, frozen=True, kw_only=True):
    """The format without its quick way."""

    def writer(self, catalog: Catalog | None = None) -> Writer:
        write = super().writer(catalog)
        return lambda changes: (item for change in changes for item in write((change,)))


@shares(rows=0.6, compound=0.15, quick=0.2, refused=0.05)
@given(
    runs(["usr"], odd=False)
    | runs(["usr", "pair", "loose"], odd=False)
    | runs([*TABLES], odd=True)
    | st.tuples(runs(["usr", "pair"], odd=False), runs(["usr"], odd=True)).map(lambda both: both[0] + both[1]),
    settings_of,
    st.sampled_from([20, 30, 1000]),
)
def test_column_by_column_comes_what_one_by_one_comes(
    changes: list[Change], settings: ChangeTableSettings, size: int
) -> None:
    quick = list(encode(ChangeTableFormat(settings=settings, rows_of_a_document=size), changes, CATALOG))
    assert quick == list(encode(OneByOne(settings=settings, rows_of_a_document=size), changes, CATALOG))
    blocks = [block for one in quick if isinstance(one, RowsDocument) for block in one.blocks]
    met(
        rows=blocks,
        compound=any(block.target == "pair__ct" for block in blocks),
        quick=taken(changes) is not None,
        refused=any(isinstance(one, Refusal) for one in quick),
    )
    assert all(len(column) == len(block.positions) for block in blocks for column in block.cells)


def images(*pairs: tuple[Any, Any], table: str = "usr", column: str = "pay", key: str = "idu=1") -> list[Change]:
    """Modifications of one column."""
    return [
        Change(
            row=RowId(None, table, key),
            op=Op.MODIFY,
            edits=(Edit(column=column, old=old, new=new),),
            positions=((number,),),
            time=AT,
            whole=True,
        )
        for number, (old, new) in enumerate(pairs, 1)
    ]


def taken(changes: list[Change], **chosen: Any) -> RowsDocument | None:
    """What the quick way makes of the changes; None where it is not taken."""
    form = ChangeTableFormat(settings=ChangeTableSettings(**chosen))
    columns = lay_out(ChangeTables(form.settings, CATALOG), changes)
    if columns is None:
        return None
    [document] = form.bind([columns])
    return document


def test_the_quick_way_is_taken_and_leaves_out_what_did_not_change() -> None:
    document = taken(images(*[(1, 2), (3, 3)] * 4))
    assert document is not None
    [block] = document.blocks
    assert block.cells[1] == ["B", "U"] * 4
    assert block.cells[7:] == ([1] * 8, [None] * 8, [1, 2] * 4, [None] * 8)
    assert [int(one[16:]) for one in document.covers] == [1, 2, 3, 4]
    assert list(document.covers.values()) == [((1,),), ((3,),), ((5,),), ((7,),)]


def test_nothing_changed_is_no_row() -> None:
    columns = lay_out(ChangeTables(ChangeTableSettings(), CATALOG), images(*[(1, 1)] * 9))
    assert columns is not None
    assert columns.count == 0


@pytest.mark.parametrize(
    "odd",
    [
        images((1, "no number")),
        images(("no number", 2)),
        images((1, 2), table="unknown"),
        images((1, 2), column="nobody"),
        images((1, 2), key="other=1"),
        images((AT, AT.replace(tzinfo=dt.UTC)), column="since"),
    ],
    ids=["new", "old", "table", "column", "key", "zone"],
)
@pytest.mark.parametrize("before_image", [True, False])
def test_whatever_is_unusual_is_asked_one_by_one(odd: list[Change], *, before_image: bool) -> None:
    usual = images(*[(AT, None)] * 8, column="since") if odd[0].edits[0].column == "since" else images(*[(1, 2)] * 8)
    assert taken(usual, before_image=before_image) is not None
    assert taken([*usual, *odd], before_image=before_image) is None


@pytest.mark.parametrize("keys", [["x", "idu=1\nidu=2"], ["idu=1\nidu=2", ""], ["idu=1", "idu="], ["idu=1", "idd=2"]])
def test_keys_that_only_look_like_numbers_together_are_none(keys: list[str]) -> None:
    with pytest.raises(DataError):
        ChangeTable(USR, ChangeTableSettings())._layout.keys(keys)


def test_numbers_go_on_past_a_thousand() -> None:
    changes = images(*[(1, 2)] * 1100)
    once, each = Sequencer("20270101000000000000000000000000955"), Sequencer("20270101000000000000000000000000955")
    assert once.many(changes) == [each.next(change) for change in changes]
    assert once.last == each.last == "20270101000000000000000000000002055"


@pytest.mark.parametrize("value", [1.5, Decimal("1.5"), "1.5", 1])
def test_real_numbers_are_such_column_by_column_too(value: float | Decimal | str) -> None:
    share = Column(name="share", type="double precision")
    catalog = Catalog([Table(name="t", columns=(Column(name="id", type="integer", key=1), share))])
    changes = [
        Change(
            row=RowId(None, "t", f"id={number}"),
            op=Op.ADD,
            edits=(Edit(column="share", new=value),),
            positions=((number,),),
            whole=True,
        )
        for number in range(1, 31)
    ]
    quick, slow = (list(encode(form(), changes, catalog)) for form in (ChangeTableFormat, OneByOne))
    assert quick == slow
    [document] = [one for one in quick if isinstance(one, RowsDocument)]
    assert {type(row[-1]) for block in document.blocks for row in block.rows} == {float}


def test_the_quick_way_cuts_partitions_where_one_by_one_cuts_them() -> None:
    later = [replace(one, time=AT + dt.timedelta(minutes=15)) for one in images(*[(1, 2)] * 4)]
    changes = [*images(*[(1, 2)] * 4), *later]
    document = taken(changes, partition_every=10)
    assert document is not None
    assert [len(block.positions) for block in document.blocks] == [8, 8]  # before and after image of four changes
    names = [block.partition.name for block in document.blocks if block.partition is not None]
    assert len(set(names)) == 2
    settings = ChangeTableSettings(partition_every=10)
    assert [document] == list(encode(OneByOne(settings=settings), changes, CATALOG))


@pytest.mark.parametrize("column", ["idu", "nowhere"])
def test_images_with_columns_of_the_key_or_of_nobody_are_asked_one_by_one(column: str) -> None:
    assert taken(images(*[(1, 2)] * 8, column=column), before_image=True) is None


def test_what_is_unusual_among_rows_that_did_not_change_is_asked_one_by_one() -> None:
    assert taken([*images(*[(1, 2), (3, 3)] * 4), *images((1, 2), key="other=1")]) is None


def test_a_table_in_which_nothing_changed_is_no_block_beside_others() -> None:
    document = taken([*images(*[(1, 1)] * 8), *images(*[("x", "y")] * 8, table="pair", column="x", key="b=1+a=k")])
    assert document is not None
    assert [block.table.name for block in document.blocks] == ["pair"]


def test_who_is_behind_a_change_comes_column_by_column_too() -> None:
    changes = [replace(one, who=Who(user="ann", context="job")) for one in images(*[(1, 2)] * 8)]
    form = ChangeTableFormat(settings=ChangeTableSettings())
    columns = lay_out(ChangeTables(form.settings, CATALOG, who=True), changes)
    assert columns is not None
    [(_, _, laid)] = columns.tables
    assert list(laid.cells[6:8]) == [["ann"] * 16, ["job"] * 16]
