"""The option `coalesce`: all that remains of a lifetime makes one change, its net effect."""

from __future__ import annotations

from eventlog.core.model import Change, Edit, Event, Op, Reason, Row
from eventlog.core.rules.join import INSERT_FIELD, UPDATE_FIELD, edit, multiple_attributes, saying_something, whole_row
from eventlog.core.rules.lifetimes import ROW_BACK
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject


def coalesce(screened: Screened, subject: Subject, events: list[Event], row: Row | None) -> list[Change]:
    """At most one change: the first old values and the last new ones."""
    if events and events[0].kind in ROW_BACK:  # it has superseded all others
        return whole_row(screened, subject, events[0], row or {})
    saying = saying_something(screened, events)
    if not saying:
        return []
    op = Op.ADD if saying[0].kind == INSERT_FIELD else Op.MODIFY
    edits = _net_edits(subject, saying, row, op)
    if not edits:
        for event in saying:
            screened.aside(event, Reason.NOTHING, "the changes of this cycle cancel each other out.")
        return []
    positions = tuple([event.position for event in saying])
    last = saying[-1]
    return [
        Change(
            row=subject.row,
            op=op,
            edits=tuple(edits),
            positions=positions,
            time=last.time,
            transaction=last.transaction,
        )
    ]


def _net_edits(subject: Subject, events: list[Event], row: Row | None, op: Op) -> list[Edit]:
    """One edit a column, where the column first stands; a child table's columns keep every event."""
    multiple = multiple_attributes(subject)
    columns: dict[object, list[Event]] = {}
    for event in events:
        columns.setdefault(event.position if event.column in multiple else event.column, []).append(event)
    folded = [
        edit(found[0], row) if found[0].column in multiple else _folded(found, row, op) for found in columns.values()
    ]
    return [one for one in folded if one is not None]


def _folded(events: list[Event], row: Row | None, op: Op) -> Edit | None:
    first, last = edit(events[0], row), edit(events[-1], row)
    if op is Op.ADD:
        return Edit(column=first.column, new=last.new)
    if all(event.kind == UPDATE_FIELD for event in events) and first.old == last.new:
        return None
    reset = any(MEANING[event.kind].reset for event in events)
    return Edit(column=first.column, old=first.old, new=last.new, reset=reset)
