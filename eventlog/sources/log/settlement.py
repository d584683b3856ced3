"""Settling: outcomes become marks on the log's rows and notes in its companion table, in the caller's transaction."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Outcomes, Position, Reason, Status, exceptional, written
from eventlog.core.secrets import masked
from eventlog.sources.marks import runs
from eventlog.sql.log import Log, id_list

RUN_ROWS: Final = 64
"""From this length on a run of numbers without gaps is marked by its ends; shorter ones go into one list."""

DELETED: Final = frozenset({Status.SUCCESS, Status.WARNING})
"""What `delete_from_log` deletes; errors stay where people can see them."""


_STAY: Final = frozenset({Reason.RETRY, Reason.HELD})


class Settling(Protocol):
    """The settings that settling asks for."""

    @property
    def delete_from_log(self) -> bool: ...
    @property
    def backoff(self) -> Backoff: ...


def settle(
    connection: Connection,
    log: Log,
    outcomes: Sequence[Outcome],
    settings: Settling,
    attempts: Mapping[Position, int],
    *,
    waited: bool = False,
) -> None:
    """Records reasons and attempts while the rows still wait, then marks or deletes those whose time is over.

    `attempts` are those of rows that were offered before; `waited` says that rows may have a record of what they
    waited for.
    """
    outcomes = one_a_number(outcomes)
    _note(connection, log, outcomes, settings, attempts)
    for status, numbers in by_status(outcomes).items():
        if attempts or waited:
            _end_attempts(connection, log, status, numbers)
        if settings.delete_from_log and status in DELETED:
            _change(connection, log, "delete", numbers, {})
        else:
            _change(connection, log, "mark", numbers, {"status": status.value})


def one_a_number(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The outcomes, made one where several rows have one number: a database cannot be told which of them is meant.

    What waits keeps the others waiting, and a row that was published is not called an error for its neighbour's sake.
    """
    positions = outcomes.positions if isinstance(outcomes, Outcomes) else [one.position for one in outcomes]
    if all(len(position) == 1 for position in positions):
        return outcomes
    by_number: dict[int, list[Outcome]] = {}
    for outcome in outcomes:
        by_number.setdefault(outcome.position[0], []).append(outcome)
    return [_joined(number, alike) for number, alike in by_number.items()]


def _joined(number: int, alike: Sequence[Outcome]) -> Outcome:
    waiting = [one for one in alike if one.status is Status.NEW]
    bad = [one for one in alike if one.status in (Status.ERROR, Status.FATAL)]
    if waiting or not bad or len(bad) == len(alike):
        chosen = (waiting or bad or sorted(alike, key=lambda one: one.status is not Status.WARNING))[0]
        return replace(chosen, position=(number,))
    note = f"{len(alike)} rows have this record_id, and {len(bad)} of them could not be published: {note_of(bad[0])}"
    return Outcome(position=(number,), status=Status.WARNING, reason=bad[0].reason, note=note)


def by_status(outcomes: Sequence[Outcome]) -> dict[Status, list[int]]:
    """The record_ids that get each letter, ascending; those that stay N are left out."""
    found: dict[Status, list[int]] = {}
    for outcome in exceptional(outcomes):
        if outcome.status is not Status.NEW:
            found.setdefault(outcome.status, []).append(outcome.position[0])
    if isinstance(outcomes, Outcomes):
        others = outcomes.others
        positions = outcomes.positions
        if others:
            positions = [position for position in positions if position not in others]
        found.setdefault(Status.SUCCESS, []).extend([position[0] for position in positions])
    for numbers in found.values():
        numbers.sort()
    return {status: numbers for status, numbers in found.items() if numbers}


def is_noted(outcome: Outcome) -> bool:
    """Whether the companion table must say more than the letter does."""
    return outcome.status is not Status.NEW and (outcome.reason is not Reason.PUBLISHED or outcome.note is not None)


def note_of(outcome: Outcome) -> str | None:
    """The note as any database can keep it; a superseded event names its winner."""
    note = outcome.note
    if note is None and outcome.winner is not None:
        note = f"superseded by {written(outcome.winner)}"
    if note is None:
        return None
    return masked(note).replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def retried(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those that are offered again after a while."""
    return [
        outcome for outcome in exceptional(outcomes) if outcome.status is Status.NEW and outcome.reason is Reason.RETRY
    ]


def staying(outcomes: Sequence[Outcome]) -> list[int]:
    """The rows that stay in hand, where whoever publishes waits for them."""
    return list(
        dict.fromkeys(
            [one.position[0] for one in exceptional(outcomes) if one.status is Status.NEW and one.reason in _STAY]
        )
    )


def _note(
    connection: Connection, log: Log, outcomes: Sequence[Outcome], settings: Settling, attempts: Mapping[Position, int]
) -> None:
    noted = [_record(outcome) for outcome in exceptional(outcomes) if is_noted(outcome)]
    if noted:
        connection.execute(log.query("note_outcome"), {"records": records(noted)})
    chance = secrets.SystemRandom().random()  # one for all, so that what belongs together comes again together
    for note, numbers in _held(outcomes).items():
        connection.execute(log.query("note_waiting"), {"note": note, "ids": id_list(numbers)})
    tried = [
        _record(outcome) | {"delay": settings.backoff.delay(attempts.get(outcome.position, 0) + 1, chance)}
        for outcome in retried(outcomes)
    ]
    if tried:
        connection.execute(log.query("note_attempt"), {"records": records(tried)})


def _held(outcomes: Sequence[Outcome]) -> dict[str, list[int]]:
    """Rows that were read and go on waiting behind others, by the note that says so."""
    found: dict[str, list[int]] = {}
    for outcome in exceptional(outcomes):
        if outcome.status is Status.NEW and outcome.reason is Reason.HELD:
            found.setdefault(note_of(outcome) or "", []).append(outcome.position[0])
    return found


def _record(outcome: Outcome) -> dict[str, Any]:
    """As the statements read it; without a note the key is left out, because not every database takes JSON's null for NULL."""
    found: dict[str, Any] = {"id": outcome.position[0], "status": outcome.status.value, "reason": outcome.reason.value}
    note = note_of(outcome)
    return found if note is None else found | {"note": note}


def records(found: Sequence[Mapping[str, Any]]) -> str:
    """Records as the one parameter that their statement takes."""
    return msgspec.json.encode(found).decode()


def _end_attempts(connection: Connection, log: Log, status: Status, numbers: Sequence[int]) -> None:
    """Rows that `note_outcome` recorded have no attempts open any more; what is left ended without a reason of its own."""
    parameters = {"status": status.value, "reason": Reason.PUBLISHED.value, "ids": id_list(numbers)}
    connection.execute(log.query("end_attempts"), parameters)


def _change(connection: Connection, log: Log, verb: str, numbers: Sequence[int], values: Mapping[str, str]) -> None:
    """Marks or deletes exactly these rows.

    Marking by the ends of a range is twice as fast as by a list, but a range also holds what was committed late. Only
    a run of consecutive numbers has no room for a row that is not in it, so only runs are marked by their ends.
    """
    stretches = runs(numbers)
    long = [(first, last) for first, last in stretches if last - first + 1 >= RUN_ROWS]
    for first, last in long:
        connection.execute(log.query(f"{verb}_run"), {**values, "first": first, "last": last})
    kept = set(stretches).difference(long)
    scattered = [number for first, last in sorted(kept) for number in range(first, last + 1)]
    if scattered:
        connection.execute(log.query(f"{verb}_rows"), {**values, "ids": id_list(scattered)})
