"""Dates and numbers in other forms. What is no date or number has a stated outcome."""

from __future__ import annotations

from collections.abc import Callable

from eventlog.core.model import Change, Refusal, Value
from eventlog.policies import steps
from eventlog.policies.columns import Action, Columns
from eventlog.policies.shape import Shape
from eventlog.policies.values import format_date, format_number


class Unfit(Exception):  # noqa: N818  # an outcome, shown in the note of a row
    """A value is none of what a step is for; which attribute it is of."""


def dating(step: steps.Date, shape: Shape, number: int) -> Action | None:
    """Writes times in another form."""
    zone = step.clock()
    return _write_columns(step, shape, number, lambda value: format_date(value, step.form, zone), "time")


def numbering(step: steps.Number, shape: Shape, number: int) -> Action | None:
    decimals, mark, group = step.decimals, step.decimal_mark, step.group_mark
    return _write_columns(step, shape, number, lambda value: format_number(value, decimals, mark, group), "number")


def _write_columns(
    step: steps.Date | steps.Number,
    shape: Shape,
    number: int,
    write: Callable[[Value], str | None],
    kind: str,
) -> Action | None:
    names = shape.choose(step.attributes, number)
    done = step.__struct_config__.tag
    shape.refuse_key(names, number, str(done))
    shape.retype(names, "varchar")
    if not names:
        return None
    columns = Columns({name: (name, _unfit(write, name, step.on_error)) for name in names}, number)

    def format_change(change: Change) -> Change | Refusal:
        try:
            return columns(change)
        except Unfit as error:
            note = f"step {number} of the policy: the value of {error} is no {kind}."
            return Refusal(positions=change.positions, note=note)

    return format_change


def _unfit(write: Callable[[Value], str | None], name: str, on_error: steps.OnUnfit) -> Callable[[Value], Value]:
    """Wrap a writer of values to handle a value without a form as the step says."""

    def write_or_refuse(value: Value) -> Value:
        text = write(value)
        if text is not None or on_error == "null":
            return text
        if on_error == "keep":
            return value
        raise Unfit(name)

    return write_or_refuse
