"""What an operator does with rows of the journal: holds them and lets them go."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection

from eventlog.sources.log.left_out import note_change
from eventlog.sql.log import Log

Run = tuple[int, int]
"""The first and the last of numbers that are meant."""


def hold(connection: Connection, log: Log, runs: Sequence[Run], note: str) -> tuple[int, set[str]]:
    """Keeps waiting rows from outputs that have not planned them; how many are held, and the outputs for which that
    is too late, because they are being given one of them now.
    """
    note_change(connection, log)  # first: whoever plans rows meanwhile is waited for
    held = 0
    for first, last in runs:
        bounds = {"first": first, "last": last}
        connection.execute(log.query("hold_make"), bounds | {"note": note})
        held += int(connection.execute(log.query("hold_count"), bounds).scalar_one())
    late = {
        str(output)
        for output, _, _, records in log.rows(connection, log.query("planned_records"))
        for first, last in msgspec.json.decode(records, type=list[Run])
        if any(first <= run[1] and run[0] <= last for run in runs)
    }
    return held, late


def release(connection: Connection, log: Log, runs: Sequence[Run]) -> int:
    """Lets held rows go; how many. What waits for them follows by itself."""
    note_change(connection, log)
    released = 0
    for first, last in runs:
        bounds = {"first": first, "last": last}
        released += int(connection.execute(log.query("hold_drop"), bounds).rowcount)
        connection.execute(log.query("parked_released"), bounds)
    return released
