"""The element of one change: the reference's examples, NULL, child tables, references, and what cannot be said."""

from __future__ import annotations

import pytest

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Change, Edit, Op, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
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


def test_type_1_is_an_add() -> None:
    assert told(Op.ADD, Edit(column="fname", new="Jack"), Edit(column="photo", new="qqo=")) == (
        '<add class-name="usr" event-id="7">\n'
        "  <association>idu=1,table=usr,schema=indirect</association>\n"
        '  <add-attr attr-name="fname"><value type="string">Jack</value></add-attr>\n'
        '  <add-attr attr-name="photo"><value type="octet">qqo=</value></add-attr>\n'
        "</add>\n"
    )


def test_type_2_removes_the_old_value_and_adds_the_new() -> None:
    assert told(Op.MODIFY, Edit(column="fname", old="Jack", new="John")) == (
        '<modify class-name="usr" event-id="7">\n'
        "  <association>idu=1,table=usr,schema=indirect</association>\n"
        '  <modify-attr attr-name="fname"><remove-value><value type="string">Jack</value></remove-value>'
        '<add-value><value type="string">John</value></add-value></modify-attr>\n'
        "</modify>\n"
    )


def test_types_3_and_5_to_8_remove_all_values() -> None:
    assert inner(Op.MODIFY, Edit(column="photo", old="qqo=", new=b"\xbb\xbb", reset=True)) == [
        (
            '<modify-attr attr-name="photo"><remove-all-values/><add-value><value type="octet">u7s=</value></add-value>'
            "</modify-attr>"
        )
    ]


def test_type_4_is_a_delete_on_one_line() -> None:
    association = "<association>idu=1,table=usr,schema=indirect</association>"
    assert told(Op.DELETE) == f'<delete class-name="usr" event-id="7">{association}</delete>\n'


def test_null_is_left_out_of_an_add_and_the_empty_string_is_a_value() -> None:
    nothing = [Edit(column="fname", new=None), Edit(column="lname", old="x"), Edit(column=PHONE, new=())]
    assert inner(Op.ADD, *nothing) == []
    assert inner(Op.ADD, Edit(column="fname", new="")) == [
        '<add-attr attr-name="fname"><value type="string"></value></add-attr>'
    ]


@pytest.mark.parametrize(
    "edit, expected",
    [
        (Edit(column="fname", old=None, new="b"), '<add-value><value type="string">b</value></add-value>'),
        (Edit(column="fname", old="a", new=None), '<remove-value><value type="string">a</value></remove-value>'),
        (Edit(column="fname", old="a", new=ABSENT), '<remove-value><value type="string">a</value></remove-value>'),
        (Edit(column="fname", old="a", new=None, reset=True), "<remove-all-values/>"),
        (Edit(column="age", old=4, new="5", reset=True), '<remove-all-values/><add-value><value type="int">5</value></add-value>'),
        (Edit(column=PHONE, old=("1", None), new=("2", "3")), ('<remove-value><value type="string">1</value></remove-value>'
         '<add-value><value type="string">2</value><value type="string">3</value></add-value>')),
    ],
)  # fmt: skip
def test_null_in_a_modify(edit: Edit, expected: str) -> None:
    assert inner(Op.MODIFY, edit) == [f'<modify-attr attr-name="{edit.column}">{expected}</modify-attr>']


def test_an_edit_that_expresses_nothing_is_left_out() -> None:
    lines = inner(Op.MODIFY, Edit(column="fname", old=None, new=None), Edit(column="lname", new="b"))
    assert [line.split('"')[1] for line in lines] == ["lname"]


@pytest.mark.parametrize("edits", [(), (Edit(column="fname"),), (Edit(column=PHONE), Edit(column=PHONE))])
def test_a_modify_that_says_nothing_at_all_is_refused(edits: tuple[Edit, ...]) -> None:
    with pytest.raises(ExpressionError, match="nothing to say"):
        told(Op.MODIFY, *edits)


def test_edits_of_a_child_table_stand_together_at_the_place_of_the_first() -> None:
    lines = inner(
        Op.MODIFY,
        Edit(column=PHONE, new="1"),
        Edit(column="fname", new="b"),
        Edit(column=PHONE, old="2"),
        Edit(column="lname"),
        Edit(column=PHONE, old="3", new="4"),
    )
    value = '<value type="string">{}</value>'.format
    assert lines == [
        (
            f'<modify-attr attr-name="{PHONE}"><add-value>{value(1)}</add-value><remove-value>{value(2)}</remove-value>'
            f"<remove-value>{value(3)}</remove-value><add-value>{value(4)}</add-value></modify-attr>"
        ),
        f'<modify-attr attr-name="fname"><add-value>{value("b")}</add-value></modify-attr>',
    ]


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


def test_an_old_value_that_is_not_written_does_no_harm() -> None:
    """A new object has none, and a reset names none; what cannot be written was never listed either."""
    assert len(inner(Op.ADD, Edit(column="age", old="abc", new="5"))) == 1
    assert len(inner(Op.MODIFY, Edit(column="age", old="abc", new="5", reset=True))) == 1
    listed = inner(Op.ADD, Edit(column=PHONE, new=("1", "2")), Edit(column=PHONE, old=("\0", "1")))
    assert [line.count("<value") for line in listed] == [1]


def test_a_reference_names_the_other_object() -> None:
    [line] = inner(Op.ADD, Edit(column="manager", new="2"))
    assert line == (
        '<add-attr attr-name="manager">'
        '<value type="dn" association-ref="idu=2,table=usr,schema=indirect">2</value></add-attr>'
    )


@pytest.mark.parametrize("column", ["seat", "phone", "lost"])
def test_no_association_can_be_made_of_other_references(column: str) -> None:
    """A compound key needs more columns, a child table is no object, and an unknown table has no known key."""
    assert inner(Op.ADD, Edit(column=column, new="2"))[0].count('<value type="string">2</value>') == 1


def test_references_can_be_switched_off() -> None:
    change = Change(
        row=RowId("indirect", "usr", "idu=1"), op=Op.ADD, edits=(Edit(column="manager", new=2),), positions=((1,),)
    )
    assert '<value type="int">2</value>' in XdsFormat(enable_refs=False).fragment(change, CATALOG)


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


def test_reserved_characters_are_escaped_everywhere() -> None:
    row = RowId('s"&', "t<\n", 'k="<&>"')
    text = told(Op.ADD, Edit(column='a"\t', new='<&>\r\n\t"'), row=row)
    assert text == (
        '<add class-name="t&lt;&#10;" event-id="7">\n'
        '  <association>k="&lt;&amp;&gt;",table="t&lt;\n",schema="s\\"&amp;"</association>\n'
        '  <add-attr attr-name="a&quot;&#9;"><value type="string">&lt;&amp;&gt;&#13;\n\t"</value></add-attr>\n'
        "</add>\n"
    )


def test_an_edit_of_several_values_lists_them_without_anything_between() -> None:
    both = '<value type="string">1</value><value type="string">2</value>'
    edit = Edit(column=PHONE, new=("1", "2"))
    assert inner(Op.ADD, edit) == [f'<add-attr attr-name="{PHONE}">{both}</add-attr>']
    taken = Edit(column=PHONE, old=("1", "2"), new=("1", "2"))
    assert inner(Op.MODIFY, taken) == [
        f'<modify-attr attr-name="{PHONE}"><remove-value>{both}</remove-value><add-value>{both}</add-value></modify-attr>'
    ]


def test_an_image_without_a_key_is_refused_in_words() -> None:
    keyless = Change(row=RowId(None, "usr", ""), op=Op.ADD, edits=(), positions=((7,),), whole=True)
    with pytest.raises(ExpressionError) as refused:
        XdsFormat().fragment(keyless, CATALOG)
    assert str(refused.value) == "its key is unknown, and XDS names every object by its key"
