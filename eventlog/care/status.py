"""How the log stands, as a frozen value; how it is shown is other modules' business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care.ages import utc_text
from eventlog.care.flow import (
    Rate,
    backlog,
    has_recovered,
    rate_of,
    state_sentence,
    unread_tables,
    waiting_reasons,
)
from eventlog.care.proofs import read_proofs
from eventlog.config.settings import PublisherConfig
from eventlog.core.errors import without_promise
from eventlog.core.model import Status, format_position
from eventlog.core.plural import count_words
from eventlog.core.proofs import LastProof
from eventlog.delivery.output import OutputState, failing, read_output_states
from eventlog.publisher.flow import read_flow
from eventlog.sources.log.flow import FlowState, OutputLag, Polling, WaitingParts
from eventlog.sources.log.lock import Sight, look_at
from eventlog.sources.marks import OUTPUTS, VERIFIED, Marks
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

MEANINGS = {
    Status.NEW: "waiting",
    Status.SUCCESS: "published, or nothing to publish",
    Status.WARNING: "vanished, or published with a warning",
    Status.ERROR: "not published: eventlog explain RECORD_ID says why",
    Status.FATAL: "the receiver stopped the publisher",
}


class LastError(Struct, frozen=True, kw_only=True):
    """The newest row that ended as an error."""

    record_id: int
    status: str
    reason: str | None
    note: str | None
    at: str | None


class Publishing(Struct, frozen=True, kw_only=True):
    """Who has the lock of the log, or had it last, by the clock of the database in UTC."""

    host: str | None
    pid: int | None
    since: str | None
    lease_until: str | None
    expired: bool


class Facts(Struct, frozen=True, kw_only=True):
    """Rows by status, what waits longest, how fast rows are settled, the last error, and triggers
    that are not current.

    `oldest_waiting` and its lag are of the rows that nobody holds and whose time has come.
    """

    log: str
    rows: Mapping[str, int]
    ignored: Mapping[str, int]
    oldest_waiting: int | None
    lag_seconds: float | None
    rate: Rate
    last_error: LastError | None
    triggers: Mapping[str, str]
    outputs: Mapping[str, OutputState] = {}
    publisher: Publishing | None = None
    unread: Mapping[str, str] = {}
    """Tables that the publisher cannot read, and the database's message for each."""
    failing: Mapping[str, str] = {}
    """Triggers that fail every write to their table, and the table."""
    state: FlowState = "flowing"
    """How the log goes on, in one word."""
    backlog: WaitingParts = WaitingParts()
    """Rows that wait, by what they wait for."""
    why: Sequence[str] = ()
    """The word, and what rows wait for, in sentences."""
    lags: Mapping[str, OutputLag] = {}
    """The outputs that lag behind the others, or that somebody has paused."""
    proofs: Sequence[LastProof] = ()
    """The last proof of each table that the publisher compares with an output."""
    is_tracked: bool = True
    """Whether triggers of ours write into the log."""

    def next_step(self) -> str:
        """Choose the reader's most likely next command."""
        if self.failing or self.triggers:
            return "eventlog check"
        if not self.is_tracked and not any(self.rows.values()):
            return "eventlog track TABLE"
        if self.publisher is None or self.publisher.expired:
            return "eventlog run"
        if self.state == "stuck" or self.unread or failing(self.outputs):
            return "eventlog check"
        if self.rows.get(Status.ERROR.value):
            return f"eventlog log --status {Status.ERROR.value}"
        return "eventlog log"

    def lines(self) -> Iterator[tuple[str, int, str]]:
        """Yield rows of the table: status, number, meaning."""
        for status, meaning in MEANINGS.items():
            yield status, self.rows.get(status, 0), meaning
        for code, count in self.ignored.items():
            yield repr(code), count, "ignored: only N is ever picked up"

    def sentences(self) -> Iterator[str]:
        """Yield the facts worth a sentence."""
        # Without one, the next sentence says that none works.
        if self.publisher is not None:
            yield _of_publisher(self.publisher)
        yield from self.why
        # A log that is stuck has said it already.
        if self.oldest_waiting is not None and self.state != "stuck":
            lag = "" if self.lag_seconds is None else f", for {self.lag_seconds:.1f} s"
            yield f"Row {self.oldest_waiting} waits longest{lag}."
        yield f"{self.rate.per_second:,.1f} rows a second were finished in the last {self.rate.seconds} s."
        if self.last_error is not None:
            error = self.last_error
            yield f"The last error is row {error.record_id}: {error.note or error.reason}"
        for output, progress in self.outputs.items():
            if progress.position is not None:
                position = format_position(progress.position)
                yield f"{output} took {progress.document}, up to row {position}, at {utc_text(progress.at)} UTC."
            if progress.error is not None and not has_recovered(progress):
                # The promise of another try was made when it failed.
                why = without_promise(progress.error)
                yield f"{output} did not take everything at {utc_text(progress.failed_at)} UTC: {why}"
        if self.proofs:
            equal = sum(proof.equal for proof in self.proofs)
            yield f"{equal:,} of {count_words(len(self.proofs), 'table')} at outputs were equal when last compared."
        for proof in self.proofs:
            if proof.error or not proof.equal:
                sentence = f"{proof.table} at {proof.output}: {proof.verdict}"
                if proof.at is not None:
                    sentence += f" at {utc_text(proof.at)} UTC"
                if proof.error:
                    sentence += f". At {utc_text(proof.failed_at)} UTC it could not be compared: {proof.error}"
                yield sentence if proof.error else f"{sentence}."
        for table, note in self.unread.items():
            yield f"Rows of {table} wait: {note}"
        for trigger, table in self.failing.items():
            yield (
                f"Every write to {table} fails: its trigger {trigger} names a column that is gone;"
                " `eventlog check` says what to do."
            )
        for trigger, state in self.triggers.items():
            yield f"The trigger {trigger} is {state}; `eventlog track` makes it current."


def facts(engine: Engine, names: LogNames, settings: Polling | None = None) -> Facts:
    """Read the state of the log; `settings` are those of its publisher."""
    from eventlog.capture.installed import TriggerCondition
    from eventlog.capture.track import trigger_states

    log = Log(engine, names)
    publisher = publishing(look_at(log))
    counted = backlog(log)
    triggers = trigger_states(engine, names)
    with log.moment() as connection:
        errors = log.rows(connection, log.query("last_error"))
        outputs = read_output_states(Marks(log).get(connection, OUTPUTS))
        proofs = read_proofs(Marks(log).get(connection, VERIFIED))
        unread = unread_tables(connection, log)
        flow = read_flow(connection, log, settings or PublisherConfig(), failing=failing(outputs))
    # Asked apart: whether rows may come at all is known by the triggers, which the log does not
    # know.
    flow = replace(flow, tracked=bool(triggers))
    last_error = None
    if errors:
        record_id, status, reason, note, at = errors[0]
        last_error = LastError(record_id=record_id, status=status, reason=reason, note=note, at=at)
    return Facts(
        log=log.name,
        rows={status.value: count for status, count in counted.by_status.items()},
        ignored=counted.other,
        oldest_waiting=flow.oldest,
        lag_seconds=None if flow.oldest is None else flow.lag,
        rate=rate_of(flow),
        last_error=last_error,
        triggers={trigger.name: trigger.state for trigger in triggers if trigger.state is not TriggerCondition.CURRENT},
        failing={trigger.name: trigger.table for trigger in triggers if trigger.fails},
        outputs=outputs,
        publisher=publisher,
        unread=unread,
        state=flow.state,
        backlog=flow.parts,
        why=(state_sentence(flow), *waiting_reasons(flow)),
        lags=flow.lags,
        proofs=proofs,
        is_tracked=bool(triggers),
    )


def publishing(sight: Sight) -> Publishing | None:
    """Describe the holder of a log's lock, or the last one."""
    holder = sight.holder
    if holder is None:
        return None
    return Publishing(expired=holder.is_over(sight.now), **holder.describe())


def _of_publisher(publisher: Publishing) -> str:
    who = "Somebody"
    if publisher.host is not None:
        who = f"Process {publisher.pid} on {publisher.host}"
    if publisher.expired:
        return f"{who} published the log until {publisher.lease_until} UTC, and has not given its lock back."
    since = "" if publisher.since is None else f" since {publisher.since} UTC"
    return f"{who} publishes the log{since}; its lease ends at {publisher.lease_until} UTC unless it renews it."
