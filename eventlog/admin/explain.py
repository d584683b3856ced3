"""What became of one row, or would become of it now, and why: the rules run once more, and nothing is marked."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eventlog.config.build import pipeline_of, xds_of
from eventlog.config.settings import Config
from eventlog.core.errors import DataError, ExpressionError
from eventlog.core.model import Change, Event, Outcome, Refusal, Status
from eventlog.core.rules import Decision
from eventlog.core.rules.identity import Identities
from eventlog.core.rules.times import moment
from eventlog.core.seams import Batch
from eventlog.delivery.pipeline import Pipeline
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.sql.names import LogNames

AROUND_ROWS = 10_000
"""How many record_ids before and after the row are looked through for rows of its object."""


class ExplainedRow(Struct, frozen=True, kw_only=True):
    """One row of the object and what the rules make of it."""

    record_id: int
    event_type: int | None
    column: str | None
    old: str | None
    new: str | None
    status: str
    reason: str
    note: str | None


class Explanation(Struct, frozen=True, kw_only=True):
    """The row, what was recorded about it, the rows it is read with, and the document that it gives."""

    record_id: int
    status: str
    recorded: str
    rows: tuple[ExplainedRow, ...]
    document: str | None


def explain(engine: Engine, names: LogNames, config: Config, record_id: int) -> Explanation:
    """Explains a row; DataError when the log has none with this number."""
    pipeline = pipeline_of(engine, names, config, ())
    log = Log(engine, names)
    with log.transaction() as connection:
        status, events = _read(log, connection, pipeline, record_id)
        recorded = log.rows(connection, log.query("recorded"), {"record_id": record_id})
        waits = _waits(log, connection, pipeline, config, events, record_id) if status == Status.NEW else ""
        now = moment(log.rows(connection, log.query("clock_now"))[0][0]) if status == Status.NEW else None
    decision = pipeline.decide(Batch(events=events, now=now))
    return Explanation(
        record_id=record_id,
        status=str(status),
        recorded=_recorded(recorded, waits),
        rows=tuple(_row(event, outcome) for event, outcome in zip(events, _in_order(events, decision), strict=True)),
        document=_document(decision, record_id, pipeline, config),
    )


def _read(log: Log, connection: Connection, pipeline: Pipeline, record_id: int) -> tuple[Any, list[Event]]:
    """The row's letter, and the events of its object near it that wait as it does, or are processed as it is."""
    from eventlog.sources.log.rows import events_in_utc

    found = log.rows(connection, log.query("row_status"), {"record_id": record_id})
    if not found:
        raise DataError(f"The event log {log.name} has no row {record_id}.", hint="`eventlog log` lists its rows.")
    status, table, key = found[0]
    stretch = {"first": record_id - AROUND_ROWS, "last": record_id + AROUND_ROWS, "waiting": int(status == Status.NEW)}
    events = events_in_utc(log.rows(connection, log.query("rows_between"), stretch), log)
    identities = Identities(pipeline.catalog)
    object_ = identities.row_id(table, key)
    if object_ is None:
        return status, [event for event in events if event.position == (record_id,)]
    return status, [event for event in events if identities.row_id(event.table, event.key) == object_]


def _waits(
    log: Log, connection: Connection, pipeline: Pipeline, config: Config, events: list[Event], record_id: int
) -> str:
    from eventlog.sources.log.rows import waits_for

    identities = Identities(pipeline.catalog)
    [mine] = [event for event in events if event.position == (record_id,)]
    row = identities.row_id(mine.table, mine.key)
    return waits_for(log, connection, record_id, row, identities, config.publisher.on_retry)


def _recorded(rows: list[tuple[Any, ...]], waits: str) -> str:
    """The companion's record as a sentence."""
    if not rows:
        return waits or "Nothing more was recorded."
    letter, reason, note, attempts, next_attempt, _, held, settled_at = rows[0]
    parts = [f"Recorded{f' at {settled_at}' if settled_at else ''}: {letter or '-'} {reason or ''}".strip()]
    parts += [f": {note}"] if note else []
    parts += [f" ({attempts} attempts, next at {next_attempt})"] if attempts else []
    return "".join(parts).rstrip(".") + ("; it is held." if held else ".")


def _in_order(events: list[Event], decision: Decision) -> list[Outcome]:
    outcomes = {outcome.position: outcome for outcome in decision.outcomes}
    return [outcomes[event.position] for event in events]


def _row(event: Event, outcome: Outcome) -> ExplainedRow:
    return ExplainedRow(
        record_id=event.position[0],
        event_type=event.kind,
        column=event.column,
        old=event.old,
        new=event.new,
        status=outcome.status,
        reason=outcome.reason,
        note=outcome.note,
    )


def _document(decision: Decision, record_id: int, pipeline: Pipeline, config: Config) -> str | None:
    """The element of the change that the row is part of; for a superseded row its winner's."""
    winners = {outcome.position: outcome.winner for outcome in decision.outcomes}
    position = winners.get((record_id,)) or (record_id,)
    changes = [change for change in decision.changes if position in change.positions]
    return _element(changes[0], pipeline, config) if changes else None


def _element(change: Change, pipeline: Pipeline, config: Config) -> str:
    form = xds_of(config)
    try:
        return form.fragment(change, pipeline.catalog).rstrip("\n")
    except ExpressionError as error:
        found = [*form.writer(pipeline.catalog)((change,))]
        notes = [item.note for item in found if isinstance(item, Refusal) and item.partial]
        if not notes:
            return f"It is refused: {error}."
    elements = [dedent(item.text).rstrip("\n") for item in found if not isinstance(item, Refusal)]
    return "\n".join([*elements, *notes])
