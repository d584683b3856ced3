"""New rows that wait for every output, as earlier ones of their objects do: parked by names alone.
A million may come behind one that somebody holds, and nobody needs their values yet.

Law: no output has a batch ahead then, where earlier rows of the same object might be.
"""

from __future__ import annotations

from typing import Final

from eventlog.core.model import EVERY_ROW
from eventlog.core.rules.screen import Identities
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.journal_view import View
from eventlog.publisher.new_rows import Spelling, name_of
from eventlog.publisher.selection import BEHIND
from eventlog.publisher.tables import Parked
from eventlog.sources.log.reading import OBJECT, find_torn_places
from eventlog.sources.log.row_events import Rows
from eventlog.sources.marks import RowRanges

UNREAD_ROWS: Final = 20_000
"""So many rows are looked at in one transaction."""


def park_unread(journal: Journal, decider: Decider, limit: int) -> bool:
    """Park those of the next rows waiting for every output; return True if they were the majority."""
    # In one transaction: an object that waits still does so when its rows are parked.
    with journal.transaction(soon=True) as view:
        memory = view.memory
        if memory.batches or memory.reserved_above is not None:
            return False
        if any(view.waiting_objects(output, [EVERY_ROW]) for output in memory.outputs):
            return False
        unread = journal.rows.unread(view, UNREAD_ROWS, limit)
        if not decider.knows_tables(view):
            return False
        waiting = _find_waiting(view, decider.identities, unread)
        # Rows between them are taken one time after the other, by their numbers: they must not
        # become too many. Where it counts which rows of a transaction come last, none is passed.
        room = 0 if journal.settings.ends else limit
        passed, behind = 0, dict[int, str]()
        for index, row in enumerate(unread):
            spelling: Spelling = row[OBJECT]
            waits = spelling in waiting
            # Nothing may pass a row that speaks of a whole table.
            if spelling[1] == EVERY_ROW or (passed == room and not waits):
                # The head of a change must not be parked where its rest, among rows of others, is not.
                for torn in find_torn_places(unread, index):
                    behind.pop(int(unread[torn][0]), None)
                break
            if waits:
                behind[int(row[0])] = waiting[spelling]
            else:
                passed += 1
        # Whether one of them is held is asked when its turn comes.
        rows = [
            Parked(output=output, record=number, object=name, reason=BEHIND)
            for output in memory.outputs
            for number, name in behind.items()
        ]
        view.park(rows)
        view.see(RowRanges.of(behind))
        return len(behind) > passed


def _find_waiting(view: View, identities: Identities, unread: Rows) -> dict[Spelling, str]:
    """Map spellings in rows to objects with rows waiting for every output."""
    spellings = {row[OBJECT] for row in unread if row[OBJECT][1] != EVERY_ROW}
    rows = {spelling: identities.row_id(*spelling) for spelling in spellings}
    names = {spelling: name_of(row) for spelling, row in rows.items() if row is not None}
    waiting = set(names.values())
    for output in view.memory.outputs:
        waiting = view.waiting_objects(output, waiting)
    return {spelling: name for spelling, name in names.items() if name in waiting}
