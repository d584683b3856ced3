"""What becomes of a change when its format cannot say one of its values: the object is published all the same.

A value is left out as if it were NULL, before and after alike: so a receiver has no value there, and what it is told
later fits what it has. Or the nearest value that the format can say takes its place. Looked at only after a format has
failed with a change, so that all others cost nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Final, Literal, Protocol, TypeVar

from msgspec.structs import replace

from eventlog.core.errors import DataError, ExpressionError, value_shown
from eventlog.core.model import ABSENT, Absent, Cell, Change, Edit, Op, Refusal, Value

OnValue = Literal["refuse-object", "omit", "replace"]
Told = Cell | Literal[Absent.ABSENT]
Wrote = TypeVar("Wrote")

NAMED_VALUES: Final = 3
"""Values of which a note says why they could not be said."""


class Sayer(Protocol):
    """What a format knows about single values."""

    def check(self, column: str, value: Value) -> None:
        """ExpressionError says why the value cannot be said in this column."""

    def nearest(self, column: str, value: Value) -> Value:
        """The nearest value that can be said; None where nobody knows one."""


def written_otherwise(
    change: Change, error: DataError, sayer: Sayer | None, on_value: OnValue, write: Callable[[Change], Wrote]
) -> tuple[Refusal, Wrote | None]:
    """What the events are told of a change that a format has failed with, and what it `write`s instead, if anything.

    Nothing is written where the fault is not that of a value, or where objects are to be refused.
    """
    cure = None if sayer is None or on_value == "refuse-object" else _Cure(sayer, replacing=on_value == "replace")
    edits = change.edits if cure is None else tuple([cure.edit(edit) for edit in change.edits])
    if cure is None or not cure.faults:
        return refused(change, error), None
    if change.op is Op.MODIFY:
        edits = tuple([edit for edit in edits if _says(edit)])
    told = refused(change, cure.summary(), partial=True)
    if not edits and change.op is Op.MODIFY:
        return told, None
    try:
        return told, write(replace(change, edits=edits))
    except DataError as other:
        return refused(change, other), None


def refused(change: Change, error: DataError, *, partial: bool = False) -> Refusal:
    """Which object cannot be told, or not with all its values, and why."""
    note = f"{value_shown(change.row.table)} {value_shown(change.row.key)}: {str(error).removesuffix('.')}."
    return Refusal(positions=change.positions, note=note, partial=partial)


class _Cure:
    """Goes through the values of one change; `faults` say what was done about which."""

    def __init__(self, sayer: Sayer, *, replacing: bool) -> None:
        self.faults: dict[str, None] = {}
        self._sayer = sayer
        self._replacing = replacing

    def edit(self, edit: Edit) -> Edit:
        """The edit with values that can be said."""
        old, new = self._cell(edit.column, edit.old), self._cell(edit.column, edit.new)
        return edit if old is edit.old and new is edit.new else replace(edit, old=old, new=new)

    def summary(self) -> ExpressionError:
        """What was wrong, as one error."""
        told = list(self.faults)
        more = f"; and {len(told) - NAMED_VALUES} more" if len(told) > NAMED_VALUES else ""
        return ExpressionError("; ".join(told[:NAMED_VALUES]) + more)

    def _cell(self, column: str, cell: Told) -> Told:
        if cell is None or cell is ABSENT:
            return cell
        if not isinstance(cell, tuple):
            return self._value(column, cell)
        values = [self._value(column, value) for value in cell if value is not None]
        return tuple([value for value in values if value is not None])

    def _value(self, column: str, value: Value) -> Value:
        fault = self._fault(column, value)
        if fault is None:
            return value
        instead = self._sayer.nearest(column, value) if self._replacing else None
        if instead is not None and self._fault(column, instead) is not None:
            instead = None
        done = "the value is left out" if instead is None else "the nearest value that can be said takes its place"
        self.faults[f"{fault}: {done}"] = None
        return instead

    def _fault(self, column: str, value: Value) -> ExpressionError | None:
        try:
            self._sayer.check(column, value)
        except ExpressionError as error:
            return error
        return None


def _says(edit: Edit) -> bool:
    """Whether there is anything left in an edit."""
    return edit.reset or not (edit.old in _NOTHING and edit.new in _NOTHING)


_NOTHING: Final = (None, ABSENT, ())


class BeyondSide(Enum):
    """On which side of all times that can be said a time lies."""

    EARLY = "early"
    LATE = "late"


_early = re.compile(r"-.*|.* BC|0000-.*", re.IGNORECASE).fullmatch
_late = re.compile(r"infinity|\d{5,}-.*|24:00.*|\d{3,}:.*", re.IGNORECASE).fullmatch


def side_of(value: Value) -> BeyondSide | None:
    """Where a time lies that is none of the years 1 to 9999, or none of the hours of a day; None where nobody knows."""
    text = value.strip(" ") if isinstance(value, str) else ""
    return BeyondSide.EARLY if _early(text) else BeyondSide.LATE if _late(text) else None
