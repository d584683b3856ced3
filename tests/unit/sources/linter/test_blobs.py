"""BLOB operations of LINTER's queue, told as changes of the row that owns the BLOB."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.model import Image, Op, Row
from eventlog.core.rules.meaning import Options
from eventlog.core.seams import Written
from eventlog.sources.linter.images import CommittedRows
from eventlog.sources.linter.operations import Action, Coding
from eventlog.sources.stream.images import decide_images
from eventlog.xds.write import XdsFormat
from eventlog_streams_tools.linter.emulator import EmulatedOperation, EmulatorSettings
from tests.support.linter import READING, SCHEMA, ended, insert, queued, told

OWNER: Row = {"ID": 1, "PHOTO": bytes(range(24)), "NAME": "Ida"}
TOLD: Row = {"ID": 1, "NAME": "Ida"}
"""As the owner is told: the reference of its BLOB is none of its values."""
CLEAR, CREATE, INSERT = Action.CLEAR_BLOB, Action.CREATE_BLOB, Action.INSERT_BLOB


def blob(action: Action, piece: bytes = b"", rowid: int = 4) -> EmulatedOperation:
    return EmulatedOperation(
        transaction=1,
        action=action,
        table=19,
        rowid=rowid,
        after=OWNER,
        column="PHOTO",
        blob_type=2,
        piece=piece,
    )


def images(*done: EmulatedOperation, **settings: Any) -> list[Image]:
    return told(queued([*done, ended(1)], EmulatorSettings(coding="table")), **settings)


def test_a_row_with_a_blob_tells_no_reference_but_tells_null() -> None:
    null = {**OWNER, "PHOTO": None}
    done = (
        (Action.INSERT, {"after": OWNER}),
        (Action.UPDATE, {"before": null, "after": {**OWNER, "NAME": "Ann"}}),
        (Action.UPDATE, {"before": OWNER, "after": null}),
    )
    first, second, third = images(
        *[EmulatedOperation(transaction=1, action=action, table=19, **rows) for action, rows in done]
    )
    assert first.after == TOLD
    assert (second.before, second.after) == (TOLD, {"ID": 1, "NAME": "Ann"})
    assert (third.before, third.after) == (TOLD, null)


@pytest.mark.parametrize(
    "action, coding, end",
    [(CLEAR, "table", Action.COMMIT), (Action.DELETE_BLOB, "list", Action.END)],
)
def test_a_cleared_or_deleted_blob_is_null(action: Action, coding: Coding, end: Action) -> None:
    rows = queued([blob(action), ended(1, end)], EmulatorSettings(coding=coding))
    [image] = told(rows, coding=coding, unknown_end="commit")
    assert (image.op, image.table, image.place, image.last) == (Op.MODIFY, "PICTURED", 1, True)
    assert (image.before, image.after) == (TOLD, {**TOLD, "PHOTO": None})


def test_a_cleared_blob_removes_all_values_of_its_attribute() -> None:
    rows = CommittedRows(SCHEMA, READING)
    found = list(rows.images(queued([blob(CLEAR), ended(1)], EmulatorSettings(coding="table"))))
    decision = decide_images(found, rows.catalog, Options())
    [written] = XdsFormat().writer(rows.catalog)(decision.changes)
    assert isinstance(written, Written)
    assert '<modify-attr attr-name="PHOTO"><remove-all-values/></modify-attr>' in written.text
    assert "NAME" not in written.text


@pytest.mark.parametrize("action, pieces", [(CREATE, "unknown"), (INSERT, "unknown"), (INSERT, "part2")])
def test_content_of_which_nobody_knows_where_it_is_gives_a_fault(action: Action, pieces: str) -> None:
    [image] = images(blob(action, b"piece"), blob_pieces=pieces)
    assert f"The BLOB PHOTO (type 2) was changed by {action}, and where its content is, is not known." in str(
        image.fault
    )


def test_neighbouring_operations_on_one_blob_are_one_change() -> None:
    many = [blob(CREATE), blob(INSERT, b"one"), blob(INSERT, b"two")]
    [image, other] = images(*many, insert(1, 9), blob_pieces="part2")
    assert image.after == {**TOLD, "PHOTO": b"onetwo"}
    assert (image.place, other.place, other.last) == (1, 2, True)
    [image] = images(*many, blob(CLEAR))
    assert image.after == {**TOLD, "PHOTO": None}
    [image] = images(blob(CLEAR), *many[1:], blob_pieces="part2")
    assert image.after == {**TOLD, "PHOTO": b"onetwo"}


def test_blobs_of_other_rows_are_other_changes() -> None:
    found = images(blob(CLEAR), blob(CLEAR, rowid=5), blob(CLEAR, rowid=5))
    assert [image.place for image in found] == [1, 2]


@pytest.mark.parametrize(
    "other, said",
    [
        ({"blobatr": 0x0201}, "column 1 was changed, and PICTURED is not known to have a BLOB there"),
        ({"blobatr": 9}, "column 9 was changed"),
        ({"tabnum_src": 99}, "and TABLE_99 is not known"),
        ({"len1": 0, "data": b""}, "the row that owns it is not known"),
        ({"len1": -1}, "LEN1 or LEN2 is negative"),
    ],
)
def test_operations_that_cannot_be_attached_say_why(other: dict[str, Any], said: str) -> None:
    first, end = queued([blob(CLEAR), ended(1)])
    [image] = told([replace(first, **other), end])
    assert said in str(image.fault)
