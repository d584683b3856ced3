"""The element of one change: the reference's examples, NULL, child tables, references, and what cannot be said."""

from __future__ import annotations

from itertools import product

import pytest

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import Written
from eventlog.xds.write import XdsFormat

USR = Table(
    name="usr",
    schema="indirect",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname"),
        Column(name="lname"),
        Column(name="photo", type="long raw"),
        Column(name="age", type="integer"),
        Column(name="manager", type="integer", references="usr"),
        Column(name="seat", references="seat"),
        Column(name="phone", references="usr_phone"),
        Column(name="lost", references="nowhere"),
    ),
    children=(Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="phoneno"),)),),
)
SEAT = Table(name="seat", columns=(Column(name="row", key=1), Column(name="place", key=2)))
CATALOG = Catalog((USR, SEAT))
PHONE = "usr_phone.phoneno"
ROW = RowId("indirect", "usr", "idu=1")


def told(op: Op, *edits: Edit, row: RowId = ROW, catalog: Catalog | None = CATALOG) -> str:
    return XdsFormat().fragment(Change(row=row, op=op, edits=edits, positions=((7,),)), catalog)


def inner(op: Op, *edits: Edit, catalog: Catalog | None = CATALOG) -> list[str]:
    """The attributes' lines."""
    return [line.strip() for line in told(op, *edits, catalog=catalog).splitlines()[2:-1]]


@pytest.mark.parametrize("edits", [(), (Edit(column="fname"),), (Edit(column=PHONE), Edit(column=PHONE))])
def test_a_modify_that_says_nothing_at_all_is_refused(edits: tuple[Edit, ...]) -> None:
    with pytest.raises(ExpressionError, match="nothing to say"):
        told(Op.MODIFY, *edits)


def test_an_add_lists_what_remains_of_a_child_table() -> None:
    edits = [
        Edit(column=PHONE, new="gone"),
        Edit(column=PHONE, new="x", reset=True),
        Edit(column=PHONE, new=("1", "2", "1")),
        Edit(column=PHONE, old="1"),
        Edit(column=PHONE, old="never listed"),
        Edit(column=PHONE, old="x", new="3"),
    ]
    values = "".join(f'<value type="string">{value}</value>' for value in "213")
    assert inner(Op.ADD, *edits) == [f'<add-attr attr-name="{PHONE}">{values}</add-attr>']
    assert inner(Op.ADD, *edits[:1], Edit(column=PHONE, reset=True)) == []


@pytest.mark.parametrize("column", ["seat", "phone", "lost"])
def test_no_association_can_be_made_of_other_references(column: str) -> None:
    """A compound key needs more columns, a child table is no object, and an unknown table has no known key."""
    assert inner(Op.ADD, Edit(column=column, new="2"))[0].count('<value type="string">2</value>') == 1


def test_a_key_column_keeps_its_type_and_an_undescribed_one_is_a_string() -> None:
    assert 'type="int">5<' in inner(Op.ADD, Edit(column="idu", new="5"))[0]
    assert 'type="string">5<' in inner(Op.ADD, Edit(column="nosuch", new="5"))[0]
    assert 'type="string">5<' in inner(Op.ADD, Edit(column="idu", new="5"), catalog=None)[0]
    assert 'type="octet">qqo=<' in inner(Op.ADD, Edit(column="photo", new=b"\xaa\xaa"), catalog=None)[0]


@pytest.mark.parametrize(
    "edit, words",
    [
        (Edit(column="age", new="abc"), "attribute 'age': 'abc' is not a whole number"),
        (Edit(column="age", old="", new="5"), "attribute 'age': '' is not a whole number"),
        (Edit(column=PHONE, new="a\x01"), r"attribute 'usr_phone.phoneno': character 2 is U\+0001"),
        (Edit(column="fname", old="\ud800", new="b"), r"attribute 'fname': character 1 is U\+D800"),
        (Edit(column="a\uffff", new="b"), r"the name of attribute 'a\\uffff': character 2 is U\+FFFF"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(edit: Edit, words: str) -> None:
    for op in (Op.ADD, Op.MODIFY) if edit.old is ABSENT else (Op.MODIFY,):
        with pytest.raises(ExpressionError, match=words):
            told(op, edit)


def test_a_key_or_table_that_xml_cannot_carry_is_refused_by_name() -> None:
    with pytest.raises(ExpressionError, match=r"^the key: character 5 is U\+0000"):
        told(Op.DELETE, row=RowId(None, "usr", "idu=\0"))
    with pytest.raises(ExpressionError, match=r"^the name of table 'u\\x1fsr': character 2 is U\+001F"):
        told(Op.DELETE, row=RowId(None, "u\x1fsr", "idu=1"))


def test_an_image_without_a_key_is_refused_in_words() -> None:
    keyless = Change(row=RowId(None, "usr", ""), op=Op.ADD, edits=(), positions=((7,),), whole=True)
    with pytest.raises(ExpressionError) as refused:
        XdsFormat().fragment(keyless, CATALOG)
    assert str(refused.value) == "its key is unknown, and XDS names every object by its key"


def test_rows_are_written_the_same_however_many_came_before() -> None:
    """What stands between the values is remembered for a set of columns, and forgotten where there are too many."""
    names = [f"c{number}" for number in range(11)]
    catalog = Catalog([Table(name="t", columns=(Column(name="k", key=1), *(Column(name=name) for name in names)))])

    def write_rows(rows: list[tuple[str | None, ...]]) -> list[str]:
        changes = [
            Change(
                row=RowId(None, "t", "k=1"),
                op=Op.ADD,
                edits=tuple([Edit(column=name, new=value) for name, value in zip(names, row, strict=True)]),
                positions=((1,),),
            )
            for row in rows
        ]
        return [one.text for one in XdsFormat().writer(catalog)(changes) if isinstance(one, Written)]

    rows = [row for row in product((None, "a & b"), repeat=len(names)) for _ in range(3)]
    assert write_rows(rows) == [text for row in rows[::3] for text in write_rows([row]) * 3]


@pytest.mark.parametrize("phones", [(None,), ("1", None), ("1", "2"), None, 5, "a\0"])
def test_a_child_tables_values_are_written_as_in_the_first_row(phones: object) -> None:
    row = [Edit(column="fname", new="Jack"), Edit(column=PHONE, new=phones)]  # type: ignore[arg-type] # any cell
    plain = [Edit(column="fname", new="Jack"), Edit(column=PHONE, new=("7",))]
    changes = [
        Change(row=ROW, op=Op.ADD, edits=tuple(edits), positions=((number,),))
        for number, edits in enumerate((plain, plain, row), 1)
    ]
    _, _, *last = XdsFormat().writer(CATALOG)(changes)
    assert last == list(XdsFormat().writer(CATALOG)(changes[-1:]))


@pytest.mark.parametrize("value, is_written", [(None, True), ("x", False)])
def test_the_name_of_a_column_without_a_value_is_not_written(value: str | None, is_written: bool) -> None:
    """Also where rows with the same columns came before."""
    row = (Edit(column="fname", new="Jack"), Edit(column="a\0", new=value), Edit(column="b\0", new=value))
    changes = [Change(row=ROW, op=Op.ADD, edits=row, positions=((number,),)) for number in range(1, 4)]
    told = list(XdsFormat().writer(CATALOG)(changes))
    assert [isinstance(one, Written) for one in told] == [is_written] * 3
    assert all("name of attribute 'a" in one.note for one in told if isinstance(one, Refusal))
