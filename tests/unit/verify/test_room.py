"""Rows that a policy looks up have room one after the other: none is taken for absent because others filled it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from eventlog.core.errors import DataError
from eventlog.core.model import Change, Op, ReadBack, Reason, RowId, Unreadable
from eventlog.verify.expected import ObjectSide, _with_looked


class Room:
    """A reader with room for some rows at a time."""

    def __init__(self, rows: int) -> None:
        self.room = rows

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        full = Unreadable(note="full", reason=Reason.NO_ROOM)
        return {row: {"name": row.key} if place < self.room else full for place, row in enumerate(wanted)}


def side(room: int) -> ObjectSide:
    made = object.__new__(ObjectSide)
    made._reader = cast("Any", Room(room))
    return made


ROWS = [RowId(None, "grp", f"idg={number}") for number in range(5)]


def test_every_row_is_read_in_its_turn() -> None:
    found = side(2)._rows({row: frozenset({"name"}) for row in ROWS})
    assert found == {row: {"name": row.key} for row in ROWS}


def test_a_row_that_never_has_room_is_told_and_not_taken_for_absent() -> None:
    [row] = some = ROWS[:1]
    found = side(0)._rows({row: frozenset({"name"}) for row in some})
    change = Change(row=RowId(None, "usr", "idu=1"), op=Op.ADD, edits=(), positions=((0,),))
    with pytest.raises(DataError, match="full"):
        _with_looked(change, {"name": (row, "name")}, found)
