"""The full load: writes rows into the log which ask the publisher to tell every row of a table as
it is.

    loads       what is to be published, how fast, and by which SQL
    ranges      how far each range of a table's keys is, and how it is kept in marks; pure
    ranges   the load itself, a range of rows at a time, several ranges at once
    command     the command; it comes in by an entry point of `eventlog.commands`

Law: a row that is there when its range is read, and is not changed afterwards, is told as it is;
what changes later is logged by its own trigger, behind. The place reached is marked in the
transaction that writes the range, so a load that was broken off goes on where it was. Every key
is in one range, whatever is inserted meanwhile.
"""

from __future__ import annotations

from typing import Final

CHUNK_ROWS: Final = 10_000
"""Rows in one transaction of a load."""
