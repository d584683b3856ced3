"""Outputs one by one: how far each is, and what an operator may do with it."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.ages import utc_text
from eventlog.care.flow import has_recovered, waiting_for
from eventlog.care.journal import CaredJournal
from eventlog.core.errors import UsageError, without_promise
from eventlog.core.model import Reason, format_position
from eventlog.core.suggest import did_you_mean
from eventlog.delivery.output import OutputState, read_output_states
from eventlog.publisher.flow import JournalLook, read_flow
from eventlog.publisher.memory import read_memory
from eventlog.publisher.table_faults import FAULTS
from eventlog.publisher.tables import write_pause
from eventlog.sources.log.flow import OutputLag, Polling, Resumed
from eventlog.sources.log.lock import look_at
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import OUTPUTS, RESUMED, SERVED, TRY_NOW, Marks, RowRanges, as_text, value_of
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection


class OutputProgress(Struct, frozen=True, kw_only=True):
    """One output.

    `state` is `in step`, `lagging`, `failing`, `paused`, or `unknown` where the configuration does
    not have it, so that nobody can publish with it; one that is a `conversion` keeps rows until they are marked.
    """

    name: str
    state: str
    rows: int = 0
    seconds: float | None = None
    document: str | None = None
    position: str | None = None
    at: str | None = None
    error: str | None = None
    failed_at: str | None = None
    recovered: bool = False
    """Whether it took a document after its last error."""
    paused: str | None = None
    """Since when it is paused, by whom and why."""
    warning: str | None = None
    """What was found about its target, since it or the log was restored."""
    unread: Mapping[str, int] = {}
    """How many rows wait for it whose table cannot be read, by the reason."""


def list_outputs(log: Log, settings: Polling, configured: Sequence[str]) -> list[OutputProgress]:
    """List outputs with their state: configured ones, and others keeping rows."""
    with log.moment() as connection:
        states = read_output_states(Marks(log).get(connection, OUTPUTS))
        flow = read_flow(connection, log, settings)
        memory = read_memory(connection, log)
        places = memory.outputs
        unread = _unread(connection, log) if flow.parts.suspended else {}
    converting = {row.name: len(memory.lacking(row.name)) for row in places.values() if row.is_conversion}
    others = [name for name in places if name not in configured and name not in converting]
    listed = []
    for name in (*configured, *others):
        state = states.get(name, OutputState())
        lag = waiting_for(flow, name, failing=state.is_failing)
        if lag is not None and lag.paused:
            word = "paused"
        elif name not in configured:
            word = "unknown"
        elif state.is_failing:
            word = "failing"
        else:
            word = "in step" if lag is None else "lagging"
        lag = lag or OutputLag()
        output = OutputProgress(
            name=name,
            state=word,
            rows=lag.rows,
            seconds=lag.seconds,
            document=state.document or None,
            position=None if state.position is None else format_position(state.position),
            at=utc_text(state.at),
            error=state.error and without_promise(state.error),
            failed_at=utc_text(state.failed_at),
            recovered=has_recovered(state),
            paused=lag.pause,
            warning=places[name].warning if name in places else None,
            unread=unread.get(name, {}),
        )
        listed.append(output)
    return listed + [OutputProgress(name=name, state="conversion", rows=rows) for name, rows in converting.items()]


def _unread(connection: Connection, log: Log) -> dict[str, dict[str, int]]:
    """Count the rows of each output with an unreadable table."""
    unread: dict[str, dict[str, int]] = {}
    for output, reason, rows, *_ in log.rows(connection, log.query("parked_reasons")):
        if reason in FAULTS:
            unread.setdefault(str(output), {})[str(reason)] = int(rows)
    return unread


def pause(log: Log, name: str, configured: Collection[str], *, by: str, why: str = "") -> bool:
    """Pause an output until it is resumed; return True if it was not paused.

    One with a place in the log is paused even if the configuration lacks it.
    """
    journal = CaredJournal(log)
    with journal.transaction() as writing:
        row = writing.memory.outputs.get(name)
        if row is None or row.is_conversion:
            refuse_unknown(name, configured)
        if row is None:
            # One of those may be this one, under its former name.
            if writing.memory.outputs.keys() - set(configured):
                message = f"No publisher has worked with the output {name} yet."
                raise UsageError(
                    message,
                    hint="Start it once with this configuration, and pause the output then.",
                )
            row = writing.add_output(name)
        if row.paused is None:
            writing.execute("output_pause", [{"name": name, "paused": write_pause(f"by {by}", why)}])
    return row.paused is None


def resume(log: Log, settings: Polling, name: str, configured: Collection[str]) -> bool:
    """Resume an output however far behind; return True if it was paused or held by a restore."""
    marks, journal = Marks(log), CaredJournal(log)
    # Nobody settles meanwhile: it is as far behind as we say.
    with journal.transaction() as writing:
        row = writing.memory.outputs.get(name)
        # Without it in the configuration no publisher could take the lock any more.
        refuse_unknown(name, configured)
        if row is None:
            return False
        if row.paused is None and row.restored is None and row.warning is None:
            return False
        lag = JournalLook(writing.connection, log, settings).lags.get(name, OutputLag())
        # The mark lets it go on although it is further behind than its bound, until it was inside
        # that once.
        if lag.rows:
            resumed = Resumed(rows=lag.rows, seconds=lag.seconds or 0.0)
            marks.set(writing.connection, f"{RESUMED}{name}", as_text(resumed))
        writing.execute("output_pause", [{"name": name, "paused": None}])
        writing.move(replace(row, restored=None, warning=None))
        writing.execute("parked_resumed", [{"output": name}])
    return True


def try_now(log: Log, name: str, configured: Collection[str]) -> None:
    """End the waits of an output, so that the publisher tries it at once.

    UsageError if it is paused or no publisher has worked with it.
    """
    refuse_unknown(name, configured)
    marks, journal = Marks(log), CaredJournal(log)
    with journal.transaction() as writing:
        row = writing.memory.outputs.get(name)
        if row is None:
            raise UsageError(
                f"No publisher has worked with the output {name} yet.",
                hint="Start one.",
            )
        if row.paused is not None:
            raise UsageError(f"The output {name} is paused.", hint="Resume it: then it is tried.")
        for query in ("parked_try_now", "planned_try_now"):
            writing.execute(query, [{"output": name}])
        # A publisher that sleeps after a failure sleeps in its own memory, and only a mark reaches
        # that.
        marks.set(writing.connection, f"{TRY_NOW}{name}", secrets.token_hex(8))


def find_kept_for(log: Log, name: str) -> RowRanges:
    """Find the rows to be given up for an output; raise UsageError if the journal does not know it."""
    kept = CaredJournal(log).find_kept_for(name)
    if kept is None:
        hint = "`eventlog outputs list` shows the outputs, and how many rows each is behind."
        raise UsageError(
            f"Nothing is kept for {name}: no publisher has worked with an output of this name.",
            hint=hint,
        )
    return kept


def skip(
    log: Log, name: str, numbers: RowRanges | None, *, by: str, why: str = "", delete_from_log: bool = False
) -> int:
    """Give up rows an output lacks, or all of them; return how many.

    They end with a warning once no output lacks them. Rows being delivered to a target that can be
    asked stay: it tells itself what it has.
    """
    find_kept_for(log, name)
    if is_conversion(log, name):
        message = f"{name} is a conversion, and has converted these rows."
        hint = f"Give its command once more; or give them back: `eventlog outputs forget {name!r}`."
        raise UsageError(message, hint=hint)
    reason = f": {why}" if why else "."
    note = f"{name}: given up by {by}{reason}"
    return CaredJournal(log, LogSettings(delete_from_log=delete_from_log)).give_up(name, numbers, note)


def forget(
    log: Log,
    name: str,
    configured: Collection[str],
    *,
    by: str,
    delete_from_log: bool = False,
) -> int:
    """Give up an output no longer configured, with its rows; return how many.

    The rows of a log's last output are kept: whoever publishes next begins with them. So are those
    of a conversion: they wait again.
    """
    if is_conversion(log, name):
        return CaredJournal(log).free_conversion(name)
    if name in configured:
        raise UsageError(
            f"{name} is still configured.",
            hint=f"`eventlog outputs skip {name!r} --all` gives up what is kept for it;"
            " take it out of the configuration to give it up.",
        )
    journal, kept = CaredJournal(log, LogSettings(delete_from_log=delete_from_log)), len(find_kept_for(log, name))
    # The rows of the last output are not given up: whoever publishes next begins with them.
    note = f"{name}: given up by {by}: it is not configured any more."
    if not journal.is_alone(name):
        kept = journal.give_up(name, None, note, Reason.FORGOTTEN)
    # Meanwhile a publisher may have sealed more, and other outputs may have got that.
    journal.forget(name, note)
    return kept


def is_conversion(log: Log, name: str) -> bool:
    """Return True for an unfinished conversion."""
    with log.moment() as connection:
        row = read_memory(connection, log).outputs.get(name)
        return row is not None and row.is_conversion


def refuse_unknown(name: str, configured: Collection[str]) -> None:
    """Raise UsageError if the configuration has no output of this name."""
    if name not in configured:
        raise UsageError(f"{name!r} is no output of the configuration. {did_you_mean(name, configured)}")


def refuse_unserved(log: Log, name: str) -> None:
    """Raise UsageError if a running publisher lacks this output."""
    # It would leave out what is for that output alone, and nobody would get it.
    sight = look_at(log)
    if sight.holder is None or sight.holder.is_over(sight.now):
        return
    with log.transaction() as connection:
        served = value_of(Marks(log).get(connection, SERVED), list[str])
    if served is not None and name not in served:
        raise UsageError(
            f"The publisher that works on this log does not have the output {name} yet: it would leave these rows out.",
            hint="Let it read its configuration again (SIGHUP, or a restart); then refresh.",
        )
