"""What a change says of its columns: their values before and after it, which have changed and which are known."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Edit, Op
from eventlog.core.schema import Column, Table
from tests.support.qlik_changes import VIEW, change, images_of

Said = tuple[Any, Any, set[str], set[str]]
KEY = {"idu": 1}
JACK = {"idu": 1, "fname": "Jack"}
JOHN = {"idu": 1, "fname": "John"}
FNAME, BOTH = {"fname"}, {"idu", "fname"}


def name(old: Any = ABSENT, new: Any = ABSENT, *, reset: bool = False) -> Edit:
    return Edit(column="fname", old=old, new=new, reset=reset)


@pytest.mark.parametrize(
    "op, edits, said",
    [
        pytest.param(Op.MODIFY, [name("Jack", "John")], (JACK, JOHN, FNAME, BOTH), id="logged"),
        pytest.param(Op.MODIFY, [name("Jack", None)], (JACK, {**KEY, "fname": None}, FNAME, BOTH), id="NULL"),
        pytest.param(Op.MODIFY, [name(new="John", reset=True)], (KEY, JOHN, FNAME, BOTH), id="read back"),
        pytest.param(Op.MODIFY, [name(None, "John", reset=True)], (KEY, JOHN, FNAME, BOTH), id="replaced"),
        pytest.param(Op.MODIFY, [name("Jack", "John", reset=True)], (JACK, JOHN, FNAME, BOTH), id="replaced, noted"),
        pytest.param(Op.MODIFY, [name("Jack")], (JACK, KEY, set(), BOTH), id="missing after it"),
        pytest.param(Op.MODIFY, [name()], (KEY, KEY, set(), {"idu"}), id="nothing known"),
        pytest.param(Op.MODIFY, [name(reset=True)], (KEY, KEY, set(), {"idu"}), id="nothing known, read back"),
        pytest.param(Op.MODIFY, [name(new="John")], (KEY, JOHN, FNAME, BOTH), id="nothing known before"),
        pytest.param(
            Op.MODIFY,
            [Edit(column="pay", old="1.0", new=Decimal("1.00")), name("Jack", "John")],
            ({**JACK, "pay": Decimal("1.0")}, {**JOHN, "pay": Decimal("1.00")}, FNAME, {*BOTH, "pay"}),
            id="the same",
        ),
        pytest.param(
            Op.MODIFY, [Edit(column="idu", old="1", new="2")], (KEY, {"idu": 2}, {"idu"}, {"idu"}), id="another key"
        ),
        pytest.param(
            Op.MODIFY, [Edit(column="usr_phone.phoneno", new="1")], (KEY, KEY, set(), {"idu"}), id="of a child"
        ),
        pytest.param(Op.ADD, [name(new="Jack")], (None, JACK, BOTH, BOTH), id="added"),
        pytest.param(
            Op.ADD, [Edit(column="usr_phone.phoneno", new="1")], (None, KEY, {"idu"}, {"idu"}), id="a child's"
        ),
        pytest.param(
            Op.DELETE, [name("Jack"), Edit(column="born", old=ABSENT)], (JACK, None, {"idu"}, BOTH), id="deleted"
        ),
        pytest.param(Op.TRUNCATE, [], (None, None, set(), set()), id="emptied"),
    ],
)
def test_rows_hold_what_is_known_and_what_has_changed_is_told(op: Op, edits: list[Edit], said: Said) -> None:
    images = images_of(change(op, *edits, key="" if op is Op.TRUNCATE else "idu=1"))
    assert (images.before, images.after, set(images.changed), set(images.present)) == said


def test_a_views_columns_have_the_names_that_changes_use() -> None:
    images = images_of(change(Op.ADD, name(new="x"), key="pk_empno=7", table="view_usr"), VIEW)
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
        (Op.MODIFY, name(new="1"), "idu=one", "column 'idu': 'one' is not a whole number"),
        (Op.ADD, name(new="1"), "idu=one", "column 'idu': 'one' is not a whole number"),
        (Op.ADD, name(new="1"), 'idu="1 2"', "column 'idu': '1 2' is not a whole number"),
        (Op.ADD, name(new="1"), "nosuch=1", "the key names 'nosuch'"),
    ],
)
def test_what_a_column_cannot_hold_is_refused_with_its_name(op: Op, edit: Edit, key: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        images_of(change(op, edit, key=key))
