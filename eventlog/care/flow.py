"""What is shown of a log: its rows by status, what they wait for, and how fast it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.model import Status
from eventlog.core.plural import count_words, duration
from eventlog.delivery.output import OutputState
from eventlog.publisher.flow import read_unread_tables
from eventlog.publisher.tables import BY_PUBLISHER
from eventlog.sources.log.flow import WINDOW_SECONDS, Flow, OutputLag
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

_statuses = {status.value: status for status in Status}


class Backlog(Struct, frozen=True, kw_only=True):
    """Rows by status; `other` are statuses that the publisher neither reads nor writes, such as 'n'
    or 'X'.
    """

    by_status: Mapping[Status, int]
    other: Mapping[str, int]

    @property
    def waiting(self) -> int:
        return self.by_status[Status.NEW]


def backlog(log: Log) -> Backlog:
    """Counts the log as it is now; reads every row, so it is for people and not for every cycle."""
    with log.transaction() as connection:
        counts = log.rows(connection, log.query("count_by_status"))
    by_status = dict.fromkeys(Status, 0)
    other: dict[str, int] = {}
    for status, count in counts:
        if status in _statuses:
            by_status[_statuses[status]] = count
        else:
            other["NULL" if status is None else str(status)] = count
    return Backlog(by_status=by_status, other=other)


class Rate(Struct, frozen=True, kw_only=True):
    """Rows that were settled in the last seconds."""

    rows: int
    seconds: int
    per_second: float


def rate_of(flow: Flow) -> Rate:
    """Measure the rate of a log."""
    seconds = WINDOW_SECONDS
    return Rate(rows=flow.finished, seconds=seconds, per_second=flow.finished / seconds)


def unread_tables(connection: Connection, log: Log) -> dict[str, str]:
    """Map unreadable tables to the database's messages."""
    return {name: table.note for name, table in read_unread_tables(connection, log).items()}


def note_of_hold(connection: Connection, log: Log, number: int) -> str | None:
    """Read the note of a row's hold: since when, by whom, and why."""
    notes = log.rows(connection, log.query("hold_row"), {"record_id": number})
    if not notes or not notes[0][0]:
        return None
    return str(notes[0][0])


def has_recovered(state: OutputState) -> bool:
    """Return True if an output took a document after the last error."""
    return state.failed_at is not None and state.failed_at < (state.at or 0.0)


def waiting_for(flow: Flow, output: str, *, failing: bool) -> OutputLag | None:
    """Find the rows an output lacks and others have.

    A failing output without others ahead of it keeps all of them from being published.
    """
    lag = flow.lags.get(output)
    rows = flow.parts.ready + flow.parts.retrying
    if lag is not None or not failing or not rows:
        return lag
    return OutputLag(rows=rows, first=flow.oldest, seconds=flow.lag)


SINCE_RESTORED: Final = (
    "kept since the log was restored, because a target may have them: `eventlog log --reason restored` lists them,"
    " `eventlog outputs resume NAME` publishes them."
)


def state_sentence(flow: Flow) -> str:
    nobody = "" if flow.publishing else " No publisher works on this log."
    match flow.state:
        case "stuck":
            age = "an unknown time" if flow.lag is None else duration(flow.lag)
            return f"The oldest row, {flow.oldest}, has waited for {age}.{nobody}"
        case "waiting":
            if flow.parts.ready:
                return f"Rows wait.{nobody}"
            return "Rows wait for their time."
        case "held" if flow.first_held is None:
            return f"Rows wait for somebody to resume their output, since the log was restored.{nobody}"
        case "held":
            if nobody:
                return f"Somebody holds rows.{nobody}"
            if flow.parts.ready:
                others = "an output fails, and is tried again" if flow.failing else "others are being published"
                return f"Somebody holds rows; {others}."
            return "Somebody holds rows; all others are published."
        case "retrying":
            return f"A receiver did not take rows; they are offered again.{nobody}"
        case "lagging":
            return f"An output lags behind the others, which continue.{nobody}"
        case "suspended":
            return f"Rows wait until their table can be read.{nobody}"
        case "unpublished":
            return "Nothing is ready to be published, and no publisher works on this log."
        case "untracked":
            return "No trigger of eventlog writes this log, and nothing has come in the last minute."
        case "flowing":
            return "An output fails, and is tried again." if flow.failing and flow.parts.ready else "Nothing is stuck."


def waiting_reasons(flow: Flow) -> Iterator[str]:
    """Yield a sentence for each reason why rows wait, but for their turn still to come."""
    parts = flow.parts
    if parts.held and flow.first_held is None:
        yield f"{count_words(parts.held, 'row is', 'rows are')} {SINCE_RESTORED}"
    elif parts.held:
        yield f"{count_words(parts.held, 'row is', 'rows are')} held or behind held ones; row {flow.first_held} is the first."
    if parts.retrying:
        yield f"{count_words(parts.retrying, 'row is', 'rows are')} offered again, because a receiver did not take a row."
    if parts.suspended:
        yield f"{count_words(parts.suspended, 'row is', 'rows are')} kept until the publisher can read their table."
    for name, lag in flow.lags.items():
        paused = ", which somebody has paused" if lag.paused else ""
        if lag.pause is not None and f" {BY_PUBLISHER}: " in lag.pause:
            paused = f", which is paused {lag.pause.removesuffix('.')}"
        rows = count_words(lag.rows, "row is", "rows are") if lag.rows else "Nothing is"
        yield f"{rows} kept for {name}{paused}."
    if parts.not_due:
        yield f"{count_words(parts.not_due, 'row is', 'rows are')} kept until their time comes."
