"""Tables without a key: each row of their log adds a row of a text, or takes one away; nothing
joins, nothing is read back.

Law (decision 60): for each text, what was added less what was taken away is how often the table has
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec

from eventlog.core.model import Change, Edit, Event, Kind, Op, Reason
from eventlog.core.rules.screen import Screened, Subject
from eventlog.core.schema import WHOLE_ROW


def whole_row_changes(screened: Screened, subject: Subject, events: Iterable[Event]) -> list[Change]:
    """A change for each event. Two that add equal rows are two changes, whoever made them."""
    table = subject.table
    assert table is not None
    changes = []
    for event in events:
        # The publisher's own user took it away; nobody gets it, and no lifetime is closed by it.
        if event.position in screened.silent:
            continue
        adds = event.kind == Kind.INSERT_FIELD and event.column == WHOLE_ROW
        if not adds and event.kind != Kind.DELETE_ROW:
            problem = f"{table.name} has no key: its rows of the log are of type 1 on {WHOLE_ROW}"
            screened.aside(event, Reason.INVALID, f"{problem}, and of type 4.")
            continue
        values = _values(event.new if adds else event.old)
        if values is None:
            screened.aside(event, Reason.INVALID, "it brings no row: its value is not the text of one.")
            continue
        # What the row's text does not have is NULL.
        if adds:
            op = Op.ADD
            edits = [Edit(column=name, new=values.get(name)) for name in table.attributes]
        else:
            op = Op.DELETE
            edits = [Edit(column=name, old=values.get(name)) for name in table.attributes]
        changes.append(
            Change(
                row=subject.row,
                op=op,
                edits=tuple(edits),
                positions=(event.position,),
                time=event.time,
                whole=True,
                transaction=event.transaction,
            )
        )
    return changes


def _values(text: str | None) -> Mapping[str, str] | None:
    try:
        # Not every database escapes the control characters of a value.
        return msgspec.convert(json.loads(text or "", strict=False), dict[str, str])
    except (msgspec.ValidationError, ValueError):
        return None
