"""From events to changes: the rules, once, for the daemon, for bulk conversion and for Spark.

    screen   order, set aside what takes no part, gather by object
    wanted   which objects and attributes must be read back
    judge    lifetimes, precedence and merging, with what was found

`decide` does all of it. A stream's images need none of this; `tell` says what consumers are told of them. Nothing here does I/O or knows a database: events, rows and time come in, values go out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from eventlog.core.model import Change, Event, Outcome, Outcomes, Position, ReadBack, RowId, Unreadable
from eventlog.core.rules.coalesce import coalesce
from eventlog.core.rules.images import parted, tell
from eventlog.core.rules.join import delete, join
from eventlog.core.rules.lifetimes import ROW_BACK, lifetimes, wanted
from eventlog.core.rules.meaning import EXPLANATION, MEANING, PRECEDENCE, STATUS, Options
from eventlog.core.rules.prefer import prefer
from eventlog.core.rules.screen import Screened, screen
from eventlog.core.rules.times import moment
from eventlog.core.schema import Catalog

__all__ = [
    "EXPLANATION",
    "MEANING",
    "PRECEDENCE",
    "STATUS",
    "Decision",
    "Options",
    "changes_of",
    "decide",
    "judge",
    "parted",
    "screen",
    "tell",
    "wanted",
]


class Decision(NamedTuple):
    """Changes in the order in which they are published, and one outcome for every event."""

    changes: list[Change]
    outcomes: Sequence[Outcome]


def decide(
    events: Iterable[Event],
    rows: Mapping[RowId, ReadBack] | None = None,
    *,
    catalog: Catalog | None = None,
    options: Options | None = None,
) -> Decision:
    """The changes that the events amount to. `rows` answers read-backs; None says that nobody can answer them."""
    return judge(screen(list(events), catalog, options or Options()), rows, options or Options())


def judge(screened: Screened, rows: Mapping[RowId, ReadBack] | None, options: Options) -> Decision:
    """What the screened events amount to, with the rows that were read back for them."""
    changes = changes_of(screened, rows, options)
    changes.sort(key=_due_place if options.future else _place)
    return Decision(changes, Outcomes([event.position for event in screened.events], screened.outcomes))


def changes_of(screened: Screened, rows: Mapping[RowId, ReadBack] | None, options: Options) -> list[Change]:
    """The changes object by object, for whoever puts them in order; what else became of events, `screened` knows then."""
    changes: list[Change] = []
    merge = coalesce if options.coalesce else join
    for subject in screened.subjects.values():
        if subject.plain:  # nothing to prefer, nothing to close: by far the most
            changes += merge(screened, subject, subject.events, None)
        else:
            found = None if rows is None else rows.get(subject.row)
            row = found.row if isinstance(found, Unreadable) else found
            if row is not None and row is found and len(subject.events) == 1 and subject.events[0].kind in ROW_BACK:
                changes += merge(screened, subject, subject.events, row)  # nothing to prefer here either
                continue
            for lifetime in lifetimes(subject):
                remaining = prefer(screened, lifetime, found, readable=rows is not None)
                changes += merge(screened, subject, remaining, row)
                if lifetime.closing is not None and lifetime.closing.position not in screened.silent:
                    changes.append(delete(subject, lifetime.closing))
    return changes


def _place(change: Change) -> Position:
    """A change stands where its last contributing event stands."""
    return change.positions[-1]


def _due_place(change: Change) -> tuple[dt.datetime, Position]:
    return (change.time and moment(change.time)) or dt.datetime.min, change.positions[-1]
