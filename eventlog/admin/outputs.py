"""Outputs one by one: how far each is, and what an operator may do with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from eventlog.admin.rows import tried_again
from eventlog.core.errors import UsageError
from eventlog.core.model import Outcome, Reason, Status, written
from eventlog.core.suggest import did_you_mean
from eventlog.delivery.output import OutputState, read_output_states
from eventlog.sources.log.flow import OutputLag, Polling, read_flow, read_lags
from eventlog.sources.log.left_out import note_change
from eventlog.sources.log.lock import look_at
from eventlog.sources.log.owed import Resumed, Saying, write_said
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.log.source import settle
from eventlog.sources.marks import (
    HOLDING,
    LAGGING,
    OUTPUTS,
    OWED,
    PAUSED,
    RESUMED,
    SAID,
    SERVED,
    Marks,
    Stretches,
    any_owed,
    as_text,
    read_owed,
)
from eventlog.sql.log import Log


class OutputStanding(Struct, frozen=True, kw_only=True):
    """One output. `state` is `in step`, `lagging`, `paused`, or `unknown` where the configuration does not have it."""

    name: str
    state: str
    rows: int = 0
    seconds: float | None = None
    document: str | None = None
    position: str | None = None
    at: str | None = None
    error: str | None = None
    failed_at: str | None = None


def standings(log: Log, settings: Polling, configured: Sequence[str]) -> list[OutputStanding]:
    """How the outputs stand: those of the configuration, and others that keep rows waiting."""
    with log.transaction() as connection:
        states = read_output_states(Marks(log).get(connection, OUTPUTS))
        flow, _ = read_flow(connection, log, settings)
    others = [name for name in flow.lags if name not in configured]
    return [
        _standing(name, states.get(name, OutputState()), flow.lags.get(name), known=name in configured)
        for name in (*configured, *others)
    ]


def pause(log: Log, name: str, configured: Collection[str], *, by: str, why: str = "") -> bool:
    """Lets nothing go to an output until somebody resumes it; whether it was not paused already."""
    refuse_unknown(name, configured)
    marks = Marks(log)
    with log.transaction() as connection:
        marks.lock(connection, HOLDING)
        new = marks.get(connection, f"{PAUSED}{name}") is None
        if new:
            since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            marks.set(connection, f"{PAUSED}{name}", f"since {since} by {by}{f': {why}' if why else ''}")
    return new


def resume(log: Log, settings: Polling, name: str, configured: Collection[str]) -> bool:
    """Lets documents go to an output again, however far it is behind; whether it was paused."""
    marks = Marks(log)
    with log.transaction() as connection:
        marks.lock(connection, HOLDING)  # nobody settles meanwhile: it is as far behind as we say
        lag = read_lags(connection, log, settings).get(name, OutputLag())
        if not lag.paused:
            refuse_unknown(name, configured)
            return False
        if lag.rows:
            resumed = Resumed(rows=lag.rows, seconds=lag.seconds or 0.0)
            marks.set(connection, f"{RESUMED}{name}", as_text(resumed))
        marks.clear(connection, f"{PAUSED}{name}")
    return True


@tried_again
def skip(
    log: Log, name: str, numbers: Stretches | None, *, by: str, why: str = "", delete_from_log: bool = False
) -> int:
    """Gives up rows that an output is owed, or all of them; how many. They end with a warning once nobody is owed them."""
    with log.transaction() as connection:
        note_change(connection, log)  # whoever settles waits for us, and reads anew
        note = f"{name}: given up by {by}{f': {why}' if why else '.'}"
        return _give_up(connection, log, name, numbers, note, LogSettings(delete_from_log=delete_from_log))


@tried_again
def forget(log: Log, name: str, configured: Collection[str], *, by: str, delete_from_log: bool = False) -> int:
    """Gives up an output that is not configured any more, and what is kept for it; how many rows that was."""
    if name in configured:
        raise UsageError(
            f"{name} is still configured.",
            hint=f"`eventlog outputs skip {name!r} --all` gives up what is kept for it; take it out of the configuration to give it up.",
        )
    note = f"{name}: given up by {by}: it is not configured any more."
    with log.transaction() as connection:
        note_change(connection, log)
        count = _give_up(connection, log, name, None, note, LogSettings(delete_from_log=delete_from_log))
        for one in (OWED, LAGGING, PAUSED, RESUMED):
            Marks(log).clear(connection, f"{one}{name}")
    return count


def kept_for(log: Log, name: str) -> Stretches:
    with log.transaction() as connection:
        owed = read_owed(Marks(log).all(connection))
    if name not in owed:
        raise UsageError(
            f"{name} does not lag, so nothing is kept for it.",
            hint="`eventlog outputs list` shows which outputs lag; `eventlog hold` keeps rows from all of them.",
        )
    return owed[name]


def _give_up(
    connection: Connection, log: Log, name: str, numbers: Stretches | None, note: str, settings: LogSettings
) -> int:
    marks = Marks(log)
    found = marks.all(connection)
    owed = read_owed(found)
    mine = owed.pop(name, Stretches())
    given_up = mine if numbers is None else mine & numbers
    others = any_owed(owed.values())
    saying = Saying(found.get(SAID))
    outcomes = [
        Outcome(position=(number,), status=Status.WARNING, reason=Reason.SKIPPED, note=note) for number in given_up
    ]
    final = given_up - others
    ended = saying.merged(outcomes, final)
    settle(connection, log, ended, settings, {}, waited=True)
    saying.add(outcomes, given_up & others)
    saying.forget(final)
    write_said(connection, marks, saying)
    marks.set(connection, f"{OWED}{name}", (mine - given_up).text())
    return len(given_up)


def refuse_unknown(name: str, configured: Collection[str]) -> None:
    """UsageError where the configuration has no output of this name."""
    if name not in configured:
        raise UsageError(f"{name!r} is no output of the configuration. {did_you_mean(name, configured)}")


def refuse_unserved(log: Log, name: str) -> None:
    """UsageError where a publisher works on the log that does not have this output: it would leave out what is for it alone."""
    sight = look_at(log)
    if sight.holder is None or sight.holder.is_over(sight.now):
        return
    with log.transaction() as connection:
        served = Marks(log).get(connection, SERVED)
    if served is not None and name not in msgspec.json.decode(served, type=list[str]):
        raise UsageError(
            f"The publisher that works on this log does not have the output {name} yet: it would leave these rows out.",
            hint="Let it read its configuration again (SIGHUP, or a restart); then refresh.",
        )


def _standing(name: str, state: OutputState, lag: OutputLag | None, *, known: bool) -> OutputStanding:
    word = "in step" if lag is None else "paused" if lag.paused else "lagging"
    return OutputStanding(
        name=name,
        state=word if known else "unknown",
        rows=0 if lag is None else lag.rows,
        seconds=None if lag is None else lag.seconds,
        document=state.document or None,
        position=None if state.position is None else written(state.position),
        at=_utc(state.at),
        error=state.error,
        failed_at=_utc(state.failed_at),
    )


def _utc(seconds: float | None) -> str | None:
    return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
