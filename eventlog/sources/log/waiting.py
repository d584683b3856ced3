"""What a row waits for that nobody has read yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from eventlog.core.model import RowId
from eventlog.core.rules.identity import Identities
from eventlog.sources.log.held import read_held
from eventlog.sources.log.retries import read_retries
from eventlog.sources.marks import HELD, RETRIED, Marks, read_runs

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log


def waits_for(
    log: Log,
    connection: Connection,
    record_id: int,
    row: RowId | None,
    identities: Identities,
    on_retry: Literal["stop", "object"],
) -> str:
    """A sentence about the rows that come before this one of the object `row`."""
    marks = Marks(log).all(connection)
    held = read_held(connection, log, marks.get(HELD))
    retries = read_retries(connection, log, read_runs(marks.get(RETRIED, ""))).waiting
    if (first := _first(held, record_id, row, identities)) is not None:
        return f"It waits behind row {first} of the same object, which is held."
    tried = [(retry.number, retry.table, retry.key) for retry in retries]
    if (first := _first(tried, record_id, row, identities)) is not None:
        return f"It waits behind row {first} of the same object, which is offered again first."
    if retries and on_retry == "stop":
        return f"It waits behind row {retries[0].number}, which is offered again first, for on_retry is stop."
    return "It waits."


def _first(ahead: Iterable[tuple[Any, ...]], record_id: int, row: RowId | None, identities: Identities) -> int | None:
    """The first of these rows that comes before one of the same object."""
    mine = [number for number, table, key in ahead if number < record_id and identities.row_id(table, key) == row]
    return None if row is None else min(mine, default=None)
