"""How rows end: reasons are recorded in the companion table, statuses on the rows of the log.

A record_id is drawn before commit, so a lower one may appear after a higher one was read. So
nothing is marked that was not read, however the numbers lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.model import Outcome, Outcomes, Reason, Status, exceptional, written
from eventlog.core.secrets import masked
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import as_text, runs, stored
from eventlog.sql.log import Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

RUN_ROWS: Final = 64
"""So long a run of numbers without gaps is marked by its ends; shorter ones go into one list."""

DELETED: Final = frozenset({Status.SUCCESS, Status.WARNING})
"""What `delete_from_log` deletes; errors stay where people can see them."""


def settle(
    connection: Connection,
    log: Log,
    outcomes: Sequence[Outcome],
    settings: LogSettings,
) -> None:
    """Records reasons while the rows still wait, then gives each its status, or deletes it."""
    records = [_record(outcome) for outcome in exceptional(outcomes) if is_noted(outcome)]
    if records:
        connection.execute(log.query("note_outcome"), {"records": as_text(records)})
    for status, numbers in by_status(outcomes).items():
        if settings.delete_from_log and status in DELETED:
            _change(connection, log, "delete", numbers, {})
        else:
            _change(connection, log, "mark", numbers, {"status": status.value})


def by_status(outcomes: Sequence[Outcome]) -> dict[Status, list[int]]:
    """The record_ids that get each letter, ascending; those that stay N are left out."""
    numbers_of: dict[Status, list[int]] = {}
    for outcome in exceptional(outcomes):
        if outcome.status is not Status.NEW:
            numbers_of.setdefault(outcome.status, []).append(outcome.position[0])
    if isinstance(outcomes, Outcomes):
        others = outcomes.others
        published = [position[0] for position in outcomes.positions if position not in others]
        if published:
            numbers_of.setdefault(Status.SUCCESS, []).extend(published)
    for numbers in numbers_of.values():
        numbers.sort()
    return numbers_of


def is_noted(outcome: Outcome) -> bool:
    """Whether the companion table must say more than the letter does."""
    if outcome.status is Status.NEW:
        return False
    return outcome.reason is not Reason.PUBLISHED or outcome.note is not None


def note_of(outcome: Outcome) -> str | None:
    """The note as any database can keep it; a superseded event names its winner."""
    note = outcome.note
    if note is None and outcome.winner is not None:
        note = f"superseded by {written(outcome.winner)}"
    if note is None:
        return None
    # PostgreSQL keeps no NUL in a text, and a receiver's answer may have half of a surrogate pair,
    # which no database takes.
    without_nul = masked(note).replace("\0", "\\0")
    return stored(without_nul.encode("utf-8", "backslashreplace").decode())


def _record(outcome: Outcome) -> dict[str, Any]:
    """As the statements read it."""
    status, reason = outcome.status.value, outcome.reason.value
    record = {"id": outcome.position[0], "status": status, "reason": reason}
    note = note_of(outcome)
    # Without a note the key is left out: not every database takes JSON's null for NULL.
    if note is not None:
        record["note"] = note
    return record


def _change(
    connection: Connection,
    log: Log,
    verb: str,
    numbers: Sequence[int],
    values: Mapping[str, str],
) -> None:
    """Marks or deletes exactly these rows."""
    # Marking by the ends of a range is twice as fast as by a list, but a range also holds what was
    # committed late. Only a run of consecutive numbers has no room for a row that is not in it.
    scattered: list[int] = []
    for first, last in runs(numbers):
        if last - first + 1 >= RUN_ROWS:
            connection.execute(log.query(f"{verb}_run"), {**values, "first": first, "last": last})
        else:
            scattered.extend(range(first, last + 1))
    if scattered:
        connection.execute(log.query(f"{verb}_rows"), {**values, "ids": id_list(scattered)})
