"""Each state in one word and one colour, for all pages. A colour says nothing that the word does
not. Pure.

Law: what is in a state is called and coloured by this table, wherever it stands on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from eventlog.capture.installed import TriggerState
from eventlog.core.model import TABLE_FAULTS, Reason, Status
from eventlog.sources.log.flow import Flow
from eventlog.web.reading import OutputView, PageReading

Kind = Literal["good", "calm", "warn", "bad", ""]
"""The class of the style sheet that has the colour."""


class StateWord(Struct, frozen=True):
    """How a state is called, and its colour."""

    text: str
    kind: Kind = ""


_TEXTS: Final[Mapping[Kind, str]] = {
    "good": "flowing, up to date, publishing, works elsewhere, CURRENT, ended",
    "calm": "new, not started, waiting, ready, not due, resuming, standby, starting, running",
    "warn": "held, retrying, lagging, suspended, slow, paused, stopping, stopped, interrupted,"
    " OUTDATED, MISSING, STRAY, DISABLED, not tracked, no publisher, not configured, look here",
    "bad": "stuck, failing, failed, not read",
}

STATES: Final[Mapping[str, StateWord]] = (
    {text: StateWord(text, kind) for kind, texts in _TEXTS.items() for text in texts.split(", ")}
    | {
        "in step": StateWord("up to date", "good"),
        "nobody for long": StateWord("no publisher", "bad"),
        "unpublished": StateWord("no publisher", "warn"),
        "old": StateWord("not known", "warn"),
        "untracked": StateWord("not tracked", "warn"),
    }
    | {reason.value: StateWord(reason.value, "warn") for reason in (*TABLE_FAULTS, Reason.RETRY)}
)
"""By the name that the state has in the program."""

STATUS_WORDS: Final[Mapping[str, StateWord]] = {
    Status.NEW: StateWord("waits", "calm"),
    Status.SUCCESS: StateWord("published", "good"),
    Status.WARNING: StateWord("warning", "warn"),
    Status.ERROR: StateWord("error", "bad"),
    Status.FATAL: StateWord("fatal", "bad"),
}
"""What stands beside the status of a row."""


def word_of(state: str) -> StateWord:
    """Return the word of a state; an unknown state is its own word."""
    return STATES.get(state, StateWord(state))


def status_word(status: str | None) -> StateWord:
    """Return the word of a status; the publisher ignores others than ours."""
    return STATUS_WORDS.get(status or "", StateWord("ignored"))


def output_state(output: OutputView, flow: Flow | None) -> str:
    """Return the output's most urgent state; one caused on purpose comes first."""
    lag = None if flow is None else flow.lags.get(output.noted)
    if output.paused is not None or (lag is not None and lag.paused):
        return "paused"
    if output.state.is_failing:
        return "failing"
    if lag is not None:
        return "lagging" if lag.rows else "resuming"
    # An output has nothing to do while rows are stuck ahead of all outputs; that is not up to date.
    return "waiting" if flow is not None and flow.state == "stuck" else "in step"


def publisher_state(reading: PageReading) -> str:
    """Return the state of the log's publisher, in this process or another one."""
    if reading.loop is not None:
        return reading.loop.state
    if reading.flow is not None and reading.flow.publishing:
        return "works elsewhere"
    is_stuck = reading.flow is not None and reading.flow.state == "stuck"
    return "nobody for long" if is_stuck else "no publisher"


def trigger_state(trigger: TriggerState) -> str:
    """Return the trigger's state; `failing` if it makes every write to its table fail."""
    return "failing" if trigger.fails else str(trigger.state)
