"""The change-tables format: rows of every operation, header columns, refusals, and that a cut changes nothing."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, Document, Edit, Op, Refusal, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.change_seq import ChangeSeq, time_digits
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.partitions import Partition, Partitions, read_partition
from eventlog.qlik.change_tables.rows import (
    RowsDocument,
    by_column,
)
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable
from tests.support.shares import met, shares

USR = Table(
    name="usr",
    schema="hr",
    columns=(Column(name="idu", type="integer", key=1), Column(name="fname"), Column(name="lname")),
)
GRP = Table(name="grp", schema="hr", columns=(Column(name="idg", type="integer", key=1), Column(name="name")))
CATALOG = Catalog([USR, GRP])
AT = dt.datetime(2024, 5, 6, 7, 8, 9, 120_000)
TX = Transaction(id=30_064_772_072, time=AT + dt.timedelta(seconds=2))


def change(op: Op, *edits: Edit, key: str = "idu=1", number: int = 1, **more: Any) -> Change:
    more = {"row": RowId("hr", "usr", key), "time": AT, **more}
    return Change(op=op, edits=edits, positions=((number,),), **more)


UPDATE = change(Op.MODIFY, Edit(column="fname", old="Jack", new="John"), transaction=TX)


def encoded(*changes: Change, catalog: Catalog | None = CATALOG, after: str = "", **chosen: Any) -> list[Any]:
    found = encode(ChangeTableFormat(settings=ChangeTableSettings(**chosen)), changes, catalog, after)
    return list(found)


def rows(*changes: Change, **chosen: Any) -> list[tuple[Any, ...]]:
    [document] = encoded(*changes, **chosen)
    assert isinstance(document, RowsDocument)
    return [row for block in document.blocks for row in block.rows]


def test_an_update_has_its_before_image_under_the_same_number() -> None:
    identity = "E8030000070000000000000000000000"
    seq = "20240506070811120000000000000000001"
    before, after = rows(UPDATE)
    assert before == (seq, "B", b"", "1", "BEFOREIMAGE", identity, AT, 1, "Jack", None)
    assert after == (seq, "U", b"\x00\x01", "1", "UPDATE", identity, AT, 1, "John", None)


def test_the_columns_are_the_headers_and_then_the_tables_own() -> None:
    [document] = encoded(UPDATE)
    [block] = document.blocks
    assert [column.name for column in block.columns][:3] == [
        "header__change_seq",
        "header__change_oper",
        "header__change_mask",
    ]
    assert [(column.name, column.key) for column in block.columns if not column.header] == [
        ("idu", 1),
        ("fname", 0),
        ("lname", 0),
    ]
    assert (block.target, document.id, document.body) == ("usr__ct", block.rows[-1][0], b"")
    assert document.covers == {document.id: ((1,),)}
    assert by_column(block.rows, len(block.columns))[1] == ("B", "U")
    assert by_column([], 2) == [(), ()]


@pytest.mark.parametrize(
    "op, edits, oper, mask, data",
    [
        (Op.ADD, [Edit(column="fname", new="Jack")], "I", "80 01", (1, "Jack", None)),
        (Op.DELETE, [Edit(column="lname", old="Frost")], "D", "80", (1, None, "Frost")),
        (Op.TRUNCATE, [], "T", "", (None, None, None)),
        (Op.MODIFY, [Edit(column="lname", new="Doe", reset=True)], "U", "00 02", (1, None, "Doe")),
        (Op.MODIFY, [Edit(column="fname", new=None, reset=True)], "U", "00 01", (1, None, None)),
    ],
)
def test_one_row_for_every_other_operation(
    op: Op, edits: list[Edit], oper: str, mask: str, data: tuple[object, ...]
) -> None:
    [row] = rows(change(op, *edits))
    assert (row[1], row[2].hex(" "), row[7:]) == (oper, mask, data)


def test_an_update_that_changes_nothing_has_no_row_and_no_number() -> None:
    nothing = change(Op.MODIFY, Edit(column="fname", old="a", new="a"), whole=True)
    assert encoded(nothing) == []
    assert [row[0][16:] for row in rows(nothing, change(Op.DELETE))] == ["0" * 18 + "1"]


def test_a_change_of_a_logged_key_shows_the_old_one() -> None:
    before, after = rows(change(Op.MODIFY, Edit(column="idu", old="1", new="2"), key="idu=2"))
    assert (before[1], before[7], after[1], after[2], after[7]) == ("B", 1, "U", b"\x80", 2)


def test_a_mask_counts_the_header_columns_that_are_there() -> None:
    two = ("change_mask", "change_oper")
    assert rows(UPDATE, headers=two)[1] == ("U", b"\x08", 1, "John", None)
    assert rows(UPDATE, headers=("change_mask",), mask="hex") == [("", 1, "Jack", None), ("04", 1, "John", None)]
    assert rows(UPDATE, headers=())[1] == (1, "John", None)
    assert rows(UPDATE, headers=("change_seq",))[1][0].endswith("1")
    assert [row[1] for row in rows(UPDATE, before_image=False)] == ["U"]


def test_a_document_ends_when_it_is_full_but_where_all_must_be_in_one() -> None:
    form = ChangeTableFormat(rows_of_a_document=2)
    inserts = [
        change(Op.ADD, Edit(column="fname", new="x"), key=f"idu={number}", number=number) for number in range(1, 6)
    ]
    written = [one for one in form.writer(CATALOG)(inserts) if not isinstance(one, Refusal)]
    assert [sum(len(block.rows) for block in one.blocks) for one in form.bind(written)] == [2, 2, 1]
    assert [sum(len(block.rows) for block in one.blocks) for one in form.bind(written, whole=True)] == [5]


def test_partitions_stand_behind_the_timestamp_and_shift_the_mask() -> None:
    after = rows(UPDATE, partition_every=60)[1]
    assert after[7] == "20240506T070000_20240506T080000"
    assert (after[2], after[8:]) == (b"\x00\x02", (1, "John", None))
    part = rows(UPDATE, partition_every=60, headers=("change_oper",))[1]
    assert part[:2] == ("U", "20240506T070000_20240506T080000")


def test_names_can_be_chosen() -> None:
    assert ChangeTableFormat().suffix == ".parquet"
    [document] = encoded(UPDATE, prefix="h_", suffix="_changes")
    assert document.blocks[0].target == "usr_changes"
    assert document.blocks[0].columns[0].name == "h_change_seq"


def test_only_chosen_tables_are_told() -> None:
    group = change(Op.DELETE, key="idg=1", row=RowId("hr", "grp", "idg=1"))
    assert [row[1] for row in rows(UPDATE, group, tables=("hr.grp",))] == ["D"]
    assert [row[1] for row in rows(UPDATE, group, tables=("usr",))] == ["B", "U"]


def test_all_tables_share_the_numbers() -> None:
    group = change(Op.DELETE, row=RowId("hr", "grp", "idg=1"))
    [document] = encoded(UPDATE, group, change(Op.DELETE))
    numbers = [[int(row[0][16:]) for row in block.rows] for block in document.blocks]
    assert numbers == [[1, 1, 3], [2]]


REFUSED = Table(name="bad", columns=(Column(name="Header__Change_Seq"), Column(name="a", type="integer", key=1)))
WIDE = Table(name="wide", columns=tuple(Column(name=f"c{n}", key=1 if n == 0 else None) for n in range(1018)))


@pytest.mark.parametrize(
    "row, catalog, said",
    [
        (RowId("hr", "nosuch", "a=1"), CATALOG, "'nosuch' 'a=1': its columns are not known"),
        (RowId(None, "usr", "idu=1"), None, "give a schema file"),
        (RowId(None, "bad", "a=1"), Catalog([REFUSED]), "choose another change_tables.prefix"),
        (
            RowId(None, "wide", "c0=1"),
            Catalog([WIDE]),
            "would have 1025 columns, and a mask has bits for 1024; leave change_mask out of change_tables.headers.",
        ),
        (RowId("hr", "usr", "idu=x"), CATALOG, "column 'idu': 'x' is not a whole number"),
    ],
)
def test_what_has_no_row_is_refused_and_the_rest_goes_on(row: RowId, catalog: Catalog | None, said: str) -> None:
    refusal, *rest = encoded(change(Op.DELETE, row=row), UPDATE, catalog=catalog)
    assert isinstance(refusal, Refusal)
    assert said in refusal.note
    assert refusal.positions == ((1,),)
    assert catalog is not CATALOG or isinstance(rest[0], Document)


def test_with_another_prefix_or_without_a_mask_those_tables_have_rows() -> None:
    assert rows(change(Op.DELETE, row=RowId(None, "bad", "a=1")), catalog=Catalog([REFUSED]), prefix="h_")
    assert rows(change(Op.DELETE, row=RowId(None, "wide", "c0=1")), catalog=Catalog([WIDE]), headers=("change_seq",))


@pytest.mark.parametrize(
    "chosen",
    [
        {"partition_every": -1},
        {"partition_every": 527_041},
        {"suffix": ""},
        {"partition_base": "noon"},
        {"headers": ("timestamp", "timestamp")},
    ],
)
def test_settings_that_make_no_sense_are_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"change_tables.{next(iter(chosen))}"):
        ChangeTableSettings(**chosen)


def test_a_base_time_with_a_zone_is_taken_to_utc_and_a_partition_may_be_as_long_as_a_leap_year() -> None:
    assert ChangeTableSettings(partition_every=366 * 24 * 60).partition_every == 527_040
    assert ChangeTableSettings(partition_base="2026-01-01T02:00:00+02:00").base() == dt.datetime(2026, 1, 1)


changes = st.lists(
    st.builds(
        change,
        st.sampled_from([Op.ADD, Op.DELETE, Op.MODIFY]),
        st.builds(
            Edit, column=st.sampled_from(["fname", "lname"]), old=st.sampled_from("ab"), new=st.sampled_from("ab")
        ),
        key=st.sampled_from(["idu=1", "idu=2", "idu=x"]),
        time=st.none() | st.datetimes(),
    ),
    max_size=12,
)


@shares(rows=0.3, cut=0.05)
@given(changes, st.integers(0, 12), st.integers(1, 5))
def test_cutting_anywhere_and_documents_of_any_size_give_the_same_rows(told: list[Change], cut: int, size: int) -> None:
    told = [replace(one, positions=((number,),)) for number, one in enumerate(told)]
    whole = ChangeTableFormat()
    once = [item for item in encode(whole, told, CATALOG) if isinstance(item, RowsDocument)]
    expected = [row for document in once for row in document.blocks[0].rows]
    small = ChangeTableFormat(rows_of_a_document=size)
    parts = [item for item in encode(small, told[:cut], CATALOG) if isinstance(item, RowsDocument)]
    after = parts[-1].id if parts else ""
    parts += [item for item in encode(small, told[cut:], CATALOG, after) if isinstance(item, RowsDocument)]
    met(rows=expected, cut=bool(after) and len(expected) > len(parts[0].blocks[0].rows))
    assert [row for document in parts for row in document.blocks[0].rows] == expected
    pairs = [(row[0], row[1]) for row in expected]
    assert all(one < two or (one[0] == two[0] and one[1] == "B") for one, two in pairwise(pairs))


def test_a_row_of_a_full_load_is_one_that_came() -> None:
    loaded = change(Op.MODIFY, Edit(column="fname", new="Jack", reset=True), refresh=True)
    assert [(row[1], row[2], row[7:]) for row in rows(loaded)] == [("I", b"\x80\x01", (1, "Jack", None))]


def test_a_full_load_has_the_tables_own_columns_and_no_partitions() -> None:
    table = Table(name="t", columns=(Column(name="id", type="integer", key=1), Column(name="a")))
    choices = (ChangeTableSettings(partition_every=60, headers=("change_oper",)), ChangeTableSettings(headers=()))
    loads = [ChangeTable(table, settings, load=True) for settings in choices]
    assert [[column.name for column in one.columns] for one in loads] == [["id", "a"]] * 2
    assert [one.target for one in loads] == ["t", "t"]


BASE = dt.datetime(1970, 1, 1)


def seq(at: dt.datetime | None) -> str:
    return ChangeSeq(time_digits(at), 1).text


def test_the_name_of_the_manual() -> None:
    found = Partition(start=dt.datetime(2017, 3, 13, 12, 30), end=dt.datetime(2017, 3, 13, 17))
    assert found.name == "20170313T123000_20170313T170000"
    assert read_partition(found.name) == found


@shares(full=0.5)
@given(st.lists(st.datetimes(), min_size=1), st.integers(1, 527_040), st.datetimes())
def test_every_time_lies_in_its_partition_and_they_begin_at_the_base(
    times: list[dt.datetime], minutes: int, base: dt.datetime
) -> None:
    partitions = Partitions(minutes, base)
    met(full=all(partitions.of(seq(at)).start > dt.datetime.min for at in times))
    for at in times:
        found = partitions.of(seq(at))
        hundredth = at.replace(microsecond=at.microsecond // 10_000 * 10_000)
        assert found.start <= hundredth + dt.timedelta(microseconds=9_999)
        assert hundredth <= found.end
        assert found.start == dt.datetime.min or (found.start - base) % dt.timedelta(minutes=minutes) == dt.timedelta()


def test_a_row_without_a_time_stands_in_the_earliest() -> None:
    assert Partitions(60, BASE).of(seq(None)).start == dt.datetime.min


def test_a_partition_is_over_when_a_row_comes_after_it() -> None:
    found = Partitions(60, BASE).of(seq(dt.datetime(2026, 1, 1, 10, 30)))
    assert not found.is_closed_by(seq(dt.datetime(2026, 1, 1, 10, 59, 59, 990_000)))
    assert found.is_closed_by(seq(dt.datetime(2026, 1, 1, 11)))
