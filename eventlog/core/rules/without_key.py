"""Tables without a key: each row of their log adds a row of a text, or takes one away; nothing
joins, nothing is read back.

Law (decision 60): for each text, what was added less what was taken away is how often the table has
it.
"""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.core.model import Change, Edit, Event, Kind, Op, Reason
from eventlog.core.rules.screen import Screened, Subject


def whole_row_changes(screened: Screened, subject: Subject, events: Iterable[Event]) -> list[Change]:
    """Make a change for each event; two inserts of equal rows are two changes."""
    table = subject.table
    assert table is not None
    changes = []
    for event in events:
        # The publisher's own user took it away; nobody gets it, and no lifetime is closed by it.
        if event.position in screened.silent:
            continue
        image, adds = event.image, event.kind == Kind.INSERT_FIELD
        if image is None or not (adds or event.kind == Kind.DELETE_ROW):
            problem = f"{table.name} has no key: its rows of the log are images of types 5 and 4"
            screened.aside(event, Reason.INVALID, f"{problem}.")
            continue
        values = image.row(image.after if adds else image.before)
        # What the image does not have is NULL.
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
                who=event.who,
            )
        )
    return changes
