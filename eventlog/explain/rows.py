"""What became of one row, or would become of it now, and why: the rules run once more, and nothing
is marked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, bindparam

from eventlog.config.build import decider_of, format_of, name_of
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import DataError, ExpressionError
from eventlog.core.model import Change, Event, Outcome, Refusal, Status, Who
from eventlog.core.model import Row as ImageRow
from eventlog.core.registry import format_named
from eventlog.core.rules import Round
from eventlog.core.rules.images import open_images
from eventlog.core.rules.screen import HIDDEN, Identities
from eventlog.core.schema import Catalog
from eventlog.core.seams import FormerNames, former_names_of
from eventlog.core.times import moment
from eventlog.explain.masking import Mask, mask_of, without
from eventlog.explain.policies import PolicyResult, results
from eventlog.explain.states import waiting_sentences
from eventlog.publisher.decide import parts_of
from eventlog.publisher.encode import Part
from eventlog.publisher.tables import decode
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.streams.deciding import decider_of_stream
from eventlog.xds.plugin import xds_format
from eventlog.xds.write import XdsFormat

AROUND_WAITING_ROWS = 10_000
"""How many record_ids before and after a waiting row are looked through for rows of its object."""

AROUND_ENDED_ROWS = 2_000
"""The same of a row that has ended: those far from it were hardly decided with it."""

ASKED_ROWS = 500
"""How many rows are asked for by their numbers at once."""


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


class FormerDocument(Struct, frozen=True, kw_only=True):
    """The document that the object had before, and the first row in it."""

    record_id: int
    document: str


class SentText(Struct, frozen=True, kw_only=True):
    """What an output is sent of a change, as people read it; `note` is why it is sent nothing, or not all."""

    output: str
    text: str = ""
    note: str | None = None


class OutputAnswer(Struct, frozen=True, kw_only=True):
    """How a row ended at one output."""

    output: str
    status: str
    reason: str
    note: str | None

    @property
    def sentence(self) -> str:
        """Say it in one line."""
        return f"{self.output}: {self.status} {self.reason}{f': {self.note}' if self.note else ''}"


class Explanation(Struct, frozen=True, kw_only=True):
    """The row, what was recorded about it, the rows it is read with, and the document that it
    gives.

    `refused` says why there is no document, or what was left out of it; `policies` say what outputs
    get that have any, and `sent` what those are sent that are sent requests. `first` is the first row in the
    document, `former` the object's document before it. `answers` are what outputs answered that ended the row
    differently.
    """

    record_id: int
    status: str
    recorded: str
    by: Who = Who()
    rows: tuple[ExplainedRow, ...]
    document: str | None
    refused: tuple[str, ...] = ()
    finished_at: str | None = None
    answers: tuple[OutputAnswer, ...] = ()
    first: int | None = None
    former: FormerDocument | None = None
    policies: tuple[PolicyResult, ...] = ()
    sent: tuple[SentText, ...] = ()

    def as_former(self, before: int) -> FormerDocument | None:
        """Return its document as a former one of a document beginning with a later row."""
        if self.document is None or self.first is None or self.first >= before:
            return None
        return FormerDocument(record_id=self.first, document=self.document)


def rules_of(engine: Engine, names: LogNames, config: Config) -> Round:
    """Make the rules that rows are explained by, with the tables as they look now."""
    if config.source.kind == LOG:
        return decider_of(engine, names, config).round
    return decider_of_stream(Log(engine, names), config).round


def explain(
    engine: Engine,
    names: LogNames,
    config: Config,
    record_id: int,
    *,
    values: bool = False,
    asked: Round | None = None,
) -> Explanation:
    """Explains a row; DataError when the log has none with this number.

    Without `values`, those that policies hide from every output are hidden here too. `asked`: the rules, where
    somebody has read them for another row just now.
    """
    log = Log(engine, names)
    asked = asked or rules_of(engine, names, config)
    catalog = asked.catalog
    mask = None if values else mask_of(config, catalog)
    waits, now = "", None
    with log.moment() as connection:
        status, events = _read(log, connection, asked, record_id)
        recorded = log.rows(connection, log.query("recorded"), {"record_id": record_id})
        if status == Status.NEW:
            waits = _waits(log, connection, config, record_id)
            now = moment(log.rows(connection, log.query("clock_now"))[0][0])
    # Without a time no row is of the future: one that is processed had its turn, whenever that was.
    asked = replace(asked, options=replace(asked.options, now=now))
    parts = parts_of(asked, [events])
    shown = [_show_row(event, catalog, mask) for event in events]
    [[secrets, by]] = [(row.secrets, row.event.who) for row in shown if row.event.position == (record_id,)]
    outcomes = {outcome.position: outcome for part in parts for outcome in part.decision.outcomes}
    document, refused = _document(parts, record_id, config, mask)
    # What policies make of the change.
    changes, tables, _ = _change(parts, record_id, FormerNames.ONLY_NEW)
    first = min([position[0] for change in changes for position in change.positions], default=None)
    return Explanation(
        record_id=record_id,
        status=str(status),
        recorded=without(_describe_records(recorded, waits), secrets) or "",
        by=by or Who(),
        rows=tuple(_row(row, outcomes[row.event.position]) for row in shown),
        document=document,
        refused=refused,
        finished_at=recorded[0][3] if recorded else None,
        answers=_read_answers(recorded, secrets),
        first=first,
        former=None if first is None else _former(parts, first, config, mask),
        policies=tuple(results(config, tables, changes, mask)),
        sent=tuple(_write_texts(config, tables, changes, mask)),
    )


def _write_texts(config: Config, catalog: Catalog, changes: Sequence[Change], mask: Mask | None) -> Iterator[SentText]:
    """Yield the texts sent to outputs whose format can show them."""
    shown = [change if mask is None else mask.change(change) for change in changes]
    for output in config.output:
        show = format_named(output.format).show
        if show is None:
            continue
        for item in format_of(output, config).writer(catalog)(change for change in shown if change is not None):
            if isinstance(item, Refusal):
                yield SentText(output=name_of(output), note=item.note)
            else:
                yield SentText(output=name_of(output), text=show(item))


def _read(
    log: Log,
    connection: Connection,
    asked: Round,
    record_id: int,
) -> tuple[Any, list[Event]]:
    """Read the row's status, and nearby events of its object in the same state."""
    from eventlog.sources.log.reading import keep_one_each
    from eventlog.sources.log.row_events import events_in_utc

    rows = log.rows(connection, log.query("row_status"), {"record_id": record_id})
    if not rows:
        raise DataError(
            f"The event log {log.name} has no row {record_id}.",
            hint="`eventlog log` lists its rows.",
        )
    status, table, key = rows[0]
    # Waiting rows are decided together, and so were processed ones; a decision never mixes the two.
    waiting = int(status == Status.NEW)
    query = log.query("rows_numbered", context="context_said" if log.names.context is not None else "")
    query = query.bindparams(bindparam("records", expanding=True))
    identities = Identities(asked.catalog)
    object_ = identities.row_id(table, key)
    numbers = [record_id]
    # Where its table or key cannot be read, nobody knows what belongs to it.
    if object_ is not None:
        around = AROUND_WAITING_ROWS if waiting else AROUND_ENDED_ROWS
        row_range = {"first": record_id - around, "last": record_id + around, "waiting": waiting}
        keys = log.rows(connection, log.query("keys_between"), row_range)
        numbers = [int(number) for number, *of in keys if number is not None and identities.row_id(*of) == object_]
    events: list[Event] = []
    for start in range(0, len(numbers), ASKED_ROWS):
        some = {"records": numbers[start : start + ASKED_ROWS], "waiting": waiting}
        kept, faults = keep_one_each(log.rows(connection, query, some))
        events += events_in_utc(kept, log, faults, who=True)
    return status, events


def _waits(log: Log, connection: Connection, config: Config, record_id: int) -> str:
    """Explain what the row waits for.

    With `on_retry = "stop"` others wait for documents to be retried.
    """
    sentences = list(waiting_sentences(connection, log, record_id))
    only_waits = all(sentence.endswith("It waits.") for sentence in sentences)
    if config.publisher.on_retry == "stop" and only_waits:
        retried = log.rows(connection, log.query("parked_offered_again"))
        for output, first in retried:
            cause = "for on_retry is stop"
            sentences.append(f"{output} gets nothing before row {first} is taken, {cause}.")
    return " ".join(sentences) or "It waits."


def _describe_records(rows: list[tuple[Any, ...]], waits: str) -> str:
    if not rows or not any(rows[0][:3]):
        return waits or "Nothing more was recorded."
    status, reason, note, finished_at = rows[0][:4]
    at = f" at {finished_at}" if finished_at else ""
    sentence = f"Recorded{at}: {status or '-'} {reason or ''}".strip()
    # A note may begin with the reason, which stands there already.
    if note and reason and note.startswith(f"{reason} "):
        sentence += note.removeprefix(reason)
    elif note:
        sentence += f": {note}"
    return f"{sentence.rstrip('.')}. {waits}".rstrip()


def _read_answers(rows: list[tuple[Any, ...]], secrets: list[str | None]) -> tuple[OutputAnswer, ...]:
    """Read what each output answered, without what is hidden."""
    if not rows or rows[0][4] is None:
        return ()
    noted = decode(str(rows[0][4]), dict[str, tuple[str, str, str | None]], "outcome.answers")
    return tuple(
        OutputAnswer(output=output, status=status, reason=reason, note=without(note, secrets))
        for output, (status, reason, note) in noted.items()
    )


class _ShownRow(Struct, frozen=True):
    """A row, its values as they are shown, and what is hidden of it."""

    event: Event
    old: str | None
    new: str | None
    secrets: list[str | None]


def _show_row(event: Event, catalog: Catalog | None, mask: Mask | None) -> _ShownRow:
    """Describe a row; of an image all columns with their names, as JSON."""
    [opened] = open_images([event], catalog)
    if opened.image is not None:
        secrets = [] if mask is None else mask.secrets(event.table, event.key, None, (None, None))
        whole = opened.image
        rows = [None if side is None else whole.row(side) for side in (whole.before, whole.after)]
        texts = [_image_row(row, event.table or "", mask, secrets) for row in rows]
        return _ShownRow(event, texts[0], texts[1], secrets)
    if mask is None:
        return _ShownRow(event, event.old, event.new, [])
    secrets = mask.secrets(event.table, event.key, event.column, (event.old, event.new))
    old, new = (mask.value(event.table, event.column, text) for text in (event.old, event.new))
    return _ShownRow(event, old, new, secrets)


def _image_row(row: ImageRow | None, table: str, mask: Mask | None, secrets: list[str | None]) -> str | None:
    """Write a row of an image; hidden values join the secrets."""
    if row is None:
        return None
    shown = dict(row)
    for name, value in row.items():
        if mask is not None and value is not None and mask.hides(table, name):
            shown[name] = HIDDEN
            secrets.append(str(value))

    def write_value(value: object) -> str:
        if isinstance(value, bytes):
            return value.hex()
        return str(value)

    text = json.dumps(shown, default=write_value, ensure_ascii=False)
    # Half of a surrogate pair, which no terminal takes.
    return text.encode("utf-8", "backslashreplace").decode()


def _row(row: _ShownRow, outcome: Outcome) -> ExplainedRow:
    event = row.event
    return ExplainedRow(
        record_id=event.position[0],
        event_type=event.kind,
        column=event.column,
        old=row.old,
        new=row.new,
        status=outcome.status,
        reason=outcome.reason,
        note=without(outcome.note, row.secrets),
    )


def _document(
    parts: Sequence[Part], record_id: int, config: Config, mask: Mask | None
) -> tuple[str | None, tuple[str, ...]]:
    """Write the element of the row's change, before any policy.

    Return also the values missing in it.
    """
    form = xds_format(config.publisher, config.source.schema, who=any(output.who for output in config.output))
    changes, catalog, missing = _change(parts, record_id, former_names_of(form))
    notes = [refusal.note for refusal in missing]
    if not changes:
        return None, tuple(notes)
    shown = changes[0] if mask is None else mask.change(changes[0])
    if shown is None:
        return None, ("Its document is not shown: policies hide what its object is called.",)
    document, refused = _element(shown, catalog, form)
    notes += refused
    if shown.only:
        notes.append(f"Only the output {shown.only} gets it.")
    return document, tuple(notes)


def _former(parts: Sequence[Part], first: int, config: Config, mask: Mask | None) -> FormerDocument | None:
    """Write the object's last document before the one beginning with the row `first`."""
    changes = [change for part in parts for change in part.decision.changes]
    before = [change.positions[0][0] for change in changes if max(change.positions)[0] < first]
    if not before:
        return None
    number = max(before)
    document, _ = _document(parts, number, config, mask)
    return None if document is None else FormerDocument(record_id=number, document=document)


def _change(
    parts: Sequence[Part],
    record_id: int,
    names: FormerNames,
) -> tuple[list[Change], Catalog, list[Refusal]]:
    """Find the change with the row, by these names, with the tables of its time."""
    outcomes = [outcome for part in parts for outcome in part.decision.outcomes]
    winners = {outcome.position: outcome.winner for outcome in outcomes}
    # A superseded row has no change of its own: its winner's says what became of it.
    position = winners.get((record_id,)) or (record_id,)
    for part in parts:
        for change in part.decision.changes:
            if position in change.positions:
                return part.span.by_names([change], names)
    return [], parts[0].span.catalog, []


def _element(
    change: Change,
    catalog: Catalog,
    form: XdsFormat,
) -> tuple[str | None, tuple[str, ...]]:
    try:
        return form.fragment(change, catalog).rstrip("\n"), ()
    except ExpressionError as error:
        # `fragment` writes all or nothing; the writer leaves out what cannot be expressed (decision
        # 22).
        items = [*form.writer(catalog)((change,))]
        notes = [item.note for item in items if isinstance(item, Refusal) and item.partial]
        if not notes:
            return None, (f"It is refused: {error}.",)
    elements = [dedent(item.text).rstrip("\n") for item in items if not isinstance(item, Refusal)]
    return "\n".join(elements) or None, tuple(notes)
