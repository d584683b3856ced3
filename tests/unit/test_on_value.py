"""A value that a format cannot say: it is left out, or replaced, or refuses the object; in every format alike."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest

from eventlog.core.model import ABSENT, Change, Document, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import OnValue, encode
from eventlog.qlik.change_tables.format import ChangeTableFormat, WrittenRows
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.xds.values import TimeSyntax
from eventlog.xds.write import XdsFormat
from tests.support.xds_events import XdsStep, read_events

TYPES = {"name": "varchar", "age": "integer", "active": "boolean", "born": "date", "starts": "time"}
TYPES |= {"seen": "timestamp", "photo": "bytea", "share": "double precision"}
PHONE = Child(name="phone", parent_key=("emp_id",), columns=(Column(name="emp_id"), Column(name="number")))
KEY, MAIL = Column(name="id", type="integer", key=1), Column(name="mail", references="emp")
COLUMNS = (KEY, *[Column(name=name, type=type_) for name, type_ in TYPES.items()], MAIL)
CATALOG = Catalog([Table(schema="s", name="emp", columns=COLUMNS, children=(PHONE,))])


def change(op: Op, *edits: Edit, positions: tuple[tuple[int, ...], ...] = ((1,),), key: str = "id=1") -> Change:
    return Change(row=RowId("s", "emp", key), op=op, edits=edits, positions=positions)


def xds(one: Change, on_value: OnValue = "omit", syntax: TimeSyntax = 3) -> tuple[list[str], list[Refusal]]:
    """The attributes that are told, with what comes and goes, and the refusals."""
    made = list(encode(XdsFormat(on_value=on_value, time_syntax=syntax), [one], CATALOG))
    told = [
        attribute.name + "".join(map(_step, attribute.steps))
        for document in made
        if isinstance(document, Document)
        for event in read_events(document.body)
        for attribute in event.attributes
    ]
    return told, [item for item in made if isinstance(item, Refusal)]


def _step(step: XdsStep) -> str:
    """`a` before values that come, `r` before those that go, and `*` where all of them do."""
    if step.action == "remove-all-values":
        return "*"
    return "".join(f"{step.action[0]}{value.text}" for value in step.values)


def message(one: Change, on_value: OnValue = "omit", **settings: Any) -> tuple[dict[str, Any] | None, list[Refusal]]:
    form = MessageFormat(settings=MessageSettings(on_value=on_value, **settings))
    made = list(encode(form, [one], CATALOG))
    values = [item.messages[0].value or b"" for item in made if isinstance(item, MessagesDocument)]
    bodies = [msgspec.json.decode(value)["data"] for value in values]
    return (bodies[0] if bodies else None), [item for item in made if isinstance(item, Refusal)]


def rows(one: Change, on_value: OnValue = "omit") -> tuple[list[dict[str, Any]], list[Refusal]]:
    form = ChangeTableFormat(settings=ChangeTableSettings(on_value=on_value, before_image=False))
    made = list(form.writer(CATALOG)([one]))
    found = [
        dict(zip([column.name for column in item.table.columns][1:], row, strict=True))
        for item in made
        if isinstance(item, WrittenRows)
        for row in item.rows
    ]
    return found, [item for item in made if isinstance(item, Refusal)]


@pytest.mark.parametrize("born", ["1948-12-08", "0001-01-01", "9999-12-31"])
def test_the_default_says_every_date_of_the_calendar(born: str) -> None:
    """Nine of nine employees of a well-known sample database were born before 1970."""
    assert xds(change(Op.ADD, Edit(column="born", new=born))) == ([f"borna{born}"], [])


def test_a_value_is_left_out_and_the_object_is_told() -> None:
    one = change(Op.ADD, Edit(column="name", new="Ann"), Edit(column="born", new="infinity"), positions=((1,), (2,)))
    told, [refusal] = xds(one)
    assert told == ["nameaAnn"]
    assert (refusal.partial, refusal.positions) == (True, ((1,), (2,)))
    assert "'emp' 'id=1': attribute 'born': 'infinity'" in refusal.note
    assert "the value is left out." in refusal.note


@pytest.mark.parametrize(
    "edit",
    [
        Edit(column="born", old="2000-01-01", new="infinity"),
        Edit(column="born", new="infinity", reset=True),  # a row that was read back, as a refresh tells it
        Edit(column="born", old=None, new="infinity", reset=True),
        Edit(column="phone.number", new=("\x01",), reset=True),
    ],
)
def test_what_cannot_be_said_removes_nothing(edit: Edit) -> None:
    """A receiver keeps what it has: each format tells what it would tell of a change that has no word of the attribute."""
    other = Edit(column="name", old="Ann", new="Eve")
    one, without = change(Op.MODIFY, edit, other), change(Op.MODIFY, other)
    told, [refusal] = xds(one)
    assert (told, refusal.partial) == (["namerAnnaEve"], True)
    assert rows(one)[0] == rows(without)[0]
    assert message(one)[0] == message(without)[0]


def test_the_next_value_takes_the_place_of_whatever_a_receiver_has() -> None:
    come = change(Op.MODIFY, Edit(column="born", old="infinity", new="2001-01-01"))
    assert xds(come)[0] == ["born*a2001-01-01"]
    assert xds(change(Op.MODIFY, Edit(column="born", old="infinity", new=None)))[0] == ["born*"]
    [row], _ = rows(come)
    assert row == rows(change(Op.MODIFY, Edit(column="born", new="2001-01-01")))[0][0]


def test_a_value_of_several_comes_and_goes_by_itself() -> None:
    gone = Edit(column="phone.number", old="1", new="2\x01")
    assert xds(change(Op.MODIFY, gone))[0] == ["phone.numberr1"]
    come = Edit(column="phone.number", old="2\x01", new="3")
    assert xds(change(Op.MODIFY, come))[0] == ["phone.numbera3"]
    empty = Edit(column="phone.number", new=(None,), reset=True)
    assert xds(change(Op.MODIFY, empty, Edit(column="born", new="infinity")))[0] == ["phone.number*"]
    lost = Edit(column="phone.number", old="2\x01", new=None)
    assert xds(change(Op.MODIFY, lost))[0] == []


def test_a_row_that_went_is_told_without_what_cannot_be_said_of_it() -> None:
    one = change(Op.DELETE, Edit(column="born", old="infinity"), Edit(column="name", old="Ann"))
    [row], [refusal] = rows(one)
    assert (row["name"], row["born"], refusal.partial) == ("Ann", None, True)


def test_a_change_of_nothing_else_says_nothing_but_why() -> None:
    told, [refusal] = xds(change(Op.MODIFY, Edit(column="born", old="-infinity", new="infinity")))
    assert told == []
    assert refusal.partial
    [found], [_] = rows(change(Op.ADD, Edit(column="born", new="infinity")))
    assert found["born"] is None
    assert message(change(Op.MODIFY, Edit(column="born", old=ABSENT, new="infinity")))[0] is None


def test_several_values_of_a_child_lose_one_only() -> None:
    numbers = ("1", "2\x01", None, "3")
    [told], [refusal] = xds(change(Op.MODIFY, Edit(column="phone.number", new=numbers, reset=True)))
    assert told.endswith("a1a3")
    assert "U+0001" in refusal.note
    [told], _ = xds(change(Op.MODIFY, Edit(column="phone.number", new=("1\x02", "4"), reset=True)), "replace")
    assert told.endswith("a1\ufffda4")


def test_no_more_than_three_values_are_named() -> None:
    bad = [Edit(column=name, new="\x01") for name in ("name", "age", "active", "born", "photo")]
    told, [refusal] = xds(change(Op.ADD, Edit(column="share", new="5"), *bad))
    assert len(told) == 1
    assert refusal.note.count("the value is left out") == 3
    assert refusal.note.endswith("; and 2 more.")


def test_objects_are_refused_where_that_is_asked_for() -> None:
    one = change(Op.ADD, Edit(column="name", new="Ann"), Edit(column="born", new="infinity"))
    for told, refusals in (xds(one, "refuse-object"), rows(one, "refuse-object"), message(one, "refuse-object")):
        assert not told
        assert [refusal.partial for refusal in refusals] == [False]


def test_what_is_wrong_with_a_key_or_a_name_refuses_the_change() -> None:
    edit = Edit(column="born", new="infinity")
    both: list[OnValue] = ["omit", "replace"]
    for on_value in both:
        tries = [
            xds(change(Op.ADD, edit, key="id=\x01"), on_value),
            xds(change(Op.ADD, edit, Edit(column="\x01", new="\x01")), on_value),
            rows(change(Op.ADD, edit, key="id=x"), on_value),
            message(change(Op.ADD, edit, key="id=x"), on_value),
        ]
        for told, refusals in tries:
            assert not told
            assert [refusal.partial for refusal in refusals] == [False]


@pytest.mark.parametrize(
    "column, value, syntax, said",
    [
        ("name", "a\x01b", 3, "a\ufffdb"),
        ("age", "NaN", 3, "NaN"),
        ("active", "2", 3, "true"),
        ("active", 2, 3, "true"),
        ("active", "perhaps", 3, "perhaps"),
        ("born", "infinity", 3, "9999-12-31"),
        ("born", "-infinity", 3, "0001-01-01"),
        ("born", "0044-03-15 BC", 2, "00010101"),
        ("born", "0000-00-00", 3, "0001-01-01"),
        ("born", "1948-12-08", 1, "0"),
        ("seen", "12345-01-01 00:00:00", 3, "9999-12-31 23:59:59.999999999"),
        ("seen", "2200-01-01 00:00:00", 1, "4294967295"),
        ("seen", "23:00", 3, "23:00"),
        ("starts", "24:00:00", 3, "23:59:59.999999999"),
        ("starts", "838:59:59", 2, "235959"),
        ("starts", "soon", 3, "soon"),
    ],
)
def test_the_nearest_value_takes_the_place_of_one(column: str, value: Any, syntax: TimeSyntax, said: str) -> None:
    [told], [refusal] = xds(change(Op.ADD, Edit(column=column, new=value)), "replace", syntax)
    assert told == f"{column}a{said}"
    assert "the nearest possible value takes its place" in refusal.note


def test_a_reference_and_bytes_are_never_replaced() -> None:
    for edit in (Edit(column="mail", new="a\x01"), Edit(column="age", new=b"\0")):
        told, [refusal] = xds(change(Op.ADD, edit), "replace")
        assert told == []
        assert "left out" in refusal.note


@pytest.mark.parametrize(
    "column, value, told",
    [
        ("active", "2", True),
        ("active", "perhaps", None),
        ("born", "infinity", dt.date.max),
        ("born", "soon", None),
        ("seen", "-infinity", dt.datetime.min),
        ("starts", "24:00:00", dt.time.max),
        ("age", "NaN", None),
        ("name", b"\0", None),
        ("share", "much", None),
    ],
)
def test_rows_hold_the_nearest_value(column: str, value: Any, told: Any) -> None:
    [found], [refusal] = rows(change(Op.ADD, Edit(column=column, new=value)), "replace")
    assert found[column] == told
    assert ("left out" in refusal.note) is (told is None)


@pytest.mark.parametrize(
    "column, value, told",
    [("share", float("inf"), 1.7976931348623157e308), ("share", float("nan"), None), ("name", "a\ud800b", "a\ufffdb")],
)
def test_messages_hold_the_nearest_value(column: str, value: Any, told: Any) -> None:
    found, [refusal] = message(change(Op.ADD, Edit(column=column, new=value)), "replace")
    assert found is not None
    assert found[column] == told
    assert refusal.partial


def test_a_message_without_a_value_says_null() -> None:
    found, [refusal] = message(change(Op.ADD, Edit(column="name", new="Ann"), Edit(column="born", new="infinity")))
    assert found is not None
    assert (found["name"], found["born"]) == ("Ann", None)
    assert "column 'born': 'infinity'" in refusal.note
    edits = Edit(column="phone.number", new="1"), Edit(column="name", new="a\ud800")
    found, _ = message(change(Op.ADD, *edits), "replace")
    assert found is not None
    assert found["name"] == "a\ufffd"


def test_a_value_that_is_equal_to_what_takes_its_place_is_replaced_among_several() -> None:
    [told], [refusal] = xds(change(Op.ADD, Edit(column="age", new=("",))), "replace")
    assert told == "agea"
    assert refusal.partial
