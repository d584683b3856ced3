"""From images to changes: one change each, its key in canonical form, and an outcome where nothing can be told."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.model import ABSENT, Change, Edit, Image, Op, Reason, Refusal, Row, RowId, Transaction
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.sources.stream.images import decide_images, key_text, part_image
from eventlog.xds.write import XdsFormat

T1 = Table(name="t1", schema="shop", columns=(Column(name="id", type="integer", key=1), Column(name="c")))
CATALOG = Catalog([T1, Table(name="bare", columns=(Column(name="c"),))])
COMMITTED = Transaction(id=7, time=dt.datetime(2026, 1, 1, 12))
ONE: Row = {"id": 1, "c": "a"}


def image(op: Op, before: Row | None = None, after: Row | None = None, **facts: Any) -> Image:
    return Image(position=(9, 3, 0), **({"table": "shop.t1", "op": op, "before": before, "after": after} | facts))


def only_change(one: Image) -> Change:
    (change,) = decide_images([one], CATALOG, Options()).changes
    return change


def only_reason(one: Image, options: Options | None = None) -> tuple[Reason, str | None]:
    told = decide_images([one], CATALOG, options or Options())
    assert told.changes == []
    return told.outcomes.others[one.position].reason, told.outcomes.others[one.position].note


def test_an_update_tells_the_columns_of_both_images_and_what_is_known_of_its_transaction() -> None:
    before: Row = {**ONE, "gone": "x"}
    after: Row = {"id": 1, "c": "b", "come": None}
    known: dict[str, Any] = {"transaction": COMMITTED, "stream": "11:0x1746050", "time": COMMITTED.time}
    assert only_change(image(Op.MODIFY, before, after, place=2, last=True, **known)) == Change(
        row=RowId("shop", "t1", "id=1"),
        op=Op.MODIFY,
        edits=(
            Edit(column="c", old="a", new="b"),
            Edit(column="come", old=ABSENT, new=None, reset=True),
            Edit(column="gone", old="x", new=ABSENT),
        ),
        positions=((9, 3, 0),),
        whole=True,
        **known,
    )


@pytest.mark.parametrize(
    "one, row, edits",
    [
        (image(Op.MODIFY, ONE, {"id": 2, "c": "b"}), "id=2", (Edit(column="c", old="a", new="b"),)),
        (image(Op.ADD, None, ONE), "id=1", (Edit(column="c", new="a"),)),
        (image(Op.DELETE, ONE), "id=1", (Edit(column="c", old="a"),)),
        (image(Op.TRUNCATE), "", ()),
        (image(Op.ADD, None, {"c": "a"}, table="bare"), "", (Edit(column="c", new="a"),)),
    ],
)
def test_an_object_is_named_by_the_key_that_it_has_afterwards(one: Image, row: str, edits: tuple[Edit, ...]) -> None:
    change = only_change(one)
    assert (change.row.key, change.edits) == (row, edits)


@pytest.mark.parametrize(
    "one, note",
    [
        (image(Op.ADD, None, {"id": None}), "The key column id of t1 is NULL, so the row cannot be named."),
        (image(Op.ADD, None, {"c": "a"}), "The key column id of t1 was not captured, so the row cannot be named."),
        (image(Op.MODIFY), "The change of t1 came without an image of its row."),
        (image(Op.ADD, None, {}, table="t9"), "t9 is not among the captured tables."),
        (image(Op.ADD, None, {}, fault="c: packed digit 101 at byte 4"), "c: packed digit 101 at byte 4"),
    ],
)
def test_what_cannot_be_told_is_invalid_and_says_why(one: Image, note: str) -> None:
    assert only_reason(one) == (Reason.INVALID, note)
    assert decide_images([one], None, Options()).outcomes.others[one.position].reason is Reason.INVALID


def test_our_own_changes_are_loopback_unless_they_are_allowed() -> None:
    mine = image(Op.TRUNCATE, perpetrator="IDM")
    assert only_reason(mine, Options(user="idm")) == (Reason.LOOPBACK, None)
    assert len(decide_images([mine], CATALOG, Options(user="idm", allow_loopback=True)).changes) == 1
    assert len(decide_images([image(Op.TRUNCATE, perpetrator="x")], CATALOG, Options(user="idm")).changes) == 1


def test_a_changed_key_is_the_end_of_one_object_and_the_beginning_of_another() -> None:
    assert part_image(image(Op.MODIFY, ONE, {"id": 2, "c": "a"}, last=True), ["id"]) == (
        image(Op.DELETE, ONE),
        Image(position=(9, 3, 1), op=Op.ADD, table="shop.t1", after={"id": 2, "c": "a"}, last=True),
    )


@pytest.mark.parametrize(
    "one",
    [
        image(Op.MODIFY, ONE, {"id": 1, "c": "b"}),
        image(Op.MODIFY, ONE, None),
        image(Op.MODIFY, None, ONE),
        image(Op.DELETE, ONE),
    ],
)
def test_all_else_stays_one(one: Image) -> None:
    assert part_image(one, ["id"]) == (one,)


@pytest.mark.parametrize(
    "value, text",
    [
        ("a+b", 'k="a+b"'),
        (True, "k=true"),
        (False, "k=false"),
        (Decimal("1E+2"), "k=100"),
        (b"\0\xff", 'k="AP8="'),
        (dt.date(2026, 1, 2), "k=2026-01-02"),
        (12, "k=12"),
    ],
)
def test_keys_are_written_as_a_log_has_them(value: Any, text: str) -> None:
    assert key_text({"k": value}, ["k"], "t") == text


def test_xds_says_only_what_changed_and_refuses_what_it_has_no_words_for() -> None:
    images = [
        image(Op.MODIFY, {**ONE, "d": "x"}, {"id": 1, "c": "b", "d": "x"}),
        image(Op.MODIFY, ONE, ONE),
        image(Op.TRUNCATE),
        image(Op.ADD, None, {"c": "a"}, table="bare"),
    ]
    made = list(encode(XdsFormat(), decide_images(images, CATALOG, Options()).changes, CATALOG))
    text, emptied, nameless = [one.note if isinstance(one, Refusal) else one.body.decode() for one in made]
    assert 'attr-name="c"' in text
    assert 'attr-name="d"' not in text
    assert "no word for emptying a table" in emptied
    assert "its key is unknown" in nameless
