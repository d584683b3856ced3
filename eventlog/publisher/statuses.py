"""How rows end: reasons are recorded in the companion table, statuses on the rows of the log.

A record_id is drawn before commit, so a lower one may appear after a higher one was read. So
nothing is marked that was not read, however the numbers lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.model import Outcome, Reason, Status, format_position
from eventlog.core.secrets import mask_secrets
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges, as_text, null_if_empty
from eventlog.sql.log import Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

RUN_ROWS: Final = 64
"""So long a run of numbers without gaps is marked by its ends; shorter ones go into one list."""

DELETED: Final = frozenset({Status.SUCCESS, Status.WARNING})
"""What `delete_from_log` deletes; errors stay where people can see them."""


PUBLISHED: Final = (Status.SUCCESS.value, Reason.PUBLISHED.value, None)
"""The answer of an output that has nothing to say."""


def record_ends(
    connection: Connection,
    log: Log,
    rows: RowRanges,
    ended: Mapping[int, Outcome],
    settings: LogSettings,
    answers: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Record reasons of rows that stay and were not simply published; then mark or delete all."""
    deleted = DELETED if settings.delete_from_log else frozenset[Status]()
    records: list[dict[str, Any]] = []
    for number, outcome in ended.items():
        if is_noted(outcome) and outcome.status not in deleted:
            record = {"id": number, "status": outcome.status.value, "reason": outcome.reason.value}
            note = note_of(outcome)
            # Without a note the key is left out: not every database takes JSON's null for NULL.
            if note is not None:
                record["note"] = note
            if number in answers:
                record["answers"] = answers[number]
            records.append(record)
    if records:
        log.execute(connection, log.query("note_outcome"), {"records": as_text(records)})
    for status, alike in by_status(rows, ended).items():
        verb, values = "mark", {"status": status.value}
        if status in deleted:
            verb, values = "delete", {}
        # Marking by the ends of a range is twice as fast as by a list. Only numbers without a gap
        # have no room for a row that was committed late.
        scattered: list[int] = []
        for first, last in alike.parts:
            if last - first + 1 >= RUN_ROWS:
                log.execute(connection, log.query(f"{verb}_run"), {**values, "first": first, "last": last})
            else:
                scattered.extend(range(first, last + 1))
        if scattered:
            log.execute(connection, log.query(f"{verb}_rows"), {**values, "ids": id_list(scattered)})


def write_apart(
    outputs: Iterable[str], answers: Mapping[int, Mapping[str, Outcome]], ended: Mapping[int, Outcome]
) -> dict[int, str]:
    """Write the status, reason and note that each output gave a row, as JSON; of rows that did not end well, and of which
    the outputs said different things.
    """
    apart: dict[int, str] = {}
    for number, outcome in ended.items():
        if outcome.status is not Status.SUCCESS:
            said = answers[number]
            each = {name: answer_of(said[name]) if name in said else PUBLISHED for name in outputs}
            if len(set(each.values())) > 1:
                apart[number] = as_text(each)
    return apart


def answer_of(outcome: Outcome) -> tuple[str | None, ...]:
    """Return an output's status, reason and note."""
    return outcome.status.value, outcome.reason.value, note_of(outcome)


def by_status(rows: RowRanges, ended: Mapping[int, Outcome]) -> dict[Status, RowRanges]:
    """Group rows by their new status, without those staying N."""
    if not ended:  # by far the most common
        return {Status.SUCCESS: rows}
    numbers_of: dict[Status, list[int]] = {}
    for number, outcome in ended.items():
        numbers_of.setdefault(outcome.status, []).append(number)
    numbers_of.pop(Status.NEW, None)
    rows_of = {status: RowRanges.of(numbers) for status, numbers in numbers_of.items()}
    published = rows - RowRanges.of(ended)
    if published:
        rows_of[Status.SUCCESS] = published | rows_of.get(Status.SUCCESS, RowRanges())
    return rows_of


def is_noted(outcome: Outcome) -> bool:
    """Return True if the companion table must say more than the status does."""
    if outcome.status is Status.NEW:
        return False
    return outcome.reason is not Reason.PUBLISHED or outcome.note is not None


def note_of(outcome: Outcome) -> str | None:
    """Write the note as any database can keep it; a superseded event names its winner."""
    note = outcome.note
    if note is None and outcome.winner is not None:
        note = f"superseded by {format_position(outcome.winner)}"
    if note is None:
        return None
    # PostgreSQL keeps no NUL in a text, and a receiver's answer may have half of a surrogate pair,
    # which no database takes.
    without_nul = mask_secrets(note).replace("\0", "\\0")
    return null_if_empty(without_nul.encode("utf-8", "backslashreplace").decode())
