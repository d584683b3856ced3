"""What a change says of its columns, and the values that cells of every type become."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.errors import ExpressionError
from eventlog.model import ABSENT, Change, Edit, Op, RowId
from eventlog.qlik.values import TableValues, change_values, typed
from eventlog.qlik.whole import WholeRows
from eventlog.schema import Child, Column, Table

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(64)"),
        Column(name="born", type="date"),
        Column(name="pay", type="numeric(10,2)"),
    ),
    children=(Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="phoneno"),)),),
)
VIEW = Table(
    name="view_usr",
    view=True,
    columns=(Column(name="pk_empno", type="integer"), Column(name="sv_fname"), Column(name="mv_phoneno")),
)
UTC = dt.UTC


def change(op: Op, *edits: Edit, key: str = "idu=1", table: str = "usr", whole: bool = False) -> Change:
    return Change(row=RowId(None, table, key), op=op, edits=edits, positions=((1,),), whole=whole)


def told(*edits: Edit, op: Op = Op.MODIFY, key: str = "idu=1") -> tuple[Any, ...]:
    images = change_values(change(op, *edits, key=key), USR)
    return images.before, images.after, set(images.changed), set(images.present)


def test_logged_fields_give_the_columns_that_they_know() -> None:
    before, after, changed, present = told(Edit(column="fname", old="Jack", new="John"))
    assert before == {"idu": 1, "fname": "Jack"}
    assert after == {"idu": 1, "fname": "John"}
    assert (changed, present) == ({"fname"}, {"idu", "fname"})


def test_null_and_not_captured_stay_apart() -> None:
    before, after, changed, present = told(Edit(column="fname", old="Jack", new=None))
    assert (before["fname"], after) == ("Jack", {"idu": 1, "fname": None})
    assert "born" not in after
    assert (changed, present) == ({"fname"}, {"idu", "fname"})


def test_what_was_captured_and_is_the_same_has_not_changed() -> None:
    edits = Edit(column="pay", old=Decimal("1.0"), new=Decimal("1.00")), Edit(column="fname", old="a", new="b")
    assert told(*edits)[2:] == ({"fname"}, {"idu", "fname", "pay"})


def test_a_column_read_back_has_no_former_value() -> None:
    before, after, changed, _ = told(Edit(column="fname", new="John", reset=True))
    assert (before, after, changed) == ({"idu": 1}, {"idu": 1, "fname": "John"}, {"fname"})


@pytest.mark.parametrize("old, known", [(None, {"idu": 1}), ("Jack", {"idu": 1, "fname": "Jack"})])
def test_a_replaced_field_has_the_former_value_that_was_noted(old: str | None, known: dict[str, object]) -> None:
    assert told(Edit(column="fname", old=old, new="John", reset=True))[0] == known


def test_a_value_that_is_missing_after_it_has_not_changed() -> None:
    before, after, changed, present = told(Edit(column="fname", old="Jack", new=ABSENT))
    assert (before, after) == ({"idu": 1, "fname": "Jack"}, {"idu": 1})
    assert (changed, present) == (set(), {"idu", "fname"})


@pytest.mark.parametrize("reset, before", [(False, {"idu": 1}), (True, {"idu": 1})])
def test_a_value_of_which_nobody_knows_anything_is_not_there(reset: bool, before: dict[str, object]) -> None:
    assert told(Edit(column="fname", reset=reset))[:3] == (before, {"idu": 1}, set())
    assert told(Edit(column="fname", new="John", reset=reset))[:3] == (before, {"idu": 1, "fname": "John"}, {"fname"})


def test_an_added_row_has_changed_in_all_that_is_known() -> None:
    before, after, changed, present = told(Edit(column="fname", new="Jack"), op=Op.ADD)
    assert (before, after) == (None, {"idu": 1, "fname": "Jack"})
    assert changed == present == {"idu", "fname"}


def test_a_deleted_row_is_about_its_key() -> None:
    edits = Edit(column="fname", old="Jack"), Edit(column="born", old=ABSENT)
    before, after, changed, present = told(*edits, op=Op.DELETE)
    assert (before, after, changed, present) == ({"idu": 1, "fname": "Jack"}, None, {"idu"}, {"idu", "fname"})


def test_a_truncated_table_has_no_row() -> None:
    assert told(op=Op.TRUNCATE, key="") == (None, None, set(), set())


def test_a_childs_values_have_no_place_in_a_row() -> None:
    assert told(Edit(column="usr_phone.phoneno", new="1"))[2] == set()
    assert told(Edit(column="usr_phone.phoneno", new="1"), op=Op.ADD)[1] == {"idu": 1}


def test_a_changed_key_that_was_logged_is_seen() -> None:
    before, after, changed, _ = told(Edit(column="idu", old="1", new="2"))
    assert (before, after, changed) == ({"idu": 1}, {"idu": 2}, {"idu"})


def test_a_views_columns_have_the_names_that_changes_use() -> None:
    images = change_values(change(Op.ADD, Edit(column="fname", new="x"), key="pk_empno=7", table="view_usr"), VIEW)
    assert images.after == {"pk_empno": 7, "fname": "x"}


def test_a_key_of_several_columns_or_with_quotes_is_read() -> None:
    table = Table(name="t", columns=(Column(name="A", key=1), Column(name="b", type="integer", key=2)))
    images = change_values(change(Op.DELETE, key='a="x+y"+b=3', table="t"), table)
    assert images.before == {"A": "x+y", "b": 3}


def test_a_table_without_a_key_is_about_all_it_knows() -> None:
    table = Table(name="t", columns=(Column(name="a"), Column(name="b")))
    images = change_values(change(Op.DELETE, Edit(column="a", old="1"), key="", table="t", whole=True), table)
    assert (images.before, set(images.changed)) == ({"a": "1"}, {"a"})


@pytest.mark.parametrize(
    "op, edit, key, said",
    [
        (Op.MODIFY, Edit(column="pay", old="1", new="x"), "idu=1", "column 'pay': 'x' is not a number"),
        (Op.ADD, Edit(column="born", new="soon"), "idu=1", "column 'born': 'soon' is not a time"),
        (Op.ADD, Edit(column="nosuch", new="1"), "idu=1", "'nosuch' is no column of usr"),
        (Op.MODIFY, Edit(column="nosuch", new="1"), "idu=1", "'nosuch' is no column of usr"),
        (Op.ADD, Edit(column="fname", new="1"), "idu=one", "column 'idu': 'one' is not a whole number"),
        (Op.ADD, Edit(column="fname", new="1"), 'idu="1 2"', "column 'idu': '1 2' is not a whole number"),
        (Op.ADD, Edit(column="fname", new="1"), "nosuch=1", "the key names 'nosuch'"),
    ],
)
def test_what_a_column_cannot_hold_is_refused_with_its_name(op: Op, edit: Edit, key: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said.replace("(", r"\(")):
        change_values(change(op, edit, key=key), USR)


READ: list[tuple[str, Any, Any]] = [
    ("varchar(9)", "x", "x"),
    ("varchar(9)", True, "true"),
    ("varchar(9)", False, "false"),
    ("varchar(9)", Decimal("1E+2"), "100"),
    ("varchar(9)", 1.5, "1.5"),
    ("integer", " 7.00 ", 7),
    ("integer", True, 1),
    ("integer", 7.0, 7),
    ("numeric(20,0)", Decimal(7), 7),
    ("numeric(5,2)", "1.50", Decimal("1.50")),
    ("numeric(5,2)", 1.5, Decimal("1.5")),
    ("numeric", Decimal(1), Decimal(1)),
    ("double precision", "1.5", 1.5),
    ("float8", 2.5, 2.5),
    ("real", Decimal("1.5"), 1.5),
    ("boolean", "T", True),
    ("boolean", 0, False),
    ("boolean", True, True),
    ("bit(1)", b"\1", True),
    ("bytea", "qqo=", b"\xaa\xaa"),
    ("bytea", "qq\r\no=", b"\xaa\xaa"),
    ("blob", b"\xaa", b"\xaa"),
    ("date", "2026-01-02", dt.date(2026, 1, 2)),
    ("date", "2026-01-02 00:00:00", dt.date(2026, 1, 2)),
    ("date", dt.date(2026, 1, 2), dt.date(2026, 1, 2)),
    ("time", "10:57:19.25", dt.time(10, 57, 19, 250_000)),
    ("time", "10:57", dt.time(10, 57)),
    ("time", dt.time(1), dt.time(1)),
    ("timestamp", "2026-01-02 03:04:05.123456789", dt.datetime(2026, 1, 2, 3, 4, 5, 123_456)),
    ("timestamp", "2026-01-02 03:04:05+02", dt.datetime(2026, 1, 2, 1, 4, 5)),
    ("timestamp", dt.datetime(2026, 1, 2, tzinfo=UTC), dt.datetime(2026, 1, 2)),
    ("timestamp", dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2)),
    ("timestamp", dt.date(2026, 1, 2), dt.datetime(2026, 1, 2)),
    ("timestamptz", "2026-01-02 03:04:05+02", dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
    ("timestamp with time zone", dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2, tzinfo=UTC)),
]


@pytest.mark.parametrize("kind, cell, value", READ)
def test_a_cell_becomes_the_value_of_its_columns_type(kind: str, cell: Any, value: Any) -> None:
    found = typed(cell, Column(name="c", type=kind))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "kind, cell",
    [
        ("varchar", b"x"),
        ("integer", "1.5"),
        ("integer", 1.5),
        ("integer", float("inf")),
        ("numeric", True),
        ("numeric", "x"),
        ("float8", "x"),
        ("float8", b"x"),
        ("boolean", "maybe"),
        ("boolean", 2),
        ("boolean", b"x"),
        ("bytea", "no base 64!"),
        ("date", "2026-01-02 03:04:05"),
        ("time", "25:00:00"),
        ("time", 7),
        ("timestamp", 7),
        ("timestamp", "2026-02-30"),
        ("timestamp", dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))),
        ("integer", "9" * 5000),
    ],
)
def test_what_is_no_such_value_is_refused(kind: str, cell: Any) -> None:
    with pytest.raises(ExpressionError, match="column 'c'"):
        typed(cell, Column(name="c", type=kind))


@pytest.mark.parametrize("cell", [10**5000, b"x" * 1000], ids=["digits", "bytes"])
def test_a_message_never_repeats_a_large_value(cell: Any) -> None:
    with pytest.raises(ExpressionError) as refused:
        typed(cell, Column(name="c", type="timestamp"))
    assert len(str(refused.value)) < 150


cells: st.SearchStrategy[Any] = (
    st.none() | st.text() | st.integers() | st.floats() | st.decimals() | st.booleans() | st.binary()
)
cells = st.one_of(cells, st.datetimes(), st.dates(), st.times())
kinds = st.sampled_from(
    ["varchar", "integer", "numeric(5,2)", "float8", "boolean", "bytea", "date", "time", "timestamp"]
)


@given(kinds, cells)
def test_a_value_is_read_as_itself_or_refused(kind: str, cell: Any) -> None:
    column = Column(name="c", type=kind)
    try:
        value = typed(cell, column)
    except ExpressionError:
        return
    again = typed(value, column)
    assert again == value or again != again  # noqa: PLR0124  # NaN


cell_of: dict[str, st.SearchStrategy[Any]] = {
    "idu": st.integers(0, 9),
    "fname": st.text(max_size=3),
    "born": st.dates() | st.just("2026-01-01"),
}
cell_of["pay"] = st.decimals(allow_nan=False, places=2, min_value=0, max_value=9) | st.integers(0, 3)


@st.composite
def whole_changes(draw: st.DrawFn) -> Change:
    """Images of a row as sources give them, some columns missing and some values of other types."""
    names = draw(st.lists(st.sampled_from(["fname", "born", "pay", "idu", "usr_phone.phoneno"]), max_size=4))
    edits = []
    for name in names:
        one: st.SearchStrategy[Any] = st.none() | st.just(ABSENT) | cell_of.get(name, st.just("1"))
        edits.append(Edit(column=name, old=draw(one), new=draw(one)))
    key = draw(st.sampled_from(["idu=1", 'idu="1"', "idu=-5", "idu=0007"]))
    return change(draw(st.sampled_from(list(Op))), *edits, key=key, whole=True)


@given(st.lists(whole_changes(), max_size=5))
def test_the_short_way_tells_what_the_long_way_tells(changes: list[Change]) -> None:
    values = TableValues(USR)
    short = WholeRows(values)
    for one in changes:
        quick = short.told(one)
        before, after, *bits = values.told(one)
        if quick is not None:
            assert [quick[0] and list(quick[0]), quick[1] and list(quick[1]), *quick[2:]] == [before, after, *bits]


def test_the_short_way_is_taken_by_whole_rows_of_the_right_types() -> None:
    at, zoned = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=UTC)
    table = Table(
        name="t",
        columns=(
            Column(name="a", key=1),
            Column(name="b", type="timestamp"),
            Column(name="c", type="timestamptz"),
            Column(name="d", type="float8"),
        ),
    )
    short = WholeRows(TableValues(table))
    told = short.told(change(Op.ADD, Edit(column="d", new=1.5), Edit(column="c", new=zoned), key="a=x", table="t"))
    assert told == (None, ("x", None, zoned, 1.5), 13, 0, 13)
    assert short.told(change(Op.ADD, Edit(column="b", new=zoned), key="a=x", table="t")) is None
    assert short.told(change(Op.ADD, Edit(column="b", new=at), key="a=x", table="t")) is not None
    assert short.told(change(Op.ADD, Edit(column="a", new="y"), key="a=x", table="t")) is None
    lonely = WholeRows(TableValues(Table(name="t", columns=(Column(name="a"),))))
    assert lonely.told(change(Op.ADD, key="", table="t")) == (None, (None,), 0, 0, 0)


def test_the_short_way_looks_at_the_values_before_and_after() -> None:
    at, zoned = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=UTC)
    table = Table(name="t", columns=(Column(name="b", type="timestamp"), Column(name="a", key=1), Column(name="c")))
    short, long = WholeRows(TableValues(table)), TableValues(table)

    def told_of(old: Any, new: Any) -> Any:
        edits = Edit(column="b", old=old, new=new), Edit(column="c", old="x", new="y")
        one = change(Op.MODIFY, *edits, key="a=k", table="t", whole=True)
        quick, (before, after, *bits) = short.told(one), long.told(one)
        assert quick is None or (list(quick[0] or ()), list(quick[1] or ()), *quick[2:]) == (before, after, *bits)
        return quick

    assert told_of(at, at)[2:] == (4, 7, 7)
    assert told_of(at, at)[1] == (at, "k", "y")
    assert told_of(None, at)[2] == told_of(at, None)[2] == 5
    assert told_of(zoned, at) is told_of(at, zoned) is told_of("2026-01-01", at) is told_of(at, "2026-01-01") is None
    assert short.told(change(Op.TRUNCATE, key="", table="t", whole=True)) is None
    assert short.told(change(Op.DELETE, Edit(column="b", old=1), key="a=k", table="t", whole=True)) is None


def test_rows_in_the_order_of_the_columns_need_no_order() -> None:
    table = Table(name="t", columns=(Column(name="a", type="int", key=1), Column(name="b")))
    one = change(Op.MODIFY, Edit(column="b", old="x", new="y"), key="a=1", table="t", whole=True)
    assert WholeRows(TableValues(table)).told(one) == ((1, "x"), (1, "y"), 2, 3, 3)
