"""BLOB operations of LINTER's queue, told as changes of the row that owns the BLOB."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.model import Image, Op, Row
from eventlog.sources.linter.emulator import EmulatedOperation, EmulatorSettings
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.settings import ReadingSettings
from tests.support.linter import READING, ended, insert, queued, told

REFERENCE = bytes(range(24))
OWNER: Row = {"ID": 1, "PHOTO": REFERENCE, "NAME": "Ida"}
TOLD: Row = {"ID": 1, "NAME": "Ida"}


def blob(action: Action, piece: bytes = b"", **other: Any) -> EmulatedOperation:
    facts = {"transaction": 1, "table": 19, "rowid": 4, "after": OWNER, "column": "PHOTO", "blob_type": 2, **other}
    return EmulatedOperation(action=action, piece=piece, **facts)


def images(*done: EmulatedOperation, reading: ReadingSettings = READING, **settings: Any) -> list[Image]:
    coding = EmulatorSettings(coding=settings.get("coding", "table"))
    return told(queued([*done, ended(1)], coding, reading), **settings)


def test_a_row_with_a_blob_tells_no_reference_but_tells_null() -> None:
    null = {**OWNER, "PHOTO": None}
    add = EmulatedOperation(transaction=1, action=Action.INSERT, table=19, after=OWNER)
    filled = EmulatedOperation(
        transaction=1, action=Action.UPDATE, table=19, before=null, after={**OWNER, "NAME": "Ann"}
    )
    emptied = EmulatedOperation(transaction=1, action=Action.UPDATE, table=19, before=OWNER, after=null)
    first, second, third = images(add, filled, emptied)
    assert first.after == TOLD
    assert (second.before, second.after) == (TOLD, {"ID": 1, "NAME": "Ann"})
    assert (third.before, third.after) == (TOLD, {"ID": 1, "PHOTO": None, "NAME": "Ida"})


def test_a_cleared_blob_is_null() -> None:
    [image] = images(blob(Action.CLEAR_BLOB))
    assert (image.op, image.table, image.before, image.after) == (Op.MODIFY, "PICTURED", TOLD, {**TOLD, "PHOTO": None})
    assert (image.place, image.last) == (1, True)


def test_a_deleted_blob_of_the_lists_coding_is_null() -> None:
    [image] = told(
        queued([blob(Action.DELETE_BLOB), ended(1, Action.END)], EmulatorSettings(coding="list")),
        coding="list",
        unknown_end="commit",
    )
    assert image.after == {**TOLD, "PHOTO": None}


@pytest.mark.parametrize("action", [Action.CREATE_BLOB, Action.INSERT_BLOB])
def test_content_of_which_nobody_knows_where_it_is_gives_a_fault(action: Action) -> None:
    [image] = images(blob(action, b"piece"))
    assert image.fault is not None
    assert f"The BLOB PHOTO (type 2) was changed by {action}, and where its content is, is not known." in image.fault


def test_neighbouring_operations_on_one_blob_are_one_change() -> None:
    many = [blob(Action.CREATE_BLOB), blob(Action.INSERT_BLOB, b"one"), blob(Action.INSERT_BLOB, b"two")]
    [image, other] = images(*many, insert(1, 9), blob_pieces="part2")
    assert image.after == {**TOLD, "PHOTO": b"onetwo"}
    assert (image.place, other.place, other.last) == (1, 2, True)
    [image] = images(*many, blob(Action.CLEAR_BLOB))
    assert image.after == {**TOLD, "PHOTO": None}
    [image] = images(blob(Action.CLEAR_BLOB), *many[1:], blob_pieces="part2")
    assert image.after == {**TOLD, "PHOTO": b"onetwo"}


def test_a_piece_that_is_put_behind_unknown_content_is_a_fault() -> None:
    [image] = images(blob(Action.INSERT_BLOB, b"one"), blob_pieces="part2")
    assert "is not known" in str(image.fault)


def test_blobs_of_other_rows_are_other_changes() -> None:
    found = images(blob(Action.CLEAR_BLOB), blob(Action.CLEAR_BLOB, rowid=5), blob(Action.CLEAR_BLOB, rowid=5))
    assert [image.place for image in found] == [1, 2]


def test_operations_that_cannot_be_attached_say_why() -> None:
    rows = queued([blob(Action.CLEAR_BLOB), ended(1)])

    def fault(**other: Any) -> str:
        first = type(rows[0])(**{**{name: getattr(rows[0], name) for name in rows[0].__struct_fields__}, **other})
        [image] = told([first, rows[1]])
        return str(image.fault)

    assert "column 1 was changed, and PICTURED is not known to have a BLOB there" in fault(blobatr=0x0201)
    assert "column 9 was changed" in fault(blobatr=9)
    assert "and TABLE_99 is not known" in fault(tabnum_src=99)
    assert "the row that owns it is not known" in fault(len1=0, data=b"")
    assert "LEN1 or LEN2 is negative" in fault(len1=-1)
