"""Spans of what a publisher does with a batch, where somebody has switched traces on; else nothing
at all.

What makes them, OpenTelemetry, is no business of those who say where a span begins and ends: they
know these few words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import UTC
from time import time_ns
from typing import Protocol

from eventlog.core.model import Captured
from eventlog.core.times import moment

Interval = tuple[int, int]
"""When something began and ended, in nanoseconds since 1970."""


class Span(Protocol):
    """A span that has begun. Attributes are numbers and names of outputs, never values of rows."""

    def child(self, name: str, began: int, attributes: Mapping[str, str | int]) -> Span:
        """Begin a span in it."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers to carry the trace elsewhere."""

    def end(self, ended: int, failure: BaseException | None, attributes: Mapping[str, str | int]) -> None:
        """End the span, with its failure if it has one."""


Begin = Callable[[str, int, Mapping[str, str | int]], Span]
"""Begins a trace: its name, when, and attributes."""

_begin: Begin | None = None
_headers: ContextVar[Mapping[str, str]] = ContextVar("eventlog_trace_headers")


def switch(begin: Begin | None) -> None:
    """Switches traces on in this process, or off with None."""
    # A process has traces or has none; handing this through every sink would say no more.
    global _begin  # noqa: PLW0603  # see above
    _begin = begin


def batch_span(oldest: Callable[[], Iterable[float]], read: Interval | None, rows: int) -> Span | None:
    """Begin the span of a batch at its oldest row, with one of its reading; None while traces are off."""
    if _begin is None:
        return None
    now = time_ns()
    # Never after its reading, nor in the future: clocks of the database and of this machine differ.
    began = min([now, *(int(at * 1e9) for at in oldest()), *(read or ())])
    span = _begin("batch", began, {"eventlog.rows": rows})
    if read is not None:
        span.child("read", read[0], {"eventlog.rows": rows}).end(read[1], None, {})
    return span


def times_of(events: Iterable[Captured]) -> Iterator[float]:
    """Yield the times of events in seconds since 1970, if they have one."""
    for time in {event.time for event in events if event.time is not None}:
        at = moment(time)
        if at is not None:
            yield at.replace(tzinfo=UTC).timestamp()


def is_on() -> bool:
    """Return True while traces are on in this process."""
    return _begin is not None


def step(parent: Span | None, name: str, **attributes: str | int) -> AbstractContextManager[None]:
    """Run the block in a span of the batch's, if it has one."""
    if parent is None:
        return nullcontext()
    return _step(parent, name, attributes)


@contextmanager
def _step(parent: Span, name: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
    span = parent.child(name, time_ns(), _name_attributes(attributes))
    token = _headers.set(span.headers())
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        _headers.reset(token)
        span.end(time_ns(), failure, {})


def end(span: Span | None, failure: BaseException | None = None, **attributes: str | int) -> None:
    """End a batch's span, also when its result is dropped."""
    if span is not None:
        span.end(time_ns(), failure, _name_attributes(attributes))


def _name_attributes(attributes: Mapping[str, str | int]) -> Mapping[str, str | int]:
    return {f"eventlog.{key}": entry for key, entry in attributes.items()}


def headers() -> Mapping[str, str]:
    """Return the trace headers of this thread's step for a receiver; none while traces are off."""
    return _headers.get({})
