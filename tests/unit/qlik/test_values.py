"""What a change says of its columns, and the values that cells of every type become."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Edit, Op
from eventlog.core.schema import Column, Table
from tests.support.qlik_changes import VIEW, change, images_of


def told(*edits: Edit, op: Op = Op.MODIFY, key: str = "idu=1") -> tuple[Any, ...]:
    images = images_of(change(op, *edits, key=key))
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
    images = images_of(change(Op.ADD, Edit(column="fname", new="x"), key="pk_empno=7", table="view_usr"), VIEW)
    assert images.after == {"pk_empno": 7, "fname": "x"}


def test_a_key_of_several_columns_or_with_quotes_is_read() -> None:
    table = Table(name="t", columns=(Column(name="A", key=1), Column(name="b", type="integer", key=2)))
    images = images_of(change(Op.DELETE, key='a="x+y"+b=3', table="t"), table)
    assert images.before == {"A": "x+y", "b": 3}


def test_a_table_without_a_key_is_about_all_it_knows() -> None:
    table = Table(name="t", columns=(Column(name="a"), Column(name="b")))
    images = images_of(change(Op.DELETE, Edit(column="a", old="1"), key="", table="t", whole=True), table)
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
        images_of(change(op, edit, key=key))
