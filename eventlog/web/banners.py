"""What needs somebody now: an output that fails or is slow, a publisher that is gone, held rows, a
missing right. Pure.

Each says which, since when, the cause in the words of whoever met it, and what to do: the sentence
of the guide in the docs for that state. A test compares the sentences with the guide.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Reason
from eventlog.core.plural import count_words, duration
from eventlog.core.table_names import read_name
from eventlog.sources.log.flow import OutputLag
from eventlog.web.actions import OutputAction
from eventlog.web.reading import OutputView, PageReading, UnreadTable
from eventlog.web.words import output_state

GUIDE: Final = "When something is wrong"
"""The page of the docs that has the sections."""

ADVICE: Final[Mapping[str, str]] = {
    "EventlogOutputFails": "repair what the error names. The publisher tries again by itself, at least every 30 s.",
    "EventlogNoPublisher": "what the journal's last record, `fatal`, asks for, and start the service.",
    "EventlogFailing": "what it asks for. The publisher continues by itself.",
    "EventlogHeld": "ask that person. `eventlog release NUMBER` ends the hold.",
    "EventlogSuspended": "what the cause asks for: grant the right, end the transaction that holds the lock,"
    " or repair the table. The rows then follow by themselves.",
    "EventlogDelay": "give the receiver more `connections`, or look at what delays a change.",
}
"""What to do, by the section of the guide that names it."""

CAUSE_CHARACTERS: Final = 600
"""Of a cause that a banner holds; the output's page has all of it."""


class Banner(Struct, frozen=True, kw_only=True):
    """Something that needs somebody: its `state`, `what` it is with the page about it, and a
    sentence of ours.
    """

    state: str
    what: str
    section: str
    to: tuple[str, Mapping[str, str]] | None = None
    """A path of this page, and what is asked of it."""
    since: str = ""
    sentence: str = ""
    cause: str = ""
    """In the words of whoever met it."""
    output: str = ""
    acts: tuple[OutputAction, ...] = ()
    advice: str = ""
    """What to do, where it is not what the section says."""

    choose: Mapping[str, str] = {}
    """The fields of a form that asks for an action on rows."""

    @property
    def do(self) -> str:
        return self.advice or ADVICE[self.section]


def banners(reading: PageReading) -> Iterator[Banner]:
    """Yield all banners, the most serious first."""
    yield from _of_publisher(reading)
    for output in reading.places:
        yield from of_output(reading, output)
    yield from _of_slowness(reading)
    for table, wait in reading.unread.items():
        yield of_table(table, wait)
    flow = reading.flow
    if flow is not None and flow.parts.held and flow.first_held is None:
        yield Banner(
            state="held",
            what=count_words(flow.parts.held),
            to=("rows", {"status": "N", "reason": "restored"}),
            sentence="The log was restored, and a target may have them. Later rows of the same objects wait behind them.",
            advice="compare the target, then resume the output: `eventlog outputs resume NAME`, or on its page.",
            section="EventlogHeld",
        )
    elif flow is not None and flow.parts.held:
        rows = count_words(flow.parts.held)
        first = "" if flow.first_held is None else f"Row {flow.first_held} is the first. "
        others = " All others are published." if flow.state == "held" and flow.publishing else ""
        yield Banner(
            state="held",
            what=rows,
            to=("rows", {"status": "N", "reason": "held"}),
            sentence=f"{first}Later rows of the same objects wait behind them.{others}",
            cause=reading.held or "",
            choose={"action": "release", "all": "1", "status": "N", "reason": "held"},
            section="EventlogHeld",
        )


UNREAD: Final[Mapping[str, str]] = {
    Reason.NO_RIGHT.value: "The publisher may not read it",
    Reason.UNCONFIRMED.value: "It is not known to be the table that was tracked",
    Reason.LOCKED.value: "Somebody has locked it, or it does not answer in time",
    Reason.DAMAGED.value: "The database cannot read it",
}
"""Why rows of a table wait."""


def of_table(table: str, wait: UnreadTable) -> Banner:
    """Describe an unreadable table and its correction."""
    return Banner(
        state="suspended",
        what=f"the table {table}",
        to=("table", {"schema": read_name(table)[0], "name": read_name(table)[1]}),
        since=f"row {wait.row}" + (f" of {wait.time}" if wait.time else ""),
        sentence=f"{UNREAD[wait.reason]}, so its rows wait. All others are published.",
        cause=wait.note,
        section="EventlogSuspended",
    )


def of_output(reading: PageReading, output: OutputView) -> Iterator[Banner]:
    """Yield the banner of an output in trouble."""
    lag = reading.lags.get(output.noted)
    about = Banner(
        state=output_state(output, reading.flow),
        what=output.name,
        section="EventlogOutputFails",
        to=("output", {"name": output.noted}),
        output=output.noted,
        acts=("try", "pause"),
    )
    if about.state == "failing":
        yield replace(
            about,
            since=_moment(reading.now, output.state.began_to_fail),
            sentence=_behind(lag, reading.waiting_for(output)),
            cause=output.state.error or "",
        )
    elif about.state == "lagging" and lag is not None:
        rate = f" It takes {output.rate:,.1f} documents a second." if output.rate is not None else ""
        yield replace(
            about,
            since=_age(reading.now, lag.seconds),
            sentence=f"{_behind(lag, lag)}{rate}",
            section="EventlogDelay",
        )


def _of_publisher(reading: PageReading) -> Iterator[Banner]:
    loop, flow = reading.loop, reading.flow
    # The output's banner shows it.
    if reading.fails_by_an_output:
        return
    if loop is not None and loop.state == "failing":
        yield Banner(
            state="failing",
            what="the publisher",
            since=_moment(reading.now, loop.last_cycle),
            sentence="Rows wait.",
            cause=loop.error or "",
            section="EventlogFailing",
        )
    elif flow is not None and not flow.publishing:
        gone, since = reading.gone, ""
        cause = "It has given its lock back, or none has worked on this log yet."
        taken = [output.state.at for output in reading.places if output.state.at is not None]
        if gone is not None:
            who = "Somebody" if gone.host is None else f"Process {gone.pid} on {gone.host}"
            cause = f"{who} published the log, has not renewed its lease, and has not given its lock back."
            since = "" if gone.lease_until is None else f"{gone.lease_until} UTC"
        elif taken:
            since = f"the last document, {_moment(reading.now, max(taken))}"
        yield Banner(
            state="nobody for long" if flow.state == "stuck" else "no publisher",
            what="this log",
            since=since,
            sentence=f"{count_words(flow.parts.total, 'row waits', 'rows wait')}.",
            cause=cause,
            section="EventlogNoPublisher",
        )


def _of_slowness(reading: PageReading) -> Iterator[Banner]:
    """Yield a banner if all outputs are slow: rows are finished, but the oldest waits long."""
    flow = reading.flow
    # Otherwise another banner says why rows wait, or nothing was finished at all.
    if flow is None or flow.failing or flow.state != "stuck":
        return
    if not (flow.publishing and flow.finished):
        return
    rate = reading.latest.rate if reading.latest is not None else 0.0
    slow = Banner(
        state="slow",
        what="all outputs",
        since=_age(reading.now, flow.lag),
        sentence=f"{count_words(flow.parts.total, 'row waits', 'rows wait')}, and {rate:,.1f} rows a second are finished.",
        section="EventlogDelay",
    )
    # With one output it is that one, and can be paused here.
    if len(reading.places) == 1:
        [output] = reading.places
        to = ("output", {"name": output.noted})
        slow = replace(slow, what=output.name, to=to, output=output.noted, acts=("pause",))
    yield slow


def _behind(lag: OutputLag | None, waiting: OutputLag | None) -> str:
    if lag is not None and lag.rows:
        return f"It is {count_words(lag.rows)} behind; other outputs continue."
    if waiting is None or not waiting.rows:
        return "Rows wait for it."
    return f"{count_words(waiting.rows, 'row waits', 'rows wait')} for it."


def _age(now: float, seconds: float | None) -> str:
    """Write the moment so many seconds ago; empty if unknown."""
    return "" if seconds is None else _moment(now, now - seconds)


def _moment(now: float, at: float | None) -> str:
    """Write a moment and how long ago it was; empty if unknown."""
    if at is None:
        return ""
    # Two clocks may differ a little; nothing is in the future.
    ago = duration(max(0.0, now - at))
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M:%S} UTC ({ago})"
