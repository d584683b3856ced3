"""How it goes, as the page shows it: a moment of the log, the samples of the last week, what was
counted. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.installed import TriggerState
from eventlog.care.flow import waiting_for
from eventlog.care.listing import Filters
from eventlog.care.status import Facts, Publishing
from eventlog.core.model import Reason, Status
from eventlog.core.plugins import PageTable
from eventlog.core.table_names import read_name
from eventlog.daemon.health import VitalsReading
from eventlog.delivery.output import OutputState
from eventlog.sources.log.flow import Flow, OutputLag


class OutputSample(Struct, frozen=True, kw_only=True):
    """An output at one moment: rows that it is behind, and documents that it takes a second."""

    behind: int = 0
    rate: float = 0.0


class Sample(Struct, frozen=True, kw_only=True):
    """The log at one moment, in seconds since 1970: rows that wait, and rows settled a second.

    `oldest` is the row that has waited longest of those that nobody holds, and `lag` its age.
    """

    at: float
    waiting: int
    oldest: int | None
    lag: float | None
    rate: float
    outputs: Mapping[str, OutputSample] = {}
    """By the names that the notes of outputs have."""


class ChartRange(Struct, frozen=True, kw_only=True):
    """A time of which the curves speak: so many seconds, one sample for each `step` of them."""

    name: str
    label: str
    seconds: float
    step: float
    ticks: tuple[str, ...]


RANGES: Final = (
    ChartRange(
        name="1h",
        label="the last hour",
        seconds=3600.0,
        # Every sample of the last hour is kept.
        step=0.0,
        ticks=("60 min", "30 min"),
    ),
    ChartRange(
        name="24h",
        label="the last 24 hours",
        seconds=86_400.0,
        step=60.0,
        ticks=("24 h", "12 h"),
    ),
    ChartRange(
        name="7d",
        label="the last 7 days",
        seconds=604_800.0,
        step=600.0,
        ticks=("7 d", "3½ d"),
    ),
)
"""What can be chosen; the first one is shown where nothing is."""


def range_named(name: str) -> ChartRange:
    """Return the range of this name, else the first one."""
    return next((span for span in RANGES if span.name == name), RANGES[0])


class History(Struct, frozen=True, kw_only=True):
    """Samples for each of the ranges. Of a longer one each sample has the highest figures of its
    step.
    """

    levels: tuple[tuple[Sample, ...], ...] = ((),) * len(RANGES)

    @property
    def latest(self) -> Sample | None:
        return self.levels[0][-1] if self.levels[0] else None

    def of(self, span: ChartRange) -> Sequence[Sample]:
        return self.levels[RANGES.index(span)]

    def with_sample(self, new: Sample) -> History:
        """Return the history with a sample added; a clock set back starts it again."""
        levels = zip(RANGES, self.levels, strict=True)
        return History(levels=tuple(_keep_samples(span, samples, new) for span, samples in levels))


def _keep_samples(span: ChartRange, samples: Sequence[Sample], new: Sample) -> tuple[Sample, ...]:
    former = [sample for sample in samples if new.at - span.seconds <= sample.at < new.at]
    # Of a longer range all samples of a step are one.
    if former and span.step and former[-1].at // span.step == new.at // span.step:
        last = former.pop()
        lags = [sample.lag for sample in (last, new) if sample.lag is not None]
        outputs: dict[str, OutputSample] = {}
        for name, output in new.outputs.items():
            was = last.outputs.get(name, OutputSample())
            outputs[name] = OutputSample(behind=max(output.behind, was.behind), rate=max(output.rate, was.rate))
        new = Sample(
            at=new.at,
            waiting=max(last.waiting, new.waiting),
            oldest=new.oldest,
            lag=max(lags, default=None),
            rate=max(last.rate, new.rate),
            outputs=outputs,
        )
    return (*former, new)


OLD_SECONDS: Final = 60.0
"""Seconds after which figures are old: so often at least they are measured."""


class ReasonCount(Struct, frozen=True, kw_only=True):
    """How many processed rows the companion table has with a status and a reason. What waits is
    counted by `Flow`.
    """

    status: str | None
    reason: str | None
    rows: int


class OutputView(Struct, frozen=True, kw_only=True):
    """An output: what it is called here and by its notes, its format, how it stands, and rows on
    their way to it.

    Until it has taken something under its name, what stands under one of its `former_names` is
    shown.
    """

    name: str
    noted: str
    former_names: tuple[str, ...] = ()
    format: str
    state: OutputState = OutputState()
    on_the_way: int = 0
    paused: str | None = None
    """Who has paused it, when and why."""
    rate: float | None = None
    """Documents that it takes a second."""


class UnreadTable(Struct, frozen=True, kw_only=True):
    """A table that the publisher cannot read: why, the database's error, and the first row that
    waits, of which time.
    """

    reason: str = Reason.NO_RIGHT.value
    note: str
    row: int
    time: str | None = None


class PagePart(Struct, frozen=True, kw_only=True):
    """A part of the first page that some package has made, or why it has not."""

    title: str
    table: PageTable | None = None
    trouble: str = ""


class PageReading(Struct, frozen=True, kw_only=True):
    """Everything that the first page shows. `facts` and `reasons` are counted seldom, at `counted`;
    at first not at all.
    """

    log: str
    database: str
    now: float
    history: History = History()
    facts: Facts | None = None
    reasons: Sequence[ReasonCount] = ()
    counted: float | None = None
    places: Sequence[OutputView] = ()
    on_the_way: int = 0
    """Rows whose documents may be on their way to some output."""
    flow: Flow | None = None
    loop: VitalsReading | None = None
    """What the publisher in this process is about; None where it runs elsewhere."""
    gone: Publishing | None = None
    """Who has published the log last, where nobody does and the lock was not given back."""
    held: str | None = None
    """What is noted of the first row that somebody holds."""
    unread: Mapping[str, UnreadTable] = {}
    trouble: str | None = None
    triggers: Sequence[TriggerState] = ()
    parts: Sequence[PagePart] = ()
    commands: str | None = None
    """What a command needs to find the log, for whoever comes first; None where its rows come from a stream."""

    @property
    def publishes(self) -> bool:
        """Return whether a publisher works on the log, here or elsewhere."""
        return self.loop is not None or (self.flow is not None and self.flow.publishing)

    @property
    def latest(self) -> Sample | None:
        return self.history.latest

    @property
    def fails_by_an_output(self) -> bool:
        """Return True if only outputs make the publisher fail."""
        failing = {output.state.error for output in self.places if output.state.is_failing}
        return self.loop is not None and self.loop.state == "failing" and self.loop.error in failing

    def waiting_for(self, output: OutputView) -> OutputLag | None:
        """Return the rows waiting for an output, if any."""
        if self.flow is None:
            return None
        return waiting_for(self.flow, output.noted, failing=output.state.is_failing)

    @property
    def lags(self) -> Mapping[str, OutputLag]:
        """Return how far outputs are behind, by the name used in their notes."""
        return {} if self.flow is None else self.flow.lags

    @property
    def waiting(self) -> int:
        """Count the waiting rows, the same for all parts of a page."""
        if self.flow is not None:
            return self.flow.parts.total
        return 0 if self.latest is None else self.latest.waiting

    @property
    def rows(self) -> Facts | None:
        """Count rows by status; waiting ones as the rest of the page does."""
        if self.facts is None or self.flow is None:
            return self.facts
        return replace(self.facts, rows={**self.facts.rows, Status.NEW: self.waiting})

    def count_rows(self, filters: Filters) -> int | None:
        """Say how many rows a list has, as they were counted; None where nobody has counted these."""
        facts = self.rows
        if facts is None or filters.table or filters.key or filters.text or filters.since:
            return None
        if filters.reason:
            if not filters.statuses or Status.NEW in filters.statuses or filters.reason == Reason.PUBLISHED:
                return None
            return sum(
                one.rows
                for one in self.reasons
                if one.reason == filters.reason and one.status is not None and one.status in filters.statuses
            )
        every = {**facts.rows, **facts.ignored}
        return sum(count for status, count in every.items() if not filters.statuses or status in filters.statuses)

    def output(self, noted: str) -> OutputView | None:
        """Return the output with this name in its notes."""
        return next((output for output in self.places if output.noted == noted), None)


TablePlace = tuple[str | None, str]
"""Schema and name of a table: two fields, for either may have a dot in it."""


def tables_of(triggers: Sequence[TriggerState]) -> Mapping[TablePlace, Sequence[TriggerState]]:
    """Group the triggers by table, in order."""
    by_table: dict[TablePlace, list[TriggerState]] = {}
    for trigger in sorted(triggers, key=lambda trigger: (trigger.table, trigger.schema or "", trigger.name)):
        by_table.setdefault((trigger.schema, trigger.table), []).append(trigger)
    return by_table


def owner_place(trigger: TriggerState) -> TablePlace:
    """Return the class that a trigger belongs to, which may have another schema than the trigger."""
    schema, name = read_name(trigger.owner)
    return schema or None, name
