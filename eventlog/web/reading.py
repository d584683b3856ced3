"""How it goes, as the page shows it: a moment of the log, the samples of the last hour, what was counted. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from eventlog.admin.status import Facts
from eventlog.delivery.output import OutputState
from eventlog.sources.log.flow import Flow

CHART_SECONDS: Final = 3600.0
"""Seconds of which the charts speak."""


class Sample(Struct, frozen=True, kw_only=True):
    """The log at one moment, in seconds since 1970: rows that wait, and rows settled a second.

    `oldest` is the row that has waited longest of those that nobody holds, and `lag` its age.
    """

    at: float
    waiting: int
    oldest: int | None
    lag: float | None
    rate: float


class ReasonCount(Struct, frozen=True, kw_only=True):
    """How many rows the companion table has with a letter and a reason."""

    status: str | None
    reason: str | None
    rows: int


class OutputView(Struct, frozen=True, kw_only=True):
    """An output: what it is called here and by its notes, its format, how it stands, and documents on their way to it."""

    name: str
    noted: str
    format: str
    standing: OutputState = OutputState()
    on_the_way: int = 0


class Loop(Struct, frozen=True, kw_only=True):
    """What the publisher in this process is about; None where it runs elsewhere."""

    state: str
    error: str | None
    documents: int
    last_document: float | None


class PageReading(Struct, frozen=True, kw_only=True):
    """Everything that the first page shows. `facts` and `reasons` are counted seldom, at `counted`; at first not at all."""

    log: str
    database: str
    now: float
    samples: Sequence[Sample] = ()
    facts: Facts | None = None
    reasons: Sequence[ReasonCount] = ()
    counted: float | None = None
    places: Sequence[OutputView] = ()
    in_hand: str | None = None
    flow: Flow | None = None
    loop: Loop | None = None
    trouble: str | None = None
    states: Mapping[str, str] = {}

    @property
    def latest(self) -> Sample | None:
        return self.samples[-1] if self.samples else None


def kept(samples: Sequence[Sample], new: Sample) -> tuple[Sample, ...]:
    """The samples of the last hour with a new one; a clock that was set back begins anew."""
    return (*(one for one in samples if new.at - CHART_SECONDS <= one.at < new.at), new)
