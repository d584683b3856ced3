"""What becomes of a change when its format cannot write one of its values: the object is published
all the same.

An attribute with a value that is left out is not sent at all: a receiver keeps what it has, for
nothing is removed that nobody has removed. Or the nearest value that the format has is sent
instead, or the object is refused. A former value refuses nothing: it is left out, of an object that
goes too. Where the change that brought it was refused, the receiver lacks all that this change
brought: everything that the next one says takes the place of what the receiver has, and a publisher
reads back what that one does not say; also of a change that shows no former values, which may be such a
correction. Looked at only after a format has failed with a change, so that all others cost nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from operator import is_
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from eventlog.core.errors import DataError, ExpressionError, value_shown
from eventlog.core.model import ABSENT, CellOrAbsent, Change, Edit, Op, Refusal, Value
from eventlog.core.seams import OnValue

Wrote = TypeVar("Wrote")

NAMED_VALUES: Final = 3
"""Values of which a note says why they could not be written."""


class Sayer(Protocol):
    """What a format knows about single values."""

    def check(self, column: str, value: Value) -> None:
        """Raise ExpressionError if the column cannot hold the value."""

    def nearest(self, column: str, value: Value) -> Value:
        """Return the nearest possible value; None if there is none."""

    def holds_several(self, column: str) -> bool:
        """Return True if the column holds several values, added and removed one by one.

        ExpressionError if its name cannot be written: the change is then refused.
        """


def write_otherwise(
    change: Change,
    error: DataError,
    sayer: Sayer | None,
    on_value: OnValue,
    write: Callable[[Change], Wrote],
) -> tuple[Refusal, Wrote | None]:
    """Refuse a change its format failed on; return the refusal and the reduced change's text.

    Nothing is written if the fault is not a value's, or if objects with such values are to be
    refused.
    """
    if sayer is None:
        return refuse(change, error), None
    cure = _Cure(sayer, on_value)
    try:
        edits = cure.edits(change)
        # No single value is at fault, so leaving some out would not help.
        if not cure.faults or (cure.is_now and on_value == "refuse-object"):
            return refuse(change, error), None
        partial = refuse(change, cure.summary(), partial=True, lacks=cure.is_correction(change))
        if not edits and change.op is Op.MODIFY:
            # nothing is left of it; of an object that comes or goes its key is
            return partial, None
        return partial, write(replace(change, edits=edits))
    except DataError as other:
        return refuse(change, other), None


def refuse(change: Change, error: DataError, *, partial: bool = False, lacks: bool = False) -> Refusal:
    """Refuse an object, or some of its values, with the reason."""
    reason = str(error).removesuffix(".")
    note = f"{value_shown(change.row.table)} {value_shown(change.row.key)}: {reason}."
    return Refusal(positions=change.positions, note=note, partial=partial, lacks=lacks)


class _Cure:
    """Goes through the values of one change; `faults` say what was done about which."""

    def __init__(self, sayer: Sayer, on_value: OnValue) -> None:
        self.faults: dict[str, None] = {}
        self.is_now = self.was_before = False
        """Whether a value is at fault that the object has now, and one that it had before."""
        self._sayer = sayer
        self._replacing = on_value == "replace"
        self._refusing = on_value == "refuse-object"

    def edits(self, change: Change) -> tuple[Edit, ...]:
        """Return the edits reduced to possible values."""
        cured = [self._edit(edit, change.op) for edit in change.edits]
        edits = [edit for edit in cured if edit is not None]
        if self.is_correction(change):
            edits = [self._renew(edit) for edit in edits]
        return tuple(edits)

    def is_correction(self, change: Change) -> bool:
        """Return True if the change that brought a value was refused, with all it brought."""
        return change.op is Op.MODIFY and self.was_before and self._refusing

    def _renew(self, edit: Edit) -> Edit:
        """Let the edit's new value replace whatever a receiver has."""
        if edit.new is ABSENT or self._sayer.holds_several(edit.column):
            return edit
        return replace(edit, old=ABSENT, reset=True)

    def _edit(self, edit: Edit, op: Op) -> Edit | None:
        """Reduce the edit to possible values; None if none are left."""
        old = self._cell(edit.column, edit.old)
        new = self._cell(edit.column, edit.new)
        self.was_before |= old is not edit.old
        self.is_now |= new is not edit.new
        if old is edit.old and new is edit.new:
            return edit
        without_old = old is ABSENT and edit.old is not ABSENT
        without_new = new is ABSENT and edit.new is not ABSENT
        if not self._sayer.holds_several(edit.column):
            if without_new or (without_old and op is Op.DELETE):
                return None
            # The receiver has some former value, for the one that could not be written has not
            # taken its place.
            reset = edit.reset or (without_old and op is Op.MODIFY)
            return replace(edit, old=old, new=new, reset=reset)
        # Of several values each comes by itself: None says that no new one does.
        if without_new:
            new = None
        if _says(old, new):
            return replace(edit, old=old, new=new)
        return None

    def summary(self) -> ExpressionError:
        """Sum up the faults in one error."""
        faults = list(self.faults)
        more = ""
        if len(faults) > NAMED_VALUES:
            more = f"; and {len(faults) - NAMED_VALUES} more"
        return ExpressionError("; ".join(faults[:NAMED_VALUES]) + more)

    def _cell(self, column: str, cell: CellOrAbsent) -> CellOrAbsent:
        """Reduce a cell to possible values; ABSENT if none are left."""
        if cell is None or cell is ABSENT:
            return cell
        if not isinstance(cell, tuple):
            value = self._value(column, cell)
            return ABSENT if value is None else value
        values = [value for value in cell if value is not None]
        sayable = [self._value(column, value) for value in values]
        cured = [value for value in sayable if value is not None]
        # By identity: what takes the place of a value may be equal to it, as text that is no number
        # to the same as text.
        if len(cured) == len(values) and all(map(is_, cured, values)):
            return cell
        return tuple(cured) or ABSENT

    def _value(self, column: str, value: Value) -> Value:
        fault = self._fault(column, value)
        if fault is None:
            return value
        instead: Value = None
        done = "the value is left out"
        if self._replacing:
            instead = self._sayer.nearest(column, value)
        if instead is not None and self._fault(column, instead) is not None:
            instead = None  # what is nearest by its type may still be too long, or the like
        if instead is not None:
            done = "the nearest possible value takes its place"
        self.faults[f"{fault}: {done}"] = None
        return instead

    def _fault(self, column: str, value: Value) -> ExpressionError | None:
        try:
            self._sayer.check(column, value)
        except ExpressionError as error:
            return error
        return None


def _says(old: CellOrAbsent, new: CellOrAbsent) -> bool:
    """Return True if an edit still has a value."""
    return not (old in _NOTHING and new in _NOTHING)


_NOTHING: Final = (None, ABSENT, ())


class BeyondSide(Enum):
    """On which side of all times that can be written a time lies."""

    EARLY = "early"
    LATE = "late"


# As databases write what lies before the year 1: PostgreSQL with a sign or BC, MariaDB as the year
# 0.
_early = re.compile(r"-.*|.* BC|0000-.*", re.IGNORECASE).fullmatch
# After the year 9999, PostgreSQL's infinity, and hours of a day that no clock has.
_late = re.compile(r"infinity|\d{5,}-.*|24:00.*|\d{3,}:.*", re.IGNORECASE).fullmatch


def side_of(value: Value) -> BeyondSide | None:
    """Return the side of the years 1 to 9999, or of a day's hours, a time is beyond; None if
    unknown.
    """
    if not isinstance(value, str):
        return None
    text = value.strip(" ")
    if _early(text):
        return BeyondSide.EARLY
    if _late(text):
        return BeyondSide.LATE
    return None
